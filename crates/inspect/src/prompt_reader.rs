//! A run's model that reads prompts, as it is and with changes: the one answer behind
//! `inspect RUN predict` and the live explorer.

use burn::tensor::{Device, Int, Tensor, activation::softmax};
use headlight_heads::HeadName;
use headlight_lens::zeroed;
use headlight_report::{ActivationPatch, Question};
use headlight_residual::{Activations, Decoder, Edit, Edits, Part, Site, token_tensor};
use headlight_run::{Error, ErrorKind};
use headlight_tasks::{self as tasks, Vocabulary};
use headlight_watch::no_room;

use super::{ModelParts, Subject};

/// Likeliest tokens shown where nobody asks for more.
pub(super) const SHOWN_TOKENS: usize = 5;
/// Each other prompt costs a pass.
const MOST_PATCHES: usize = 8;

/// A trained model and what it takes to read a prompt with it.
pub(super) struct PromptReader {
    pub(super) model: Decoder,
    /// The names of the tokens.
    pub(super) vocabulary: Vec<String>,
    pub(super) text: Vocabulary,
    pub(super) most_tokens: usize,
    device: Device,
}

/// What comes next after each token of a prompt.
pub(super) struct Reading {
    /// The prompt.
    pub(super) tokens: Vec<String>,
    /// `[position][token]`: probabilities, with the question's changes.
    pub(super) changed: Vec<Vec<f32>>,
    /// The same of the model as it is.
    pub(super) untouched: Vec<Vec<f32>>,
}

impl PromptReader {
    /// The model of a run, for prompts of at most `most_tokens`.
    pub(super) fn open(inspection: &Subject, most_tokens: usize) -> Result<Self, Error> {
        let ModelParts { model, vocabulary } = inspection.model()?;
        Ok(Self {
            model,
            vocabulary,
            text: inspection.vocabulary()?,
            most_tokens,
            device: inspection.device.clone(),
        })
    }

    /// Reads the question's prompt, and keeps the activations at `sites` with its changes. An error
    /// names the field that is wrong.
    pub(super) fn read(
        &self,
        question: &Question,
        sites: &[Site],
    ) -> Result<(Reading, Activations), Error> {
        let tokens = self.tokens("prompt", &question.prompt)?;
        let seen = self.activations(question, &tokens, sites)?;
        let changed = self.probabilities(seen.logits.clone());
        let untouched = if question.off.is_empty() && question.patches.is_empty() {
            changed.clone()
        } else {
            self.probabilities(self.model.forward(self.batch(&tokens)))
        };
        let reading = Reading {
            tokens: self.names(&tokens),
            changed,
            untouched,
        };
        Ok((reading, seen))
    }

    /// The activations at `sites` in one pass with the question's changes.
    pub(super) fn activations(
        &self,
        question: &Question,
        tokens: &[u32],
        sites: &[Site],
    ) -> Result<Activations, Error> {
        let mut edits = self.edits(question, tokens)?;
        self.model
            .activations_probed(self.batch(tokens), sites, &mut edits)
            .map_err(no_room)
    }

    pub(super) fn tokens(&self, field: &str, prompt: &str) -> Result<Vec<u32>, Error> {
        tasks::encode_prompt(&self.text, prompt, self.most_tokens).map_err(|error| error.at(field))
    }

    pub(super) fn names(&self, tokens: &[u32]) -> Vec<String> {
        tokens
            .iter()
            .map(|&token| self.vocabulary[token as usize].clone())
            .collect()
    }

    pub(super) fn check_head(&self, field: &str, head: HeadName) -> Result<(), Error> {
        let known = head.layer < self.model.blocks.len() && head.head < self.model.n_heads();
        let unknown = || Error::new(field, "there is no such head").value(head);
        known.then_some(()).ok_or_else(unknown)
    }

    fn batch(&self, tokens: &[u32]) -> Tensor<2, Int> {
        token_tensor(&[tokens], &self.device)
    }

    /// Switched-off heads blend nothing: 0 stands in place of their blend of values. Patched places
    /// hold what another prompt has there.
    fn edits(&self, question: &Question, tokens: &[u32]) -> Result<Edits, Error> {
        for &head in &question.off {
            self.check_head("off", head)?;
        }
        if question.patches.len() > MOST_PATCHES {
            return Err(
                Error::new("patches", format_args!("are more than {MOST_PATCHES}"))
                    .value(question.patches.len()),
            );
        }
        let mut edits = zeroed(&question.off);
        for patch in &question.patches {
            let (site, part, edit) = self.patch(patch, tokens.len())?;
            edits = edits.part(site, part, edit);
        }
        Ok(edits)
    }

    fn patch(&self, patch: &ActivationPatch, length: usize) -> Result<(Site, Part, Edit), Error> {
        let site: Site = patch
            .site
            .parse()
            .map_err(|error| Error::because(ErrorKind::Argument, "site", error))?;
        let tokens = self.tokens("from", &patch.from)?;
        if tokens.len() != length {
            let message = format_args!(
                "has {} tokens, the prompt has {length}; positions must match",
                tokens.len()
            );
            return Err(Error::new("from", message));
        }
        for &position in patch.positions.iter().flatten() {
            check_position("positions", position, length)?;
        }
        if !self.model.has(site) {
            return Err(Error::new("site", "is not in this model").value(site));
        }
        let mut other = self
            .model
            .activations(self.batch(&tokens), &[site])
            .map_err(no_room)?;
        let part = Part {
            heads: None,
            positions: patch.positions.clone(),
        };
        Ok((site, part, Edit::Replace(other.take(site))))
    }

    /// Softmax over the vocabulary at each position.
    fn probabilities(&self, logits: Tensor<3>) -> Vec<Vec<f32>> {
        let probabilities: Vec<f32> = softmax(logits, 2).into_data().iter::<f32>().collect();
        probabilities
            .chunks(self.vocabulary.len())
            .map(<[f32]>::to_vec)
            .collect()
    }
}

/// All tokens, the likeliest first.
pub(super) fn likeliest(probabilities: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    order
}

/// That a prompt of `length` tokens has a token at `position`.
pub(super) fn check_position(place: &str, position: usize, length: usize) -> Result<(), Error> {
    let outside = || {
        let message = format_args!("is not inside the prompt of {length} tokens, counted from 0");
        Error::new(place, message).value(position)
    };
    (position < length).then_some(()).ok_or_else(outside)
}
