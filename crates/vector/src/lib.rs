//! What the hand-written kernels share: elementary functions that vectorise, sums in lanes, and small matrix products.
//!
//! The functions are plain Rust. Called inside [`vectorised`], they are compiled once for each kind of processor and
//! the widest vectors are chosen at run time.
#![allow(clippy::inline_always, reason = "vector width is chosen outside, so loops must be compiled inside the caller")]

mod elementary;
mod lanes;
mod matrix;

pub use elementary::{erf, exp, tanh};
pub use lanes::{dot, exp_and_sum, max_of, sum_of};
pub use matrix::{Matrix, product};

/// Runs `work` compiled for the widest vectors this processor has.
#[inline(always)]
pub fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
