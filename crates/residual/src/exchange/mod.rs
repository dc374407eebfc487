//! Models to and from other tools.
//!
//! | format | out | in |
//! |---|---|---|
//! | Hugging Face folder of a GPT-2, GPT-NeoX, Llama, Mistral, Qwen 2, Qwen 3, Phi-3, `OLMo` 2, Gemma 2 or Gemma 3 | [`to_huggingface`] | [`from_huggingface`] |
//! | GGUF file of these families | | [`Gguf`] |
//! | `TransformerLens` weight names | [`to_transformer_lens`] | |
//!
//! Each correspondence is one list of names and layouts, which serves both directions.

mod blocks;
mod correspondence;
mod expected;
mod family;
mod folder;
mod gemma;
mod gguf;
mod gpt2;
mod gpt_neox;
mod keys;
mod llama;
mod llama_keys;
mod llama_tensors;
mod olmo2;
mod phi3;
mod qwen;
mod rotary_keys;
mod shapes;
mod stored_tensor;
mod tensor_type;
mod transformer_lens;
mod window_keys;

use std::{collections::BTreeMap, path::Path};

use burn::tensor::{Device, TensorData};
use headlight_attention::ConfigError;
use serde_json::{Value, json};

pub use expected::expected_of;
pub use gguf::Gguf;
pub use transformer_lens::to_transformer_lens;

use crate::{Decoder, DecoderConfig, parameters::Mismatch, tensor_file::serialize};
use correspondence::{Correspondence, named_as_in};
use family::{FAMILIES, Family, family_of};
use keys::Keys;
use stored_tensor::StoredTensor;

/// The most parameters that are made room for: far above any mini-transformer. What is promised of
/// hostile files stands in `headlight-run`, module `untrusted`.
const MOST_PARAMETERS: usize = 1 << 30;
/// The file of a folder that describes the model.
const CONFIG: &str = "config.json";
/// Our name of the embedding.
const EMBEDDING: &str = "w_e";
/// So many parameters are made room for in any case: what is wrong with a small model is then named
/// by its tensor.
const ALWAYS_ROOM: usize = 1 << 20;

/// The reason why a model could not be imported or exported.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// A file cannot be read, or its content has another format than its name says.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// A key of `config.json` has a value that a model of this crate cannot have.
    #[error("config.json: {key} = {value}: {reason}")]
    Config {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// A value in the header of a GGUF file is one that a model of this crate cannot have.
    #[error("{file}: {key} = {value}: {reason}")]
    Metadata {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// The sizes that a file describes do not fit together.
    #[error("{file}: {reason}")]
    Sizes {
        /// The file.
        file: String,
        /// The numbers that do not.
        #[source]
        reason: ConfigError,
    },
    /// The file lacks a tensor of the model.
    #[error("there is no tensor {0}")]
    Missing(String),
    /// The file has a tensor that has no place in the model.
    #[error("there is a tensor {0}, which the model has no place for")]
    LeftOver(String),
    /// A tensor has another shape than the model's.
    #[error("tensor {name} has shape {found:?}, the model needs {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
    },
    /// A tensor has numbers that a model of this crate cannot have.
    #[error("tensor {name} {reason}")]
    Tensor {
        /// The tensor.
        name: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// The model is of no family that `transformers` has.
    #[error(
        "the model is of no family of transformers; the nearest is {nearest}, which has other: {parts}"
    )]
    NoSuchFamily {
        /// The `model_type` of the family with the fewest other parts.
        nearest: String,
        /// These parts.
        parts: String,
    },
    /// `TransformerLens` has no such part.
    #[error("TransformerLens has no {0}")]
    NotInTransformerLens(&'static str),
}

impl From<Mismatch> for ExchangeError {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::Missing(name) => Self::Missing(name),
            Mismatch::LeftOver(name) => Self::LeftOver(name),
            Mismatch::Shape {
                name,
                found,
                expected,
            } => Self::Shape {
                name,
                found,
                expected,
            },
        }
    }
}

/// The files of an exported model.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFiles {
    /// `config.json`
    pub config: String,
    /// `model.safetensors`
    pub weights: Vec<u8>,
}

impl ExportedFiles {
    fn new(config: &Value, tensors: &BTreeMap<String, TensorData>) -> Result<Self, ExchangeError> {
        // transformers requires this entry, which names the library of the tensors.
        let metadata = [("format".to_owned(), "pt".to_owned())].into();
        let weights = serialize(tensors, Some(metadata)).map_err(|reason| ExchangeError::File {
            file: "model.safetensors".to_owned(),
            reason,
        })?;
        Ok(Self {
            config: format!("{config:#}\n"),
            weights,
        })
    }
}

/// Exports the model as a Hugging Face folder of the first family that has all its parts, of GPT-2,
/// GPT-NeoX, Llama, Mistral, Qwen 2, Qwen 3, Phi-3, `OLMo` 2, Gemma 2 and Gemma 3.
///
/// A family has a part if it is still there when the configuration is written and read back. The
/// file has zeros for biases that the model lacks, if no family lacks them too.
///
/// # Errors
/// Names the family that is nearest, and the parts that it has otherwise.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::{DecoderConfig, to_huggingface};
///
/// let attention_only = DecoderConfig::default().try_init(0, &Device::flex())?;
/// let error = to_huggingface(&attention_only).unwrap_err().to_string();
/// assert_eq!(
///     error,
///     "the model is of no family of transformers; the nearest is gpt2, which has other: feed-forward"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_huggingface(model: &Decoder) -> Result<ExportedFiles, ExchangeError> {
    let (family, kept) = family_of(model.config())?;
    if model.b_u.is_some() {
        return Err(ExchangeError::NoSuchFamily {
            nearest: family.model_type.to_owned(),
            parts: "biases of the unembedding".to_owned(),
        });
    }
    let config = Value::Object(family.file(model.config()));
    let tensors = correspondence::export(model, &(family.entries)(&kept))?;
    ExportedFiles::new(&config, &tensors)
}

/// Imports the model of a Hugging Face folder of one of the families of [`to_huggingface`]:
/// `config.json` and `model.safetensors`, or the shards that `model.safetensors.index.json` lists, in
/// f32, f16 or bf16.
///
/// Every key of `config.json` is read, is known not to change what the model computes, or is
/// refused; every tensor is read or refused, but the masks and angles that old versions of
/// `transformers` stored under known names in known shapes. With `tie_word_embeddings` an
/// `lm_head.weight` may be in the file only if it equals the embedding. A `model.safetensors` wins over an index beside it,
/// as in `transformers`.
///
/// # Errors
/// Names the file, the key of the configuration, or the tensor that is missing, is left over or has
/// the wrong shape.
///
/// ```no_run
/// use burn::tensor::Device;
/// use headlight_residual::from_huggingface;
///
/// let model = from_huggingface("gpt2".as_ref(), &Device::flex())?;
/// # Ok::<(), headlight_residual::ExchangeError>(())
/// ```
pub fn from_huggingface(folder: &Path, device: &Device) -> Result<Decoder, ExchangeError> {
    let config = folder::read_config(folder)?;
    let mut keys = Keys::of_file(&config);
    let (family, decoder) = described(&mut keys)?;
    let parameters = check_sizes(&decoder, CONFIG)?;
    let buffer = |name: &str| (family.shape_of_buffer)(name, &decoder);
    let mut tensors = folder::read_tensors(folder, &buffer)?;
    check_backed(&decoder, parameters, &tensors, CONFIG)?;
    if let Some(other) = family.other_head
        && !tensors.contains_key(family.head)
        && let Some(head) = tensors.remove(other)
    {
        tensors.insert(family.head.to_owned(), head);
    }
    let entries = named_as_in(&tensors, family.prefix, (family.entries)(&decoder));
    if decoder.tied_embedding {
        take_tied_head(&mut tensors, family.head, &entries, &keys)?;
    }
    let model = laid_out(&decoder, device, CONFIG)?;
    correspondence::import(model, &entries, tensors)
}

/// The sizes and parts of the model of a Hugging Face folder, by its `config.json` alone.
///
/// # Errors
/// As [`from_huggingface`], of which this is the first part.
///
/// ```no_run
/// use headlight_residual::huggingface_config;
///
/// assert_eq!(huggingface_config("gpt2".as_ref())?.n_layers, 12);
/// # Ok::<(), headlight_residual::ExchangeError>(())
/// ```
pub fn huggingface_config(folder: &Path) -> Result<DecoderConfig, ExchangeError> {
    let config = folder::read_config(folder)?;
    let (_, decoder) = described(&mut Keys::of_file(&config))?;
    check_sizes(&decoder, CONFIG)?;
    Ok(decoder)
}

/// The family of the model that these keys describe, and its sizes and parts.
fn described(keys: &mut Keys<'_>) -> Result<(&'static Family, DecoderConfig), ExchangeError> {
    let model_type = keys.text("model_type")?;
    let is_named = |family: &&&Family| Some(family.model_type) == model_type;
    let Some(family) = FAMILIES.iter().find(is_named) else {
        let names = FAMILIES.map(|family| family.model_type).join(", ");
        let reason = format!("must be one of {names}");
        return Err(keys.refused("model_type", &json!(model_type), &reason));
    };
    let decoder = (family.read_config)(keys)?;
    keys.check_all_read()?;
    Ok((family, decoder))
}

/// A tied head may lie in the file too if it equals the embedding. One that differs is refused, since
/// it depends on the version what `transformers` makes of it: version 4 reads the embedding alone,
/// version 5.24 reads both, does not tie them, and warns.
fn take_tied_head(
    tensors: &mut BTreeMap<String, StoredTensor>,
    head_name: &str,
    entries: &[Correspondence],
    keys: &Keys<'_>,
) -> Result<(), ExchangeError> {
    let Some(head) = tensors.remove(head_name) else {
        return Ok(());
    };
    let embedding = entries.iter().find(|entry| entry.ours == [EMBEDDING]);
    let Some(embedding) = embedding.map(|entry| &entry.theirs) else {
        return Ok(());
    };
    match tensors.get(embedding) {
        Some(values) if !are_equal(&values.read(), &head.read()) => {
            let reason = format!("{head_name} differs from {embedding}; with false both are read");
            Err(keys.refused("tie_word_embeddings", &json!(true), &reason))
        }
        _ => Ok(()),
    }
}

/// The same shape and numbers. Zeros of both signs are equal, and NaN equals nothing.
fn are_equal(a: &TensorData, b: &TensorData) -> bool {
    a.shape() == b.shape() && a.iter::<f32>().eq(b.iter::<f32>())
}

/// The model that `file` describes, without its matrices.
fn laid_out(
    decoder: &DecoderConfig,
    device: &Device,
    file: &str,
) -> Result<Decoder, ExchangeError> {
    let model = decoder.try_lay_out(device);
    model.map_err(|reason| wrong_sizes(file, reason))
}

/// The number of parameters, if the sizes fit together and are not too large.
fn check_sizes(decoder: &DecoderConfig, file: &str) -> Result<usize, ExchangeError> {
    let fit = decoder.validate();
    fit.map_err(|reason| wrong_sizes(file, reason))?;
    let parameters = decoder.parameters();
    if parameters > MOST_PARAMETERS {
        let reason = format!("describes {parameters} parameters, more than {MOST_PARAMETERS}");
        return Err(too_large(file, reason));
    }
    Ok(parameters)
}

/// Checks that the tensors can fill the sizes of the configuration before memory is allocated for
/// them.
fn check_backed(
    decoder: &DecoderConfig,
    parameters: usize,
    tensors: &BTreeMap<String, StoredTensor>,
    file: &str,
) -> Result<(), ExchangeError> {
    if decoder.n_layers > tensors.len() {
        let (layers, tensors) = (decoder.n_layers, tensors.len());
        let reason = format!("describes {layers} layers, there are {tensors} tensors");
        return Err(too_large(file, reason));
    }
    let stored: usize = tensors.values().map(StoredTensor::count).sum();
    if parameters > stored.max(ALWAYS_ROOM) {
        let reason = format!("describes {parameters} parameters, the tensors hold {stored}");
        return Err(too_large(file, reason));
    }
    Ok(())
}

fn wrong_sizes(file: &str, reason: ConfigError) -> ExchangeError {
    ExchangeError::Sizes {
        file: file.to_owned(),
        reason,
    }
}

fn too_large(file: &str, reason: String) -> ExchangeError {
    ExchangeError::File {
        file: file.to_owned(),
        reason,
    }
}
