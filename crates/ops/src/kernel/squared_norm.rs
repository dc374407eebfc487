//! `Σ x²` in one pass.

use burn::{
    backend::{Backend, Flex, backend_extension, flex::FlexTensor, tensor::FloatTensor},
    tensor::Shape,
};
use headlight_vector::{Kernel, Simd, dot, vectorised};
use rayon::prelude::*;

use super::{CHUNK, contiguous, numbers, shaped};

/// The sum as one operation, without a gradient.
#[backend_extension(Flex)]
pub(crate) trait FusedSquaredNorm: Backend {
    fn fused_squared_norm(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl FusedSquaredNorm for Flex {
    fn fused_squared_norm(x: FlexTensor) -> FlexTensor {
        let x = contiguous(x);
        // Added in the order of the chunks, so that the result is the same on any number of
        // threads.
        let chunks: Vec<f32> = numbers(&x)
            .par_chunks(CHUNK)
            .map(|chunk| vectorised(SquaredNorm(chunk)))
            .collect();
        let sum: f64 = chunks.into_iter().map(f64::from).sum();
        shaped(vec![sum as f32], Shape::new([1]))
    }
}

struct SquaredNorm<'a>(&'a [f32]);

impl Kernel for SquaredNorm<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        dot(simd, self.0, self.0)
    }
}
