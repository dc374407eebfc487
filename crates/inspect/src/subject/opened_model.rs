//! A model that another tool made: a folder of `transformers`, or a GGUF file.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_tasks::{Repeat, Sequence, Use, Validation, Vocabulary, batch};
use headlight_watch::{ModelFiles, WATCHED_SEQUENCES};

const TOKENIZER: &str = "tokenizer.json";
/// Inputs of a sequence that the model is measured on: enough for a block to come back, and few
/// enough that patterns of hundreds of heads stay small.
pub(super) const MOST_INPUTS: usize = 64;
/// Sequences that causal tests are measured on.
const SEQUENCES: usize = 32;
/// What draws follow from.
pub(super) const SEED: u64 = 0;

/// A model with its vocabulary. What it is measured on is a task that every language model meets:
/// random ordinary tokens that come back.
pub(crate) struct OpenedModel {
    pub path: PathBuf,
    pub model: Decoder,
    pub vocabulary: Vocabulary,
    /// The names of the tokens, as many as the model has logits.
    pub names: Vec<String>,
    task: Repeat,
}

impl OpenedModel {
    pub fn open(path: &Path, device: &Device) -> Result<Self, Error> {
        let files = ModelFiles::open(path)?;
        let (model, tokenizer) = (files.model(device)?, files.tokenizer()?);
        let size = model.config().vocabulary;
        let vocabulary = match tokenizer {
            Some(json) => Vocabulary::of_tokenizer(&json)
                .map_err(|error| Error::damaged(path.join(TOKENIZER).display(), error))?,
            None => Vocabulary::of_names((0..size).map(|token| token.to_string()).collect()),
        };
        if vocabulary.len() > size {
            let message = format!(
                "its tokenizer has {} tokens, its embedding {size}",
                vocabulary.len()
            );
            return Err(Error::damaged(path.display(), message));
        }
        let names = vocabulary.names_for(size);
        let task = Repeat::probe(vocabulary.ordinary(), MOST_INPUTS.min(model.config().n_ctx));
        Ok(Self {
            path: path.to_owned(),
            model,
            vocabulary,
            names,
            task,
        })
    }

    /// Sequences on which roles are read.
    pub fn probe(&self) -> Vec<Sequence> {
        batch(&self.task, SEED, Use::Probe, 0, WATCHED_SEQUENCES)
    }

    /// Other sequences of the same kind, on which causal tests are measured.
    pub fn validation(&self) -> Validation {
        Validation::of_first(&self.task, SEED, SEQUENCES)
    }

    /// The accuracy of guessing.
    pub fn chance(&self) -> f64 {
        1.0 / self.names.len() as f64
    }
}
