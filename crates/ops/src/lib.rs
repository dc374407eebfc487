//! The operations of a transformer beside attention's scores and weights: linear maps, norms,
//! activations, the loss, and the optimizer's step.
//!
//! Each is written once as plain tensor operations, which say what it means, and once as a kernel
//! for Burn's CPU backend Flex with a hand-written backward pass: one pass over memory instead of
//! many. Which of the two runs shows nowhere but in the time.

mod adamw;
mod cross_entropy;
mod gelu;
#[cfg(feature = "flex")]
mod kernel;
mod layer_norm;
mod linear;
mod rms_norm;
mod swiglu;

pub use adamw::{AdamWStep, adamw};
pub use cross_entropy::cross_entropy;
pub use gelu::{gelu, gelu_tanh};
pub use layer_norm::layer_norm;
pub use linear::{apply, linear};
pub use rms_norm::rms_norm;
pub use swiglu::swiglu;
