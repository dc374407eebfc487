//! The same equation, fused: tiles of queries and keys with a running maximum (Dao et al. 2022),
//! native on Flex.
//!
//! `scaled_dot_product.rs` defines attention. The kernel changes only the order of work, so that it
//! stores no n×n matrix. Forward keeps the output and one number a row, the log of the sum of
//! exponentials. Backward computes each tile of weights again from this number.

#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

mod backward;
mod forward;
mod head;
mod operation;
mod poison;
mod projected;
mod rows;
mod tile;
mod weights;

use std::sync::Arc;

use burn::{
    backend::{Dispatch, DispatchDevice},
    module::Param,
    nn::Linear,
    tensor::{DType, Device, Tensor},
};

use crate::{AttentionOptions, Dropout, Mask, score_shape::ScoreShape};

use operation::{FusedAttention, NativeWeights};
use projected::ProjectedAttention;
use rows::VisibleKeys;

/// The arguments of a kernel other than its tensors.
#[derive(Debug)]
pub(crate) struct Plan {
    pub shape: ScoreShape,
    pub scale: f32,
    pub softcap: Option<f32>,
    pub dropout: Option<Dropout>,
    pub visible: VisibleKeys,
}

impl Plan {
    /// The plan for these tensors. It is `None` where the kernel does not apply: on another device,
    /// for another dtype than f32, or for empty tensors. `bias` is the mask's.
    fn new(
        tensors: &[&Tensor<4>],
        bias: Option<&Tensor<4>>,
        mask: &Mask,
        options: &AttentionOptions,
        shape: &ScoreShape,
    ) -> Option<Self> {
        let device = tensors[0].device();
        let fits = |tensor: &Tensor<4>| tensor.dtype() == DType::F32 && tensor.device() == device;
        let all_fit = tensors.iter().copied().chain(bias).all(fits);
        let empty = tensors.iter().any(|tensor| tensor.dims().contains(&0));
        (on_flex(&device) && all_fit && !empty).then(|| Self {
            shape: shape.clone(),
            scale: options.scale_for(tensors[0].dims()[3]) as f32,
            softcap: options.softcap.map(|cap| cap as f32),
            dropout: None,
            visible: VisibleKeys::new(mask, shape),
        })
    }

    /// Broadcasts a bias to the shape of the scores.
    fn expand(&self, bias: Tensor<4>) -> Tensor<4> {
        let ScoreShape {
            batch,
            heads,
            queries,
            keys,
        } = self.shape;
        bias.expand([batch, heads, queries, keys])
    }
}

fn on_flex(device: &Device) -> bool {
    let device = device.clone().inner();
    matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// Computes attention with the kernel, or returns `None` where the kernel does not apply.
///
/// The gradient of a bias takes n×n numbers for each head, like the bias itself.
pub(crate) fn attention(
    query: &Tensor<4>,
    key: &Tensor<4>,
    value: &Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
    dropout: Option<&Dropout>,
    shape: &ScoreShape,
) -> Option<Tensor<4>> {
    let bias = mask.bias_for(shape);
    let tensors = [query, key, value];
    let plan = Plan::new(&tensors, bias.as_ref(), mask, options, shape)?;
    let plan = Arc::new(Plan {
        dropout: dropout.copied(),
        ..plan
    });
    let [query, key, value] = tensors.map(|tensor| tensor.clone().into_dispatch());
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => {
            let bias = plan.expand(bias).into_dispatch();
            <Dispatch as FusedAttention>::fused_attention_with_bias(query, key, value, bias, plan)
        }
        None => <Dispatch as FusedAttention>::fused_attention(query, key, value, plan),
    }))
}

/// Attention of sequences to themselves with its projections, of which `shape` is the shape of the
/// scores. It is `None` where the kernel does not apply, also for a mask with a bias.
pub(crate) fn projected_attention(
    x: &Tensor<3>,
    projections: [&Linear; 3],
    kv_heads: usize,
    mask: &Mask,
    options: &AttentionOptions,
    dropout: Option<&Dropout>,
    shape: &ScoreShape,
) -> Option<Tensor<4>> {
    let weights = projections.map(|projection| projection.weight.val());
    let biases = projections.map(|projection| projection.bias.as_ref().map(Param::val));
    let device = x.device();
    let all_f32 = weights.iter().all(|weight| weight.dtype() == DType::F32)
        && biases
            .iter()
            .flatten()
            .all(|bias| bias.dtype() == DType::F32)
        && x.dtype() == DType::F32;
    let empty = x.dims().contains(&0) || weights.iter().any(|weight| weight.dims().contains(&0));
    if !on_flex(&device) || !all_f32 || empty || mask.bias_for(shape).is_some() {
        return None;
    }
    let d_head = weights[0].dims()[1] / shape.heads;
    let plan = Arc::new(Plan {
        shape: shape.clone(),
        scale: options.scale_for(d_head) as f32,
        softcap: options.softcap.map(|cap| cap as f32),
        dropout: dropout.copied(),
        visible: VisibleKeys::new(mask, shape),
    });
    let x = x.clone().into_dispatch();
    let [w_q, w_k, w_v] = weights.map(Tensor::into_dispatch);
    let z = match biases {
        [None, None, None] => {
            <Dispatch as ProjectedAttention>::projected_attention(x, w_q, w_k, w_v, kv_heads, plan)
        }
        [Some(b_q), Some(b_k), Some(b_v)] => {
            let [b_q, b_k, b_v] = [b_q, b_k, b_v].map(Tensor::into_dispatch);
            <Dispatch as ProjectedAttention>::projected_attention_with_biases(
                x, w_q, w_k, w_v, b_q, b_k, b_v, kv_heads, plan,
            )
        }
        _ => return None,
    };
    Some(Tensor::from_dispatch(z))
}

/// Computes the weights with the kernel. It returns `None` where the kernel does not apply, and for
/// tensors on an autodiff device, since this kernel has no backward pass.
pub(crate) fn weights(
    query: &Tensor<4>,
    key: &Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
    shape: &ScoreShape,
) -> Option<Tensor<4>> {
    if query.device().is_autodiff() {
        return None;
    }
    let bias = mask.bias_for(shape);
    let plan = Arc::new(Plan::new(
        &[query, key],
        bias.as_ref(),
        mask,
        options,
        shape,
    )?);
    let [query, key] = [query, key].map(|tensor| tensor.clone().into_dispatch());
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => {
            let bias = plan.expand(bias).into_dispatch();
            <Dispatch as NativeWeights>::native_weights_with_bias(query, key, bias, plan)
        }
        None => <Dispatch as NativeWeights>::native_weights(query, key, plan),
    }))
}
