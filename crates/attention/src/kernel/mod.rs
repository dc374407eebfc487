//! The same equation, fused: tiles of queries and keys with a running maximum (Dao et al. 2022),
//! native on Flex.
//!
//! Nothing here changes what attention means; `scaled_dot_product.rs` says that. What changes is
//! the order of work: no n×n matrix is ever stored. Forward keeps, beside the output, one number a
//! row (the log of the sum of exponentials); backward computes each tile of weights again from it.

#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

mod backward;
mod forward;
mod operation;
mod rows;
mod tile;
mod weights;

use std::sync::Arc;

use burn::{
    backend::{Dispatch, DispatchDevice},
    tensor::{DType, Tensor},
};

use crate::{AttentionOptions, Dropout, Mask, score_shape::ScoreShape};

use operation::{FusedAttention, NativeWeights};
use rows::VisibleKeys;

/// What a kernel needs to know beside its tensors.
#[derive(Debug)]
pub(crate) struct Plan {
    pub shape: ScoreShape,
    pub scale: f32,
    pub softcap: Option<f32>,
    pub dropout: Option<Dropout>,
    pub visible: VisibleKeys,
}

impl Plan {
    /// For these tensors, or `None` where the kernel does not apply: another device, another dtype
    /// than f32, or nothing to do. `bias` is the mask's.
    fn new(
        tensors: &[&Tensor<4>],
        bias: Option<&Tensor<4>>,
        mask: &Mask,
        options: &AttentionOptions,
        shape: &ScoreShape,
    ) -> Option<Self> {
        let device = tensors[0].device();
        let on_flex = matches!(
            device.clone().inner().as_dispatch(),
            DispatchDevice::Flex(_)
        );
        let fits = |tensor: &Tensor<4>| tensor.dtype() == DType::F32 && tensor.device() == device;
        let all_fit = tensors.iter().copied().chain(bias).all(fits);
        let empty = tensors.iter().any(|tensor| tensor.dims().contains(&0));
        (on_flex && all_fit && !empty).then(|| Self {
            shape: shape.clone(),
            scale: options.scale_for(tensors[0].dims()[3]) as f32,
            softcap: options.softcap.map(|cap| cap as f32),
            dropout: None,
            visible: VisibleKeys::new(mask, shape),
        })
    }

    /// Keys or values with 0 where nobody may look: weights are 0 where masked, but 0·NaN is NaN.
    fn clear<const N: usize>(&self, tensors: [&Tensor<4>; N]) -> [Tensor<4>; N] {
        let dead = self.visible.dead_keys(&self.shape, &tensors[0].device());
        tensors.map(|tensor| match &dead {
            Some(dead) => tensor
                .clone()
                .mask_fill(dead.clone().expand(tensor.dims()), 0.0),
            None => tensor.clone(),
        })
    }

    /// A bias with every axis as long as the scores'.
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

/// Attention by the kernel, or `None` where it does not apply.
///
/// Its gradient makes a bias n×n numbers for each head, as the bias itself is.
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
    let [key, value] = plan.clear([key, value]);
    let [query, key, value] = [query.clone(), key, value].map(Tensor::into_dispatch);
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => {
            let bias = plan.expand(bias).into_dispatch();
            <Dispatch as FusedAttention>::fused_attention_with_bias(query, key, value, bias, plan)
        }
        None => <Dispatch as FusedAttention>::fused_attention(query, key, value, plan),
    }))
}

/// The weights by the kernel, or `None` where it does not apply, which is also so where a gradient
/// may be wanted.
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
    let [key] = plan.clear([key]);
    let [query, key] = [query.clone(), key].map(Tensor::into_dispatch);
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => {
            let bias = plan.expand(bias).into_dispatch();
            <Dispatch as NativeWeights>::native_weights_with_bias(query, key, bias, plan)
        }
        None => <Dispatch as NativeWeights>::native_weights(query, key, plan),
    }))
}
