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
//! assert_eq!(seen.tensor::<4>(pattern).dims(), [1, 2, 3, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A model of your own
//!
//! A Burn module whose activations pass a probe is [`Probed`]: then `headlight-lens` scores, ablates
//! and patches its heads as it does with a [`Decoder`].
//!
//! ```
//! use burn::{module::{Module, Param}, tensor::{Device, Int, Tensor, module::embedding}};
//! use headlight_attention::{Mask, MultiHeadAttention, MultiHeadAttentionConfig};
//! use headlight_heads::MayAttend;
//! use headlight_residual::{AnyProbe, AttentionSite, AttentionSizes, Edit, Edits, NoProbe, Part, Probed, Site, Sizes, attention_probed};
//!
//! /// Says of a row of numbers their mean so far, twice: once by each head.
//! #[derive(Module, Debug)]
//! struct Means {
//!     numbers: Param<Tensor<2>>, // id i is the number i
//!     attention: MultiHeadAttention,
//! }
//!
//! impl Probed for Means {
//!     fn sizes(&self) -> Sizes {
//!         Sizes { layers: vec![AttentionSizes::of(&self.attention, MayAttend::Causal)], d_model: 1, n_ctx: None, vocabulary: Some(9) }
//!     }
//!     fn device(&self) -> Device {
//!         self.numbers.device()
//!     }
//!     fn sites(&self) -> Vec<Site> {
//!         Site::of_attention(0)
//!     }
//!     fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
//!         let x = embedding(self.numbers.val(), rows);
//!         attention_probed(&self.attention, [x.clone(), x.clone(), x], &Mask::causal(), 0, probe)
//!     }
//! }
//!
//! let device = Device::flex();
//! let matrix = |rows: usize, columns: usize, value: f32| Param::from_tensor(Tensor::full([rows, columns], value, &device));
//! let mut attention = MultiHeadAttentionConfig::new(1, 2).with_d_head(1).init(&device);
//! attention.w_q.weight = matrix(1, 2, 0.0); // every key matches equally
//! attention.w_v.weight = matrix(1, 2, 1.0);
//! attention.w_o.weight = matrix(2, 1, 1.0);
//! let numbers = Tensor::<1, Int>::arange(0..9, &device).float().reshape([9, 1]);
//! let model = Means { numbers: Param::from_tensor(numbers), attention };
//!
//! let rows = Tensor::<2, Int>::from_ints([[1, 3, 8]], &device);
//! let z = Site::Attention(0, AttentionSite::Z);
//! let seen = model.activations(rows.clone(), &[z])?;
//! assert_eq!(seen.tensor::<4>(z).into_data().to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]); // each mean by each head
//! assert_eq!(model.forward_probed(rows.clone(), &mut NoProbe).into_data().to_vec::<f32>()?, [2.0, 4.0, 8.0]);
//! // Without one of two equal heads half is left.
//! let mut without = Edits::default().part(z, Part::heads(&[0]), Edit::Zero);
//! assert_eq!(model.forward_probed(rows.clone(), &mut without).into_data().to_vec::<f32>()?, [1.0, 2.0, 4.0]);
//! let error = model.activations(rows, &["blocks.0.hook_mlp_out".parse()?]).unwrap_err();
//! assert_eq!(error.to_string(), "blocks.0.hook_mlp_out is not in Means");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The cargo feature `exchange` adds reading and writing models for `transformers` and
//! `TransformerLens`. Nothing else depends on it.

mod activation;
mod activations;
mod argmax;
mod attention_probed;
mod block;
mod by_layer;
mod check_probed;
mod cost;
mod decoder;
mod decoder_config;
mod edit;
#[cfg(feature = "exchange")]
mod exchange;
mod feed_forward;
mod generate;
mod head_weights;
mod initialize;
mod kept_tensor;
mod layer_attention;
mod leaves;
mod logits_in_parts;
mod norm;
mod parameters;
mod positions;
mod probe;
mod probed;
mod probed_decoder;
mod process;
mod readout;
mod sampling;
mod select;
mod site;
mod targets;
mod tensor_file;
mod token_tensor;
mod weights;
mod weights_hash;

pub use activation::Activation;
pub use activations::{Activations, ActivationsError, activation_budget};
pub use argmax::argmax;
pub use attention_probed::attention_probed;
pub use block::{Block, BlockOrder, NormPlacement};
pub use by_layer::TakeLayer;
pub use check_probed::{NotAsSaid, check_probed};
pub use cost::PartCost;
pub use decoder::Decoder;
pub use decoder_config::DecoderConfig;
pub use edit::{Edit, Edits, Part};
#[cfg(feature = "exchange")]
pub use exchange::{
    ExchangeError, ExportedFiles, Gguf, expected_of, from_huggingface, huggingface_config,
    to_huggingface, to_transformer_lens,
};
pub use feed_forward::{FeedForward, FeedForwardKind, GatedFeedForward, PlainFeedForward};
pub use generate::{Ending, GenerateError, Generated, GeneratedTexts, Generation, NextToken};
pub use head_weights::{AttentionWeights, CircuitWeights, CircuitWeightsError};
pub use initialize::Initialization;
pub use kept_tensor::KeptTensor;
pub use layer_attention::{LayerAttention, ReadingMatrices};
pub use leaves::Leaves;
pub use norm::{LayerNorm, Norm, NormKind, RmsNorm};
pub use parameters::ParameterPath;
pub use positions::{Positions, RotaryPositions, sinusoids};
pub use probe::{AnyProbe, Capture, Interest, NoProbe, Probe, visit};
pub use probed::{AttentionSizes, Probed, Sizes, site_of_heads};
pub use process::ProcessError;
pub use readout::Readout;
pub use sampling::{Sampling, SamplingError};
pub use site::{AttentionSite, BlockSite, MlpSite, NormSite, Projection, Site, UnknownSite};
pub use targets::Targets;
pub use token_tensor::token_tensor;
pub use weights::{
    WeightsError, tensors_from_bytes, tensors_to_bytes, weights_from_bytes, weights_to_bytes,
};

pub use headlight_ops::{NextTokenScores, score_against, score_next_tokens};

/// Compiles and runs the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
