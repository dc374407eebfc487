//! `x·W + b`: one matrix product over all rows each way.

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{Kernel, Matrix, Simd, new_product, vectorised};

use super::{matrix, numbers, shaped, width};

/// The tensors that forward saved.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub x: FlexTensor,
    pub weight: FlexTensor,
}

/// The weight may be a transposed view, as that of a tied unembedding: it is read where it lies.
pub(crate) fn forward(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: Option<&FlexTensor>,
) -> FlexTensor {
    let mut shape = x.layout().shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = width(weight);
    shaped(
        new_product(rows(x), matrix(weight), bias.map(numbers)),
        shape,
    )
}

/// `dx = upstream·Wᵀ`
pub(crate) fn backward_x(saved: &Saved, upstream: &FlexTensor) -> FlexTensor {
    let product = new_product(rows(upstream), rows(&saved.weight).transposed(), None);
    shaped(product, saved.x.layout().shape().clone())
}

/// `dW = xᵀ·upstream`, over all rows at once.
pub(crate) fn backward_weight(saved: &Saved, upstream: &FlexTensor) -> FlexTensor {
    let product = new_product(rows(&saved.x).transposed(), rows(upstream), None);
    shaped(product, saved.weight.layout().shape().clone())
}

/// `db = Σ upstream` over all rows.
pub(crate) fn backward_bias(upstream: &FlexTensor) -> FlexTensor {
    let width = width(upstream);
    let mut sums = vec![0.0; width];
    vectorised(SumOfRows {
        sums: &mut sums,
        rows: numbers(upstream),
    });
    shaped(sums, Shape::new([width]))
}

/// The rows of all sequences, one after the other.
pub(crate) fn rows(tensor: &FlexTensor) -> Matrix<'_> {
    let (numbers, width) = (numbers(tensor), width(tensor));
    Matrix::dense(numbers, numbers.len() / width, width)
}

/// Adds each row to `sums`.
pub(crate) struct SumOfRows<'a> {
    pub sums: &'a mut [f32],
    pub rows: &'a [f32],
}

impl Kernel for SumOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact(self.sums.len()) {
            for (sum, &x) in self.sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}
