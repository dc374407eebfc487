//! The residual stream: a bus that every block reads from and adds to.
//!
//! ```text
//! x  = W_E[token] + W_pos[position]
//! x ← x + attention(norm(x))        for each block: its heads read other positions
//! x ← x + feed_forward(norm(x))     if the block has one: it reads the position alone
//! logits = norm(x)·W_U
//! ```
//!
//! No block overwrites the stream: the final stream is the sum of the embeddings and of all outputs
//! of the blocks (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"). Every
//! activation has a name ([`Site`]) and passes a [`Probe`] that may read or change it.
//!
//! ```
//! use burn::tensor::Device;
//! use headlight_residual::{DecoderConfig, Site, token_tensor};
//!
//! let device = Device::flex();
//! let model = DecoderConfig { vocabulary: 5, n_ctx: 4, d_model: 8, n_layers: 1, n_heads: 2, ..Default::default() }
//!     .try_init(0, &device)?;
//! let pattern: Site = "blocks.0.attn.hook_pattern".parse()?;
//! let seen = model.activations(token_tensor(&[[1, 2, 3]], &device), &[pattern])?;
//! assert_eq!(seen.logits.dims(), [1, 3, 5]);
//! assert_eq!(seen.tensor::<4>(pattern).dims(), [1, 2, 3, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The cargo feature `exchange` adds reading and writing models for `transformers` and
//! `TransformerLens`. Nothing else depends on it.

mod activation;
mod activations;
mod argmax;
mod block;
mod cost;
mod decoder;
mod decoder_config;
mod edit;
#[cfg(feature = "exchange")]
mod exchange;
mod feed_forward;
mod generate;
mod initialize;
mod kept_tensor;
mod leaves;
mod next_token;
mod norm;
mod parameters;
mod positions;
mod probe;
mod process;
mod sampling;
mod select;
mod site;
mod tensor_file;
mod token_tensor;
mod weights;

pub use activation::Activation;
pub use activations::{Activations, ActivationsError, activation_budget};
pub use argmax::argmax;
pub use block::{Block, BlockOrder, NormPlacement};
pub use cost::PartCost;
pub use decoder::Decoder;
pub use decoder_config::DecoderConfig;
pub use edit::{Edit, Edits, Part};
#[cfg(feature = "exchange")]
pub use exchange::{
    ExchangeError, ExportedFiles, Gguf, expected_of, from_huggingface, to_huggingface,
    to_transformer_lens,
};
pub use feed_forward::{FeedForward, FeedForwardKind, GatedFeedForward, PlainFeedForward};
pub use generate::{Ending, GenerateError, Generated, GeneratedTexts, Generation, NextToken};
pub use initialize::Initialization;
pub use kept_tensor::KeptTensor;
pub use leaves::Leaves;
pub use next_token::{is_right, summed_loss};
pub use norm::{LayerNorm, Norm, NormKind, RmsNorm};
pub use parameters::ParameterPath;
pub use positions::{Positions, RotaryPositions, sinusoids};
pub use probe::{Capture, Interest, NoProbe, Probe};
pub use process::ProcessError;
pub use sampling::{Sampling, SamplingError};
pub use site::{AttentionSite, BlockSite, MlpSite, NormSite, Site, UnknownSite};
pub use token_tensor::token_tensor;
pub use weights::{
    WeightsError, tensors_from_bytes, tensors_to_bytes, weights_from_bytes, weights_to_bytes,
};

/// Compiles and runs the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
