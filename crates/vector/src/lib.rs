//! Functions that the hand-written kernels share: elementary functions that vectorise, sums in
//! lanes, and small matrix products.
//!
//! The functions are plain Rust. Called inside [`vectorised`], they are compiled once for each kind
//! of processor, and the program chooses the widest vectors at run time.
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

mod block;
mod elementary;
#[cfg(test)]
mod for_tests;
mod lanes;
mod matrix;
mod panels;
mod transpose;

pub use block::{BLOCK, Onto, block_product};
pub use elementary::{erf, exp, gauss, ln, mul_add, sigmoid, tanh};
pub use lanes::{
    LANES, WIDEST, add_rows, all_finite, dot, entropy, exp_and_sum, max_of, sum_of, sum_of_rows,
};
pub use matrix::{Matrix, new_product, product};
pub use panels::{DEPTH, Panels, panel_product};
pub use pulp::Simd;
pub use transpose::transpose;

/// Loops over numbers, with their arguments as fields.
///
/// `run` and every function and closure that it calls must be marked `#[inline(always)]`: a
/// function that is compiled on its own is compiled for the narrowest vectors.
pub trait Kernel {
    /// The result of the loops.
    type Output;

    /// Runs the loops with the instructions of a kind of processor, which `simd` stands for.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs a kernel compiled for the widest vectors this processor has.
#[inline(always)]
pub fn vectorised<K: Kernel>(kernel: K) -> K::Output {
    struct Call<K>(K);
    impl<K: Kernel> pulp::WithSimd for Call<K> {
        type Output = K::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> K::Output {
            self.0.run(simd)
        }
    }
    pulp::Arch::new().dispatch(Call(kernel))
}
