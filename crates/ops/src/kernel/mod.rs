//! The operations as kernels on Flex, each one pass forward and one pass backward.
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

mod adamw;
mod cross_entropy;
mod feed_forward;
mod gelu;
mod layer_norm;
mod linear;
mod linear_cross_entropy;
mod operation;
mod rms_norm;
mod score_next_tokens;
mod squared_norm;
mod swiglu;

use burn::{
    backend::{Dispatch, DispatchDevice, flex::FlexTensor},
    tensor::{DType, Device, Int, Shape, Tensor, TensorData},
};
use headlight_vector::Matrix;
use operation::Fused;

use crate::{AdamWStep, NextTokenScores, ROWS, gelu::Form};

/// The number of elements in a task of an element-wise operation.
const CHUNK: usize = 1 << 14;

pub(crate) fn cross_entropy(
    logits: &Tensor<3>,
    targets: &Tensor<2, Int>,
    weights: &Tensor<2>,
) -> Option<Tensor<1>> {
    let applies = applies(&logits.device(), &[logits.dtype(), weights.dtype()])
        && !logits.dims().contains(&0);
    applies.then(|| {
        let weights = weights.clone().detach();
        Tensor::from_dispatch(<Dispatch as Fused>::fused_cross_entropy(
            logits.clone().into_dispatch(),
            targets.clone().into_dispatch(),
            weights.into_dispatch(),
        ))
    })
}

pub(crate) fn gelu(x: &Tensor<3>, form: Form) -> Option<Tensor<3>> {
    let applies = applies(&x.device(), &[x.dtype()]) && !x.dims().contains(&0);
    applies.then(|| {
        Tensor::from_dispatch(<Dispatch as Fused>::fused_gelu(
            x.clone().into_dispatch(),
            form,
        ))
    })
}

pub(crate) fn feed_forward(
    x: &Tensor<3>,
    [w_in, w_out]: [&Tensor<2>; 2],
    biases: Option<[&Tensor<1>; 2]>,
    form: Form,
) -> Option<Tensor<3>> {
    let mut dtypes = vec![x.dtype(), w_in.dtype(), w_out.dtype()];
    dtypes.extend(biases.iter().flatten().map(|bias| bias.dtype()));
    let is_empty = x.dims().contains(&0) || w_in.dims().contains(&0) || w_out.dims().contains(&0);
    let applies = applies(&x.device(), &dtypes) && !is_empty;
    applies.then(|| {
        let [x, w_in, w_out] = [
            x.clone().into_dispatch(),
            w_in.clone().into_dispatch(),
            w_out.clone().into_dispatch(),
        ];
        Tensor::from_dispatch(match biases {
            Some([b_in, b_out]) => <Dispatch as Fused>::fused_feed_forward_with_biases(
                x,
                w_in,
                b_in.clone().into_dispatch(),
                w_out,
                b_out.clone().into_dispatch(),
                form,
            ),
            None => <Dispatch as Fused>::fused_feed_forward(x, w_in, w_out, form),
        })
    })
}

pub(crate) fn layer_norm(
    x: &Tensor<3>,
    gain: &Tensor<1>,
    bias: &Tensor<1>,
    epsilon: f64,
) -> Option<Tensor<3>> {
    let applies =
        applies(&x.device(), &[x.dtype(), gain.dtype(), bias.dtype()]) && !x.dims().contains(&0);
    applies.then(|| {
        Tensor::from_dispatch(<Dispatch as Fused>::fused_layer_norm(
            x.clone().into_dispatch(),
            gain.clone().into_dispatch(),
            bias.clone().into_dispatch(),
            epsilon as f32,
        ))
    })
}

pub(crate) fn linear(
    x: &Tensor<3>,
    weight: &Tensor<2>,
    bias: Option<&Tensor<1>>,
) -> Option<Tensor<3>> {
    let dtypes = [
        x.dtype(),
        weight.dtype(),
        bias.map_or(DType::F32, Tensor::dtype),
    ];
    let applies =
        applies(&x.device(), &dtypes) && !x.dims().contains(&0) && !weight.dims().contains(&0);
    applies.then(|| {
        let (x, weight) = (x.clone().into_dispatch(), weight.clone().into_dispatch());
        Tensor::from_dispatch(match bias {
            Some(bias) => {
                <Dispatch as Fused>::fused_linear_with_bias(x, weight, bias.clone().into_dispatch())
            }
            None => <Dispatch as Fused>::fused_linear(x, weight),
        })
    })
}

/// Only where there are many logits: fewer are faster kept.
pub(crate) fn linear_cross_entropy(
    x: &Tensor<3>,
    weight: &Tensor<2>,
    bias: Option<&Tensor<1>>,
    targets: &Tensor<2, Int>,
    weights: &Tensor<2>,
) -> Option<Tensor<1>> {
    let [rows, positions, width] = x.dims();
    let [width_in, vocabulary] = weight.dims();
    let dtypes = [
        x.dtype(),
        weight.dtype(),
        bias.map_or(DType::F32, Tensor::dtype),
        weights.dtype(),
    ];
    let fits = width == width_in
        && targets.dims() == [rows, positions]
        && weights.dims() == [rows, positions]
        && bias.is_none_or(|bias| bias.dims() == [vocabulary]);
    let is_large = rows * positions * vocabulary > linear_cross_entropy::FEW && width > 0;
    let applies = applies(&x.device(), &dtypes) && fits && is_large;
    applies.then(|| {
        let (x, weight) = (x.clone().into_dispatch(), weight.clone().into_dispatch());
        let targets = targets.clone().into_dispatch();
        let weights = weights.clone().detach().into_dispatch();
        Tensor::from_dispatch(match bias {
            Some(bias) => <Dispatch as Fused>::fused_linear_cross_entropy_with_bias(
                x,
                weight,
                bias.clone().into_dispatch(),
                targets,
                weights,
            ),
            None => <Dispatch as Fused>::fused_linear_cross_entropy(x, weight, targets, weights),
        })
    })
}

pub(crate) fn rms_norm(x: &Tensor<3>, gain: &Tensor<1>, epsilon: f64) -> Option<Tensor<3>> {
    let applies = applies(&x.device(), &[x.dtype(), gain.dtype()]) && !x.dims().contains(&0);
    applies.then(|| {
        let (x, gain) = (x.clone().into_dispatch(), gain.clone().into_dispatch());
        Tensor::from_dispatch(<Dispatch as Fused>::fused_rms_norm(x, gain, epsilon as f32))
    })
}

pub(crate) fn score_next_tokens(
    logits: &Tensor<3>,
    targets: &Tensor<2, Int>,
) -> Option<NextTokenScores> {
    let device = logits.device();
    let applies =
        applies(&device, &[logits.dtype()]) && !device.is_autodiff() && !logits.dims().contains(&0);
    applies.then(|| {
        let (losses, right) =
            <Dispatch as score_next_tokens::FusedScoreNextTokens>::fused_score_next_tokens(
                logits.clone().into_dispatch(),
                targets.clone().into_dispatch(),
            );
        NextTokenScores {
            losses: Tensor::from_dispatch(losses),
            right: Tensor::from_dispatch(right),
            difference: None,
        }
    })
}

pub(crate) fn swiglu(gate: &Tensor<3>, up: &Tensor<3>) -> Option<Tensor<3>> {
    let applies = applies(&gate.device(), &[gate.dtype(), up.dtype()]) && !gate.dims().contains(&0);
    applies.then(|| {
        let (gate, up) = (gate.clone().into_dispatch(), up.clone().into_dispatch());
        Tensor::from_dispatch(<Dispatch as Fused>::fused_swiglu(gate, up))
    })
}

/// Whether the kernel can update these tensors. It cannot update tensors that track gradients.
pub(crate) fn adamw_applies<const D: usize>(tensors: &[&Tensor<D>; 4]) -> bool {
    let dtypes = tensors.map(Tensor::dtype);
    tensors
        .iter()
        .all(|tensor| applies(&tensor.device(), &dtypes) && !tensor.device().is_autodiff())
        && !tensors[0].dims().contains(&0)
}

pub(crate) fn adamw<const D: usize>(
    parameter: Tensor<D>,
    gradient: Tensor<D>,
    m: Tensor<D>,
    v: Tensor<D>,
    step: &AdamWStep,
) -> (Tensor<D>, Tensor<D>, Tensor<D>) {
    let [parameter, gradient, m, v] = [parameter, gradient, m, v].map(Tensor::into_dispatch);
    let (parameter, m, v) =
        <Dispatch as adamw::FusedAdamW>::fused_adamw(parameter, gradient, m, v, *step);
    (
        Tensor::from_dispatch(parameter),
        Tensor::from_dispatch(m),
        Tensor::from_dispatch(v),
    )
}

/// Whether the kernel can read these tensors. It cannot read tensors that track gradients.
pub(crate) fn squared_norm_applies<const D: usize>(tensors: &[&Tensor<D>]) -> bool {
    tensors
        .iter()
        .all(|x| applies(&x.device(), &[x.dtype()]) && !x.device().is_autodiff())
}

pub(crate) fn sum_with_squared_norm<const D: usize>(
    x: Tensor<D>,
    y: Tensor<D>,
) -> (Tensor<D>, Tensor<1>) {
    let (sum, squared_norm) =
        <Dispatch as squared_norm::FusedSquaredNorm>::fused_sum_with_squared_norm(
            x.into_dispatch(),
            y.into_dispatch(),
        );
    (
        Tensor::from_dispatch(sum),
        Tensor::from_dispatch(squared_norm),
    )
}

pub(crate) fn squared_norm<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    Tensor::from_dispatch(
        <Dispatch as squared_norm::FusedSquaredNorm>::fused_squared_norm(x.into_dispatch()),
    )
}

fn applies(device: &Device, dtypes: &[DType]) -> bool {
    let on_flex = matches!(
        device.clone().inner().as_dispatch(),
        DispatchDevice::Flex(_)
    );
    on_flex && dtypes.iter().all(|&dtype| dtype == DType::F32)
}

/// The numbers of a contiguous tensor.
fn numbers(tensor: &FlexTensor) -> &[f32] {
    let layout = tensor.layout();
    &tensor.storage::<f32>()[layout.start_offset()..][..layout.num_elements()]
}

fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

/// Returns the tensor if it is the only owner of its buffer and fills it, else a copy.
fn own(tensor: FlexTensor) -> FlexTensor {
    let whole =
        tensor.is_contiguous() && tensor.storage::<f32>().len() == tensor.layout().num_elements();
    if whole && tensor.is_unique() {
        return tensor;
    }
    let tensor = contiguous(tensor);
    shaped(numbers(&tensor).to_vec(), tensor.layout().shape().clone())
}

/// A view of so many numbers or fewer is copied: that costs nothing beside the product, and a
/// turned factor would be added up in another order.
const MOST_COPIED: usize = 1 << 20;

/// The tensor as it lies, if it is large and [`matrix`] can read it.
fn in_its_place(tensor: FlexTensor) -> FlexTensor {
    let layout = tensor.layout();
    if layout.has_positive_strides() && layout.num_elements() > MOST_COPIED {
        tensor
    } else {
        contiguous(tensor)
    }
}

/// A matrix with any positive strides, where it lies: a transposed view is not copied.
fn matrix(tensor: &FlexTensor) -> Matrix<'_> {
    let layout = tensor.layout();
    let stride = |axis: usize| layout.strides()[axis].unsigned_abs();
    Matrix {
        data: tensor.storage::<f32>(),
        start: layout.start_offset(),
        rows: layout.shape()[0],
        columns: layout.shape()[1],
        row_stride: stride(0),
        column_stride: stride(1),
    }
}

fn shaped(data: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(data, shape))
}

/// The length of the last axis.
fn width(tensor: &FlexTensor) -> usize {
    let shape = tensor.layout().shape();
    shape[shape.num_dims() - 1]
}

/// Adds the sums of blocks of rows in the order of the blocks, so that the result is the same on
/// any number of threads.
fn sum_in_order(blocks: &[Vec<f32>], width: usize) -> Vec<f32> {
    let mut total = vec![0.0; width];
    for block in blocks {
        for (total, x) in total.iter_mut().zip(block) {
            *total += x;
        }
    }
    total
}
