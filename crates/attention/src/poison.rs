//! NaN and ±∞ in queries, keys and values, for the composed equation: only a query that may attend
//! to them gets NaN.
//!
//! A masked weight is 0, but 0·NaN and 0·∞ are NaN: in `weights·V`, and in the gradients of both
//! products. So products read 0 in place of such numbers ([`finite`]). All scores of a query that
//! may attend to one become NaN ([`nan_where`]) before the mask selects. The weights carry NaN on,
//! to the output and to the gradients. Where they are masked they are exactly 0.

use burn::tensor::{Bool, Tensor};

/// 0 in place of NaN and ±∞, which get no gradient.
pub(crate) fn finite(tensor: Tensor<4>) -> Tensor<4> {
    let poisoned = tensor.clone().is_finite().bool_not();
    tensor.mask_fill(poisoned, 0.0)
}

/// 1 for each row that is not finite, else 0: `[batch, heads, seq, width]` to `[batch, heads, seq,
/// 1]`.
pub(crate) fn poisoned_rows(tensor: &Tensor<4>) -> Tensor<4> {
    let poisoned = tensor.clone().is_finite().bool_not();
    poisoned.any_dim(3).float()
}

/// For each query, how many rows of `keys` (keys, values) it may attend to that are not finite.
///
/// # Shapes
/// - keys: each `[batch, kv_heads, keys, width]`
/// - masked: `[batch or 1, heads or 1, queries, keys]`; `None` if all pairs may attend
/// - output: `[batch, heads, queries, 1]`
pub(crate) fn reached_rows(
    keys: &[&Tensor<4>],
    [heads, queries]: [usize; 2],
    masked: Option<Tensor<4, Bool>>,
) -> Tensor<4> {
    let [batch, kv_heads, n_keys, _] = keys[0].dims();
    let mut poisoned = poisoned_rows(keys[0]); // [batch, kv_heads, keys, 1]
    for more in &keys[1..] {
        poisoned = poisoned + poisoned_rows(more);
    }
    let poisoned = poisoned
        .reshape([batch, kv_heads, 1, n_keys])
        .expand([batch, kv_heads, heads / kv_heads, n_keys])
        .reshape([batch, heads, n_keys, 1]);
    match masked {
        Some(masked) => masked.bool_not().float().matmul(poisoned),
        None => poisoned.sum_dim(2).expand([batch, heads, queries, 1]),
    }
}

/// NaN where a count is not 0, else 0.
pub(crate) fn nan_where(count: Tensor<4>) -> Tensor<4> {
    count
        .zeros_like()
        .mask_fill(count.not_equal_scalar(0.0), f32::NAN)
}
