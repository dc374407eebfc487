//! The operations of a transformer apart from attention's scores and weights: linear maps, norms,
//! activations, the loss, and the optimizer's step.
//!
//! Each operation is written twice. Plain tensor operations define it. A kernel for Burn's CPU
//! backend Flex, with a hand-written backward pass, computes the same numbers in one pass over
//! memory.

mod adamw;
mod cross_entropy;
mod feed_forward;
mod gelu;
#[cfg(feature = "flex")]
mod kernel;
mod layer_norm;
mod linear;
mod linear_cross_entropy;
mod rms_norm;
mod score_next_tokens;
mod squared_norm;
mod swiglu;

pub use adamw::{AdamWStep, adamw};
pub use cross_entropy::cross_entropy;
pub use feed_forward::{gelu_feed_forward, gelu_tanh_feed_forward};
pub use gelu::{gelu, gelu_tanh};
pub use layer_norm::layer_norm;
pub use linear::{apply, linear};
pub use linear_cross_entropy::linear_cross_entropy;
pub use rms_norm::rms_norm;
pub use score_next_tokens::{NextTokenScores, score_against, score_next_tokens};
pub use squared_norm::{squared_norm, sum_with_squared_norm};
pub use swiglu::swiglu;

/// The number of rows in a block. It is fixed, so that sums over rows are added in the same order
/// on any number of threads.
const ROWS: usize = 64;
