//! Models in GGUF files, the format of llama.cpp.

mod architecture;
mod bytes;
mod gemma;
mod gpt2;
mod gpt_neox;
mod header;
mod llama;
mod metadata;
mod model_keys;
mod names;
mod olmo2;
mod phi3;
mod qwen;
mod sentencepiece;
mod tokenizer;

use std::path::Path;

use burn::tensor::{Device, TensorData};

use self::{
    architecture::{ARCHITECTURES, Architecture},
    header::Header,
    model_keys::ModelKeys,
};
use super::{ExchangeError, check_backed, check_sizes, correspondence, laid_out};
use crate::{Decoder, DecoderConfig};

const ARCHITECTURE: &str = "general.architecture";

/// A GGUF file (version 2 or 3): its header is read, its tensors are still in the file.
///
/// The architectures `llama` (also that of Mistral and `SmolLM`), `qwen2`, `qwen3`, `phi3`, `olmo2`,
/// `gemma2`, `gemma3`, `gpt2` and `gptneox` (also that of Pythia) are read. Tensors may be of the types F32, F16, BF16, `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1`, `Q8_0`, `Q2_K` to `Q6_K`,
/// `IQ4_NL`, `IQ4_XS` and `MXFP4`; they become f32 when the model is made, by the formulas of the Python package `gguf`, bit for bit.
///
/// Every key of the architecture is read or refused, and so is every tensor. The file must not be
/// cut short while it is open.
///
/// ```no_run
/// use burn::tensor::{Device, TensorData};
/// use headlight_residual::Gguf;
///
/// let file = Gguf::open("SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
/// assert_eq!(file.config()?.n_layers, 30);
/// let model = file.model(&Device::flex())?;
/// # Ok::<(), headlight_residual::ExchangeError>(())
/// ```
#[derive(Debug)]
pub struct Gguf {
    header: Header,
}

impl Gguf {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it is no GGUF file, a tensor does not lie in it, or is of a type that is not supported.
    pub fn open(path: &Path) -> Result<Self, ExchangeError> {
        Ok(Self {
            header: header::read(path)?,
        })
    }

    /// The sizes and parts of the model.
    ///
    /// # Errors
    /// Names the key whose value this crate's decoder cannot have.
    pub fn config(&self) -> Result<DecoderConfig, ExchangeError> {
        let Header { metadata, tensors } = &self.header;
        let kind = metadata.text("general.type")?;
        if !matches!(kind, None | Some("model")) {
            return Err(metadata.refused("general.type", "must be model"));
        }
        let split = "split.count";
        if metadata.has(split) && metadata.size(split)? != Some(1) {
            return Err(metadata.refused(split, "is not supported: the model must be in one file"));
        }
        let architecture = self.architecture()?;
        let config = (architecture.read_config)(&ModelKeys {
            architecture: architecture.name,
            metadata,
            tensors,
        })?;
        metadata.check_all_read(says_nothing_of_the_model)?;
        Ok(config)
    }

    /// The model, in f32.
    ///
    /// # Errors
    /// Names the key or the tensor that is wrong, is missing or has no place in the model.
    pub fn model(&self, device: &Device) -> Result<Decoder, ExchangeError> {
        let (architecture, config) = (self.architecture()?, self.config()?);
        let metadata = &self.header.metadata;
        let file = metadata.path().display().to_string();
        let parameters = check_sizes(&config, &file)?;
        let mut tensors = self.header.tensors.clone();
        for tensor in architecture.rotation {
            tensors.remove(*tensor);
        }
        check_backed(&config, parameters, &tensors, &file)?;
        for (name, tensor) in &mut tensors {
            tensor.paired_heads = architecture.paired_heads(name, &config);
        }
        let model = laid_out(&config, device, &file)?;
        correspondence::import(model, &architecture.correspondences(&config), tensors)
    }

    fn architecture(&self) -> Result<&'static Architecture, ExchangeError> {
        let metadata = &self.header.metadata;
        let name = metadata.text(ARCHITECTURE)?;
        let is_named = |architecture: &&&Architecture| Some(architecture.name) == name;
        let found = ARCHITECTURES.iter().find(is_named);
        found.copied().ok_or_else(|| {
            let names = ARCHITECTURES.map(|architecture| architecture.name);
            let reason = format!("is not supported; these are: {}", names.join(", "));
            metadata.refused(ARCHITECTURE, &reason)
        })
    }

    /// The names of the tensors, in alphabetical order.
    pub fn tensors(&self) -> impl Iterator<Item = &str> {
        self.header.tensors.keys().map(String::as_str)
    }

    /// A tensor as it is stored, in f32; rows first, as in `PyTorch`.
    ///
    /// # Errors
    /// If the file has no tensor of this name.
    pub fn tensor(&self, name: &str) -> Result<TensorData, ExchangeError> {
        match self.header.tensors.get(name) {
            Some(tensor) => Ok(tensor.read()),
            None => Err(ExchangeError::Missing(name.to_owned())),
        }
    }

    /// The tokenizer, as the text of a `tokenizer.json`; `None` if the file has none.
    ///
    /// # Errors
    /// Names the kind of tokenizer, or the rule that splits text, if it is not supported.
    pub fn tokenizer(&self) -> Result<Option<String>, ExchangeError> {
        tokenizer::read(&self.header.metadata)
    }
}

/// Keys about who made the file, how it is stored, and how text is cut.
fn says_nothing_of_the_model(key: &str) -> bool {
    let prefixes = ["general.", "tokenizer.", "quantize.", "imatrix.", "split."];
    prefixes.iter().any(|prefix| key.starts_with(prefix))
}
