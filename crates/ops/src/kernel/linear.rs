//! `x·W + b`: one matrix product over all rows each way.

use burn::{backend::flex::FlexTensor, tensor::Shape};
use headlight_vector::{Matrix, new_product, sum_of_rows};

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
    shaped(sum_of_rows(numbers(upstream), width), Shape::new([width]))
}

/// The rows of all sequences, one after the other.
pub(crate) fn rows(tensor: &FlexTensor) -> Matrix<'_> {
    let (numbers, width) = (numbers(tensor), width(tensor));
    Matrix::dense(numbers, numbers.len() / width, width)
}
