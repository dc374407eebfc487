//! The same equation, fused: tiles of queries and keys with a running maximum (Dao et al. 2022), native on Flex.
//!
//! Nothing here changes what attention means; `scaled_dot_product.rs` says that. What changes is the order of work:
//! no n×n matrix is ever stored. Forward keeps, beside the output, one number a row (the log of the sum of
//! exponentials); backward computes each tile of weights again from it.

#![allow(clippy::inline_always, reason = "vector width is chosen outside, so loops must be compiled inside the caller")]

mod backward;
mod forward;
mod operation;
mod rows;
mod tile;

use std::sync::Arc;

use burn::{
    backend::{Dispatch, DispatchDevice},
    tensor::{DType, Tensor},
};

use crate::{AttentionOptions, Dropout, Mask, score_shape::ScoreShape};

use operation::FusedAttention;
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

/// Attention by the kernel, or `None` where it does not apply: another device, another dtype than f32, or nothing to do.
///
/// Its gradient makes a bias n×n numbers for each head, as the bias itself is.
pub(crate) fn attention(
    query: &Tensor<4>,
    key: &Tensor<4>,
    value: &Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
    shape: &ScoreShape,
) -> Option<Tensor<4>> {
    let device = query.device();
    let on_flex = matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_));
    let bias = mask.bias_for(shape);
    let fits = |tensor: &Tensor<4>| tensor.dtype() == DType::F32 && tensor.device() == device;
    let all_fit = [query, key, value].into_iter().chain(&bias).all(fits);
    let empty = [query, key, value].iter().any(|tensor| tensor.dims().contains(&0));
    if !on_flex || !all_fit || empty {
        return None;
    }
    let plan = Plan {
        shape: shape.clone(),
        scale: options.scale_for(query.dims()[3]) as f32,
        softcap: options.softcap.map(|cap| cap as f32),
        dropout: options.dropout,
        visible: VisibleKeys::new(mask, shape),
    };
    // Weights are 0 where masked, but 0·NaN is NaN: keys and values nobody may look at are cleared first.
    let dead = plan.visible.dead_keys(shape, &device);
    let clear = |tensor: &Tensor<4>| match &dead {
        Some(dead) => tensor.clone().mask_fill(dead.clone().expand(tensor.dims()), 0.0),
        None => tensor.clone(),
    };
    let [query, key, value] = [query.clone(), clear(key), clear(value)].map(Tensor::into_dispatch);
    let plan = Arc::new(plan);
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => {
            let bias = bias.expand([shape.batch, shape.heads, shape.queries, shape.keys]).into_dispatch();
            <Dispatch as FusedAttention>::fused_attention_with_bias(query, key, value, bias, plan)
        }
        None => <Dispatch as FusedAttention>::fused_attention(query, key, value, plan),
    }))
}
