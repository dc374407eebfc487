//! NaN and ±∞ in queries, keys and values, for the composed equation: only a query that may attend
//! to them gets NaN.
//!
//! A masked weight is 0, but 0·NaN and 0·∞ are NaN: in `weights·V`, and in the gradients of both
//! products. So products read 0 in place of such numbers ([`finite`]). Beside them, [`marks`] say
//! of each pair whether it has one, and [`poison`] gives NaN to the queries that may attend to a
//! marked pair.

use burn::tensor::{Bool, Tensor};

/// 0 in place of NaN and ±∞.
pub(crate) fn finite(tensor: Tensor<4>) -> Tensor<4> {
    let poisoned = tensor.clone().is_finite().bool_not();
    tensor.mask_fill(poisoned, 0.0)
}

/// NaN for each pair whose query, or whose row in one of `keys` (keys, values), is not finite, else
/// 0. What makes the gradient of a mark NaN makes that of both rows NaN.
///
/// # Shapes
/// - query: `[batch, heads, queries, width]`
/// - keys: `[batch, kv_heads, keys, width]`
/// - marks: `[batch, heads, queries, keys]`
pub(crate) fn marks(query: &Tensor<4>, keys: &[&Tensor<4>]) -> Tensor<4> {
    let [_, heads, _, _] = query.dims();
    let mut marks = of_rows(query); // [batch, heads, queries, 1]
    for key in keys {
        marks = marks + of_keys(key, heads);
    }
    marks
}

/// NaN for each row that is not finite, else 0: `[batch, heads, seq, 1]`.
fn of_rows(tensor: &Tensor<4>) -> Tensor<4> {
    tensor.clone().mul_scalar(0.0).sum_dim(3)
}

/// The marks of keys or values, for each of the query heads that read them: `[batch, heads, 1,
/// keys]`.
pub(crate) fn of_keys(tensor: &Tensor<4>, heads: usize) -> Tensor<4> {
    let [batch, kv_heads, keys, _] = tensor.dims();
    if keys == 0 {
        // In a new shape Burn takes 0 as the old size.
        return Tensor::zeros([batch, heads, 1, 0], (&tensor.device(), tensor.dtype()));
    }
    of_rows(tensor)
        .reshape([batch, kv_heads, 1, keys])
        .expand([batch, kv_heads, heads / kv_heads, keys])
        .reshape([batch, heads, 1, keys])
}

/// `z` with NaN in each row that has a marked pair which is not `masked`. The gradient of such a row
/// goes to its pairs alone: there it is NaN.
///
/// # Shapes
/// - z, output: `[batch, heads, queries, d_value]`
/// - marks, masked: `[batch, heads, queries, keys]`
pub(crate) fn poison(z: Tensor<4>, marks: Tensor<4>, masked: Option<Tensor<4, Bool>>) -> Tensor<4> {
    if z.dims().contains(&0) || marks.dims().contains(&0) {
        return z;
    }
    let marks = match masked {
        Some(masked) => marks.mask_fill(masked, 0.0),
        None => marks,
    };
    let reach = marks.sum_dim(3); // [batch, heads, queries, 1], NaN or 0
    let reached = reach.clone().is_nan().expand(z.dims());
    // The derivative of r² is 2r: NaN where r is NaN, and 0 where it is 0.
    let poison = reach.square().expand(z.dims());
    z.mask_where(reached, poison)
}
