//! `inspect RUN activations`: activations as a file for notebooks.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use burn::tensor::Device;
use headlight_heads::SequenceKind;
use headlight_report::{Printout, Table};
use headlight_residual::{Decoder, KeptTensor, Site, activation_budget, token_tensor};
use headlight_run::{Error, ErrorKind, write_atomically};
use headlight_tasks as tasks;
use headlight_watch::{Watched, no_room};
use indicatif::{ProgressBar, ProgressStyle};
use safetensors::{Dtype, tensor::TensorView};
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb};

/// Write activations for notebooks, with the names and shapes of TransformerLens
#[derive(Debug, clap::Args)]
pub struct ActivationsVerb {
    /// Which activations; a * stands for any run of characters; may be given several times
    #[arg(long, value_name = "SITE", default_value = "*")]
    sites: Vec<String>,
    /// Tokens by name, with spaces between them; for a model of text, any text
    #[arg(long, conflicts_with = "on")]
    prompt: Option<String>,
    /// The sequences that the model reads: probe, or task for its validation sequences
    #[arg(long, value_name = "SEQUENCES", default_value_t = SequenceKind::Probe)]
    on: SequenceKind,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

impl Verb for ActivationsVerb {
    const NAME: &'static str = "activations";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let of = match &self.prompt {
            Some(prompt) => ActivationsOf::Prompt(prompt),
            None => ActivationsOf::Sequences(self.on),
        };
        let written = subject.write_activations(&self.sites, of, &self.to)?;
        out.show(&written, WrittenActivations::printout)
    }
}

/// Sequences in one forward pass: bounds what a pass needs beside the activations that are kept.
const ROWS_AT_ONCE: usize = 16;

/// What the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivationsOf<'a> {
    /// One prompt.
    Prompt(&'a str),
    /// The probe, or the validation sequences of the task.
    Sequences(SequenceKind),
}

/// What `inspect RUN activations` wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WrittenActivations {
    /// The file.
    pub file: String,
    /// The number of sequences.
    pub sequences: usize,
    /// Every activation, in the order in which a token meets them.
    pub activations: Vec<WrittenActivation>,
}

/// One activation in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenActivation {
    /// Its name in the file, which is `TransformerLens`' too.
    pub site: String,
    /// Its shape; the first axis is that of the sequences.
    pub shape: Vec<usize>,
    /// Its size in the file.
    pub bytes: usize,
}

impl Subject {
    /// Runs the model and writes the activations at `sites` to the safetensors file `to`, in f32,
    /// with the token ids as `tokens`, `[batch, pos]`, in i64. Names and shapes are those of
    /// [`Site`]; a `*` in a site stands for any run of characters.
    ///
    /// # Errors
    /// If the file exists, the model has no such site, the prompt cannot be read, or memory does not
    /// hold the activations twice: as numbers, and as the file.
    pub fn write_activations(
        &self,
        sites: &[String],
        of: ActivationsOf,
        to: &Path,
    ) -> Result<WrittenActivations, Error> {
        if to.exists() {
            let message = "exists already; choose another --to";
            return Err(Error::of(ErrorKind::Exists, to.display(), message));
        }
        let ModelParts { model, .. } = self.model()?;
        let sites = selected(&model, sites)?;
        let tokens = match of {
            ActivationsOf::Prompt(prompt) => {
                let n_ctx = self.n_ctx();
                vec![tasks::encode_prompt(&self.vocabulary()?, prompt, n_ctx)?]
            }
            ActivationsOf::Sequences(SequenceKind::Probe) => self.probe()?.tokens,
            ActivationsOf::Sequences(SequenceKind::Task) => {
                let sequences = &self.validation()?.sequences;
                Watched::new(SequenceKind::Task, sequences, &[]).tokens
            }
        };
        let gathered = gather(&model, &tokens, &sites, &self.device)?;
        let metadata = metadata(self.step()?, self.directions()?);
        let file = file_of(&tokens, &gathered, metadata)
            .map_err(|error| Error::because(ErrorKind::Internal, to.display(), error))?;
        write_atomically(to, &file)?;
        let mut activations = Vec::new();
        for Gathered { site, shape, bytes } in gathered {
            activations.push(WrittenActivation {
                site: site.to_string(),
                shape,
                bytes: bytes.len(),
            });
        }
        Ok(WrittenActivations {
            file: to.display().to_string(),
            sequences: tokens.len(),
            activations,
        })
    }
}

impl WrittenActivations {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let mut rows = Vec::new();
        for WrittenActivation { site, shape, bytes } in &self.activations {
            let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
            rows.push(vec![site.clone(), shape.join(" × "), bytes.to_string()]);
        }
        Printout::new()
            .prose(format!(
                "Written to {}: the activations of {} sequences, and their token ids as `tokens`.",
                self.file, self.sequences
            ))
            .table(Table::new(&["activation", "shape", "bytes"], rows).text_columns(2))
    }
}

/// The activation at one site in all sequences.
struct Gathered {
    site: Site,
    shape: Vec<usize>,
    /// Numbers in f32, little-endian, as the file holds them.
    bytes: Vec<u8>,
}

impl Gathered {
    /// Adds the next sequences.
    fn append(&mut self, kept: KeptTensor) {
        match self.shape.first_mut() {
            Some(sequences) => *sequences += kept.dims()[0],
            None => self.shape = kept.dims().to_vec(),
        }
        for number in kept.into_data().iter::<f32>() {
            self.bytes.extend(number.to_le_bytes());
        }
    }
}

/// The sites that the patterns name, each once, in the order in which a token meets them.
fn selected(model: &Decoder, patterns: &[String]) -> Result<Vec<Site>, Error> {
    let mut named = Vec::new();
    for pattern in patterns {
        let found = model
            .select(pattern)
            .map_err(|error| Error::because(ErrorKind::Argument, "--sites", error))?;
        named.extend(found);
    }
    let mut sites = model.sites();
    sites.retain(|site| named.contains(site));
    Ok(sites)
}

/// Runs the model over a few sequences at a time.
fn gather(
    model: &Decoder,
    tokens: &[Vec<u32>],
    sites: &[Site],
    device: &Device,
) -> Result<Vec<Gathered>, Error> {
    let mut gathered = Vec::new();
    for &site in sites {
        gathered.push(Gathered {
            site,
            shape: Vec::new(),
            bytes: Vec::new(),
        });
    }
    let bar = bar(tokens.len());
    for rows in tokens.chunks(ROWS_AT_ONCE) {
        let mut seen = model
            .activations(token_tensor(rows, device), sites)
            .map_err(no_room)?;
        if bar.position() == 0 {
            check_room(seen.bytes() / rows.len() * tokens.len())?;
        }
        for part in &mut gathered {
            part.append(seen.take(part.site));
        }
        bar.inc(rows.len() as u64);
    }
    bar.finish_and_clear();
    Ok(gathered)
}

/// That memory holds `bytes` of numbers and the file made of them.
fn check_room(bytes: usize) -> Result<(), Error> {
    let budget = activation_budget();
    if bytes.saturating_mul(2) <= budget {
        return Ok(());
    }
    let message = format_args!(
        "take {bytes} bytes, and as many again while they are written; {budget} are free for them. \
         Name fewer with --sites"
    );
    Err(Error::new("activations", message))
}

/// The sequences that are done, on a terminal.
fn bar(sequences: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} sequences  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(sequences as u64).with_style(style)
}

/// The step, if it is known, and the names of the stream's basis directions, where they have some:
/// `["start","tokens:a",…]`, as many as `d_model`.
fn metadata(
    step: Option<usize>,
    directions: Option<Vec<String>>,
) -> Option<HashMap<String, String>> {
    let mut metadata = HashMap::new();
    if let Some(step) = step {
        metadata.insert("step".to_owned(), step.to_string());
    }
    if let Some(directions) = directions {
        metadata.insert(
            "directions".to_owned(),
            serde_json::json!(directions).to_string(),
        );
    }
    Some(metadata).filter(|metadata| !metadata.is_empty())
}

/// The safetensors file of all activations and their tokens.
fn file_of(
    tokens: &[Vec<u32>],
    gathered: &[Gathered],
    metadata: Option<HashMap<String, String>>,
) -> Result<Vec<u8>, safetensors::SafeTensorError> {
    let mut ids = Vec::new();
    for &token in tokens.iter().flatten() {
        ids.extend(i64::from(token).to_le_bytes());
    }
    let shape = vec![tokens.len(), tokens.first().map_or(0, Vec::len)];
    let mut views = vec![(
        "tokens".to_owned(),
        TensorView::new(Dtype::I64, shape, &ids)?,
    )];
    for Gathered { site, shape, bytes } in gathered {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes)?;
        views.push((site.to_string(), view));
    }
    safetensors::serialize(views, metadata)
}
