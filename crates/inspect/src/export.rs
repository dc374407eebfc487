//! `inspect RUN export`: the model as files for other tools.

use std::path::{Path, PathBuf};

use headlight_residual::{ExportedFiles, expected_of, to_huggingface, to_transformer_lens};
use headlight_run::{Error, ErrorKind, write_atomically};
use headlight_tasks as tasks;
use headlight_watch::Batch;

use super::{Limit, ModelParts, Output, Part, Subject, Verb};

/// Write the model and its tokenizer for other tools
#[derive(Debug, clap::Args)]
pub struct ExportVerb {
    /// The folder to write into
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Only this form [default: all that the architecture has]
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
}

impl Verb for ExportVerb {
    const NAME: &'static str = "export";
    const PARTS: &'static [Part] = &[
        Part::everywhere("TransformerLens"),
        Part {
            name: "transformers",
            limits: &[Limit {
                on: OF_NO_FAMILY,
                says: "no folder for transformers: the model is of no family of transformers",
            }],
        },
    ];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let files = subject.export(&self.to, self.format)?;
        let names: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        out.show_text(&names, &names, Vec::new(), |names| names.join("\n"))
    }
}

/// Of the architectures that verbs are tried on, those that no family of `transformers` has.
const OF_NO_FAMILY: &[&str] = &[
    "attention only",
    "post-norm",
    "post-norm, no MLP",
    "RMS norm",
    "no norm",
    "grouped queries",
    "window",
    "rotary",
    "ALiBi",
    "sinusoidal",
    "no positions",
];

/// Sequences whose logits and patterns go with an exported model.
const EXPECTED_SEQUENCES: usize = 4;

/// Which form a model is exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A folder for transformers, of the family that has the model's parts
    Huggingface,
    /// Weights with `TransformerLens`' names
    TransformerLens,
}

impl Subject {
    /// Writes the model and its tokenizer into the folder `to` for other tools, with what it says of
    /// a few sequences of its task, and gives the files written.
    ///
    /// # Errors
    /// If the model has no such form, or a file is there already.
    pub fn export(&self, to: &Path, format: Option<ExportFormat>) -> Result<Vec<PathBuf>, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let wrong = |error| Error::because(ErrorKind::Argument, "export", error);
        let mut files = Vec::new();
        let mut left_out = Vec::new();
        if format != Some(ExportFormat::TransformerLens) {
            match to_huggingface(&model) {
                Ok(exported) => files.extend(named(exported, "config.json", "model.safetensors")),
                Err(error) if format.is_some() => return Err(wrong(error)),
                Err(error) => left_out.push(format!("no folder for transformers: {error}")),
            }
        }
        if format != Some(ExportFormat::Huggingface) {
            let names = ["transformer_lens.json", "transformer_lens.safetensors"];
            match to_transformer_lens(&model) {
                Ok(exported) => files.extend(named(exported, names[0], names[1])),
                Err(error) if format.is_some() => return Err(wrong(error)),
                Err(error) => left_out.push(format!("no weights for TransformerLens: {error}")),
            }
        }
        let names = serde_json::to_vec_pretty(&vocabulary)
            .map_err(|error| Error::because(ErrorKind::Internal, "export", error))?;
        files.push(("vocabulary.json", names));
        let tokenizer = tasks::tokenizer_json(&self.vocabulary()?);
        let config = tokenizer_config(self.n_ctx());
        files.push(("tokenizer.json", tokenizer.into_bytes()));
        files.push(("tokenizer_config.json", config.into_bytes()));
        let sequences = &self.validation()?.sequences;
        let sequences = &sequences[..sequences.len().min(EXPECTED_SEQUENCES)];
        let tokens = Batch::new(sequences, &self.device).inputs;
        files.push((
            "expected.safetensors",
            expected_of(&model, tokens).map_err(wrong)?,
        ));
        let files: Vec<(PathBuf, Vec<u8>)> = files
            .into_iter()
            .map(|(name, bytes)| (to.join(name), bytes))
            .collect();
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(Error::of(
                ErrorKind::Exists,
                path.display(),
                "exists already; choose another --to",
            ));
        }
        std::fs::create_dir_all(to).map_err(|error| Error::io(to, "create", error))?;
        files
            .iter()
            .try_for_each(|(path, bytes)| write_atomically(path, bytes))?;
        for reason in left_out {
            tracing::warn!("{reason}");
        }
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }
}

/// What `AutoTokenizer` asks of a folder beside `tokenizer.json`. A special token that is written in
/// a text is text, as in the run.
fn tokenizer_config(n_ctx: usize) -> String {
    let config = serde_json::json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": n_ctx,
        "clean_up_tokenization_spaces": false,
        "split_special_tokens": true,
    });
    format!("{config:#}\n")
}

fn named(
    exported: ExportedFiles,
    config: &'static str,
    weights: &'static str,
) -> [(&'static str, Vec<u8>); 2] {
    [
        (config, exported.config.into_bytes()),
        (weights, exported.weights),
    ]
}
