//! `Σ x²`, and `x + y` with `Σ (x + y)²`, in one pass each.

use burn::{
    backend::{Backend, Flex, backend_extension, flex::FlexTensor, tensor::FloatTensor},
    tensor::Shape,
};
use headlight_vector::{Kernel, Simd, dot, vectorised};
use rayon::prelude::*;

use super::{CHUNK, contiguous, numbers, own, shaped};

/// The sums as operations without a gradient.
#[backend_extension(Flex)]
pub(crate) trait FusedSquaredNorm: Backend {
    fn fused_squared_norm(x: FloatTensor<Self>) -> FloatTensor<Self>;
    fn fused_sum_with_squared_norm(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

impl FusedSquaredNorm for Flex {
    fn fused_squared_norm(x: FlexTensor) -> FlexTensor {
        let x = contiguous(x);
        let chunks = numbers(&x)
            .par_chunks(CHUNK)
            .map(|chunk| vectorised(SquaredNorm(chunk)))
            .collect();
        in_order(chunks)
    }

    fn fused_sum_with_squared_norm(x: FlexTensor, y: FlexTensor) -> (FlexTensor, FlexTensor) {
        let (mut x, y) = (own(x), contiguous(y));
        let chunks = x
            .storage_mut::<f32>()
            .par_chunks_mut(CHUNK)
            .zip(numbers(&y).par_chunks(CHUNK))
            .map(|(x, y)| vectorised(AddedNorm { x, y }))
            .collect();
        (x, in_order(chunks))
    }
}

/// The sum of the chunks in their order, so that the result is the same on any number of threads.
fn in_order(chunks: Vec<f32>) -> FlexTensor {
    let sum: f64 = chunks.into_iter().map(f64::from).sum();
    shaped(vec![sum as f32], Shape::new([1]))
}

struct SquaredNorm<'a>(&'a [f32]);

impl Kernel for SquaredNorm<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        dot(simd, self.0, self.0)
    }
}

/// Adds `y` to `x` and returns the squared norm of the sum.
struct AddedNorm<'a> {
    x: &'a mut [f32],
    y: &'a [f32],
}

impl Kernel for AddedNorm<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        for (x, y) in self.x.iter_mut().zip(self.y) {
            *x += y;
        }
        // The chunk is still in the cache.
        dot(simd, self.x, self.x)
    }
}
