//! The equation: `softmax(Q·Kᵀ/√d_head + mask)·V`, as plain tensor operations.

use burn::{
    config::Config,
    tensor::{Bool, DType, FloatDType, Tensor},
};
use serde::{Deserialize, Serialize};

use crate::{
    Dropout, Mask,
    poison::{finite, nan_where, poisoned_rows, reached_rows},
    score_shape::ScoreShape,
};

/// Scale and softcap of the scores; the default is the equation as published.
///
/// ```
/// use headlight_attention::AttentionOptions;
///
/// let options = AttentionOptions::default();
/// assert_eq!(options.scale_for(16), 0.25); // 1/√16
/// assert_eq!(options.with_scale(1.0).scale_for(16), 1.0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionOptions {
    /// The factor on `Q·Kᵀ`; `None`: `1/√d_head`.
    pub scale: Option<f64>,
    /// `c`: scores become `c·tanh(scores/c)`, before the mask (Gemma 2, section 2.3); `None`:
    /// unbounded.
    pub softcap: Option<f64>,
}

impl Config for AttentionOptions {}

impl AttentionOptions {
    /// Sets the factor on `Q·Kᵀ`.
    #[must_use]
    pub fn with_scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Sets the softcap.
    #[must_use]
    pub fn with_softcap(mut self, softcap: f64) -> Self {
        self.softcap = Some(softcap);
        self
    }

    /// The factor in force for heads of width `d_head`.
    ///
    /// Components of query and key with variance 1 give dot products of variance `d_head`; the
    /// default factor `1/√d_head` brings it back to 1, where softmax is not saturated (Vaswani et
    /// al. 2017, section 3.2.1).
    #[must_use]
    pub fn scale_for(&self, d_head: usize) -> f64 {
        self.scale.unwrap_or_else(|| 1.0 / (d_head as f64).sqrt())
    }
}

/// Attention: each output row is a weighted sum of value rows, `z = softmax(Q·Kᵀ·scale + mask)·V`
/// (Vaswani et al. 2017, section 3.2.1).
///
/// # Shapes
/// - query: `[batch, heads, queries, d_head]`
/// - key: `[batch, kv_heads, keys, d_head]`
/// - value: `[batch, kv_heads, keys, d_value]`
/// - output: `[batch, heads, queries, d_value]`, in the dtype of `value`
///
/// Query head `h` reads key/value head `h / (heads / kv_heads)`. The output of a query that may
/// attend to nothing is 0. NaN and ±∞ in a query, a key or a value make exactly those queries NaN
/// that may attend to them, and the gradients of the pairs of these queries.
///
/// # Panics
/// If the shapes do not belong together; the message names both.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{attention, AttentionOptions, Mask};
///
/// let device = Device::flex();
/// // A zero query matches both keys equally, so the output is the mean of the values 1 and 3.
/// let query = Tensor::<4>::zeros([1, 1, 1, 1], &device);
/// let key = Tensor::<4>::zeros([1, 1, 2, 1], &device);
/// let value = Tensor::<4>::from_floats([[[[1.0], [3.0]]]], &device);
/// let z = attention(query, key, value, &Mask::none(), &AttentionOptions::default());
/// assert_eq!(z.into_scalar::<f32>(), 2.0);
/// ```
#[must_use]
pub fn attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
) -> Tensor<4> {
    attend(query, key, value, mask, options, None)
}

/// [`attention`] in a training step that drops weights after softmax:
/// `z = (softmax(Q·Kᵀ·scale + mask) ∘ F)·V`, where each factor in `F` is 0 with the dropout's
/// probability `p` and `1/(1 − p)` otherwise (Srivastava et al. 2014).
///
/// # Shapes
/// As [`attention`].
///
/// # Panics
/// As [`attention`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{AttentionOptions, Dropout, DropoutKey, Mask, attention_with_dropout};
///
/// let zeros = |rows| Tensor::<4>::zeros([1, 1, rows, 1], &Device::flex());
/// let ones = Tensor::<4>::ones([1, 1, 2, 1], &Device::flex());
/// let options = AttentionOptions::default();
/// let dropout = Dropout::new(0.5, DropoutKey { seed: 1, step: 7, ..DropoutKey::default() });
/// let z = attention_with_dropout(zeros(1), zeros(2), ones, &Mask::none(), &options, &dropout);
/// // Two weights of ½: each is dropped (0) or doubled (1), so the sum of values 1 is 0, 1 or 2.
/// assert!([0.0, 1.0, 2.0].contains(&z.into_scalar::<f32>()));
/// ```
#[must_use]
pub fn attention_with_dropout(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
    dropout: &Dropout,
) -> Tensor<4> {
    attend(query, key, value, mask, options, Some(dropout))
}

/// The equation of [`attention`] and [`attention_with_dropout`]: the kernel computes it where it
/// applies, else the composition does.
fn attend(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
    dropout: Option<&Dropout>,
) -> Tensor<4> {
    assert_key_fits_value(&key, &value);
    #[cfg(feature = "flex")]
    {
        let shape = score_shape(&query, &key);
        if let Some(z) =
            crate::kernel::attention(&query, &key, &value, mask, options, dropout, &shape)
        {
            return z;
        }
    }
    let dtype = value.dtype();
    let [query, key, value] = [query, key, value].map(at_least_f32);
    let scores = scores_of(query, key, &[&value], mask, options);
    let mut weights = softmax(scores);
    if let Some(dropout) = dropout {
        let factors = dropout.factors(weights.dims(), &weights.device());
        weights = weights.clone() * in_dtype(factors, weights.dtype());
    }
    in_dtype(sum_of_values(weights, value), dtype)
}

/// The attention weights (the *pattern*): row `q` holds the weight of each key for query `q`.
///
/// A row sums to 1, or is all 0 if the query may attend to nothing. The dtype is f32 or wider for
/// every input dtype. These are the weights before dropout.
///
/// # Shapes
/// - query: `[batch, heads, queries, d_head]`
/// - key: `[batch, kv_heads, keys, d_head]`
/// - weights: `[batch, heads, queries, keys]`
///
/// # Panics
/// If the shapes do not belong together; the message names both.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{attention_weights, AttentionOptions, Mask};
///
/// let device = Device::flex();
/// let query = Tensor::<4>::from_floats([[[[0.0, 2f32.sqrt()]]]], &device);
/// let key = Tensor::<4>::from_floats([[[[1.0, 0.0], [0.0, 1.0]]]], &device);
/// let weights = attention_weights(query, key, &Mask::none(), &AttentionOptions::default());
/// // Scores [0, √2]/√2 = [0, 1], so the weights are [1, e]/(1 + e).
/// let weights = weights.into_data().to_vec::<f32>().unwrap();
/// assert!((weights[0] - 0.26894).abs() < 1e-5 && (weights[1] - 0.73106).abs() < 1e-5);
/// ```
#[must_use]
pub fn attention_weights(
    query: Tensor<4>,
    key: Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if let Some(weights) =
        crate::kernel::weights(&query, &key, mask, options, &score_shape(&query, &key))
    {
        return weights;
    }
    softmax_of_scores(attention_scores(query, key, mask, options))
}

/// The scores before softmax, `Q·Kᵀ·scale` (softcapped, plus the bias): −∞ where the query may not
/// attend. All other scores of a query are NaN if it, or a key that it may attend to, is not finite.
///
/// # Shapes
/// - query: `[batch, heads, queries, d_head]`
/// - key: `[batch, kv_heads, keys, d_head]`
/// - scores: `[batch, heads, queries, keys]`
///
/// # Panics
/// If the shapes do not belong together; the message names both.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{attention_scores, AttentionOptions, Mask};
///
/// let device = Device::flex();
/// let query = Tensor::<4>::from_floats([[[[2.0], [3.0]]]], &device);
/// let key = Tensor::<4>::from_floats([[[[1.0], [5.0]]]], &device);
/// let scores = attention_scores(query, key, &Mask::causal(), &AttentionOptions::default());
/// let scores = scores.into_data().to_vec::<f32>().unwrap();
/// assert_eq!(scores, [2.0, f32::NEG_INFINITY, 3.0, 15.0]);
/// ```
#[must_use]
pub fn attention_scores(
    query: Tensor<4>,
    key: Tensor<4>,
    mask: &Mask,
    options: &AttentionOptions,
) -> Tensor<4> {
    let [query, key] = [query, key].map(at_least_f32);
    scores_of(query, key, &[], mask, options)
}

/// [`attention_scores`], and NaN also where the row of one of `values` is not finite.
fn scores_of(
    query: Tensor<4>,
    key: Tensor<4>,
    values: &[&Tensor<4>],
    mask: &Mask,
    options: &AttentionOptions,
) -> Tensor<4> {
    let shape = score_shape(&query, &key);
    let [_, heads, queries, d_head] = query.dims();
    let masked = mask.masked_pairs(&shape, &query.device());
    if query.dims().contains(&0) || key.dims().contains(&0) {
        return per_kv_head(query, key.transpose());
    }
    let keys = [&[&key], values].concat();
    let poisoned = poisoned_rows(&query) + reached_rows(&keys, [heads, queries], masked);

    let mut scores =
        per_kv_head(finite(query), finite(key).transpose()).mul_scalar(options.scale_for(d_head));
    if let Some(cap) = options.softcap {
        // Not div_scalar: its gradient in Burn 0.22.1 goes through an f32 reciprocal, also for f64.
        scores = scores.mul_scalar(1.0 / cap).tanh().mul_scalar(cap);
    }
    let dtype = scores.dtype();
    if let Some(bias) = mask.bias_for(&shape) {
        scores = scores + in_dtype(bias, dtype);
    }
    masked_scores(scores + in_dtype(nan_where(poisoned), dtype), mask)
}

/// The scores where the query may attend to the key, and −∞ where it may not: whatever was there,
/// NaN included, leaves no trace.
///
/// Call it again after a change of the scores, so that masked pairs stay masked.
///
/// # Shapes
/// - scores, output: `[batch, heads, queries, keys]`
///
/// # Panics
/// If the mask is for another shape.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{Mask, masked_scores, softmax_of_scores};
///
/// // All scores of two queries and two keys were set to 0. The first query still sees one key.
/// let scores = Tensor::<4>::zeros([1, 1, 2, 2], &Device::flex());
/// let weights = softmax_of_scores(masked_scores(scores, &Mask::causal()));
/// assert_eq!(weights.into_data().to_vec::<f32>().unwrap(), [1.0, 0.0, 0.5, 0.5]);
/// ```
#[must_use]
pub fn masked_scores(scores: Tensor<4>, mask: &Mask) -> Tensor<4> {
    match masked_pairs(&scores, mask) {
        Some(masked) => scores.mask_fill(masked, f32::NEG_INFINITY),
        None => scores,
    }
}

/// True for each pair that may not attend; `None` if all pairs may.
fn masked_pairs(scores: &Tensor<4>, mask: &Mask) -> Option<Tensor<4, Bool>> {
    let dims = scores.dims();
    let [batch, heads, queries, keys] = dims;
    let shape = ScoreShape {
        batch,
        heads,
        queries,
        keys,
    };
    let masked = mask.masked_pairs(&shape, &scores.device())?;
    Some(masked.expand(dims))
}

/// Softmax over the keys, `exp(s − max) / Σ exp(s − max)`, and 0 for a row of −∞ alone. A weight is
/// exactly 0 where the score is −∞. All other weights of a row with NaN are NaN.
///
/// # Shapes
/// - scores, weights: `[batch, heads, queries, keys]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::softmax_of_scores;
///
/// let none = f32::NEG_INFINITY;
/// let scores = Tensor::<4>::from_floats([[[[0.0, none], [none, none]]]], &Device::flex());
/// let weights = softmax_of_scores(scores).into_data().to_vec::<f32>().unwrap();
/// assert_eq!(weights, [1.0, 0.0, 0.0, 0.0]);
/// ```
#[must_use]
pub fn softmax_of_scores(scores: Tensor<4>) -> Tensor<4> {
    if scores.dims().contains(&0) {
        return scores;
    }
    let masked = scores.clone().equal_scalar(f32::NEG_INFINITY);
    let row_is_nan = scores.clone().is_nan().any_dim(3);
    let nan = nan_where(row_is_nan.float());
    let scores = scores.clone() + in_dtype(nan, scores.dtype());
    softmax(scores.mask_fill(masked, f32::NEG_INFINITY))
}

/// [`softmax_of_scores`] of rows without NaN, or with NaN wherever they are not −∞.
fn softmax(scores: Tensor<4>) -> Tensor<4> {
    if scores.dims().contains(&0) {
        return scores;
    }
    let max = scores.clone().detach().max_dim(3);
    // −∞ − (−∞) would be NaN; 0 as the maximum makes every exponential of such a row 0. The same
    // where the maximum is NaN: the exponentials of masked scores are 0.
    let no_max = max.clone().is_finite().bool_not();
    let exponentials = (scores - max.mask_fill(no_max, 0.0)).exp();
    let sum = exponentials.clone().sum_dim(3);
    let no_sum = sum
        .clone()
        .lower_equal_scalar(0.0)
        .bool_or(sum.clone().is_nan());
    exponentials / sum.mask_fill(no_sum, 1.0)
}

/// `weights·V`, the last step of [`attention`], for weights that a caller computed or changed.
///
/// # Shapes
/// - weights: `[batch, heads, queries, keys]`
/// - value: `[batch, kv_heads, keys, d_value]`
/// - output: `[batch, heads, queries, d_value]`
///
/// `mask` is the mask of the weights. A value that is not finite makes a query NaN only if the query
/// may attend to its key.
///
/// # Panics
/// If the shapes do not belong together; the message names both.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{weighted_sum, Mask};
///
/// let weights = Tensor::<4>::from_floats([[[[0.25, 0.75]]]], &Device::flex());
/// let value = Tensor::<4>::from_floats([[[[4.0], [8.0]]]], &Device::flex());
/// assert_eq!(weighted_sum(weights, value, &Mask::none()).into_scalar::<f32>(), 7.0); // ¼·4 + ¾·8
/// ```
#[must_use]
pub fn weighted_sum(weights: Tensor<4>, value: Tensor<4>, mask: &Mask) -> Tensor<4> {
    let [batch, heads, queries, keys] = weights.dims();
    assert!(
        value.dims()[0] == batch
            && value.dims()[2] == keys
            && groups(heads, value.dims()[1]).is_some(),
        "weights {:?} [batch, heads, queries, keys] and value {:?} [batch, kv_heads, keys, d_value] do not fit",
        weights.dims(),
        value.dims()
    );
    let dtype = value.dtype();
    let value = at_least_f32(value);
    let dims = weights.dims();
    let masked = masked_pairs(&weights, mask);
    if dims.contains(&0) || value.dims().contains(&0) {
        return in_dtype(per_kv_head(weights, value), dtype);
    }
    let reached = reached_rows(&[&value], [heads, queries], masked.clone());
    // 1, or NaN where the query may attend to the key and its row is reached.
    let mut factors = nan_where(reached).add_scalar(1.0).expand(dims);
    if let Some(masked) = masked {
        factors = factors.mask_fill(masked, 1.0);
    }
    let weights = weights.clone() * in_dtype(factors, weights.dtype());
    in_dtype(sum_of_values(weights, value), dtype)
}

/// `weights·V`; 0 stands in place of values that are not finite.
fn sum_of_values(weights: Tensor<4>, value: Tensor<4>) -> Tensor<4> {
    if weights.dims().contains(&0) || value.dims().contains(&0) {
        return per_kv_head(weights, value);
    }
    let z = per_kv_head(weights, finite(value));
    // A row that is NaN takes no gradient back: 0·NaN would carry it to masked keys. Its weights
    // are NaN, and so are the gradients of its pairs.
    let is_nan = z.clone().is_nan();
    z.mask_fill(is_nan, f32::NAN)
}

/// Multiplies `left·right` for each query head and the key/value head that it reads.
///
/// The query heads of a group are neighbours, so a group is one taller matrix and no key is
/// repeated.
fn per_kv_head(left: Tensor<4>, right: Tensor<4>) -> Tensor<4> {
    let [batch, heads, rows, inner] = left.dims();
    let [_, kv_heads, _, columns] = right.dims();
    if [batch, heads, rows, inner, columns].contains(&0) {
        return Tensor::zeros(
            [batch, heads, rows, columns],
            (&left.device(), left.dtype()),
        );
    }
    if heads == kv_heads {
        return left.matmul(right);
    }
    let rows_in_group = heads / kv_heads * rows;
    left.reshape([batch, kv_heads, rows_in_group, inner])
        .matmul(right) // [batch, kv_heads, rows_in_group, columns]
        .reshape([batch, heads, rows, columns])
}

fn score_shape(query: &Tensor<4>, key: &Tensor<4>) -> ScoreShape {
    let [batch, heads, queries, d_head] = query.dims();
    let [key_batch, kv_heads, keys, key_width] = key.dims();
    assert!(
        batch == key_batch && d_head == key_width && groups(heads, kv_heads).is_some(),
        "query {:?} [batch, heads, queries, d_head] and key {:?} [batch, kv_heads, keys, d_head] do not fit",
        query.dims(),
        key.dims()
    );
    ScoreShape {
        batch,
        heads,
        queries,
        keys,
    }
}

fn assert_key_fits_value(key: &Tensor<4>, value: &Tensor<4>) {
    assert!(
        key.dims()[..3] == value.dims()[..3],
        "key {:?} [batch, kv_heads, keys, d_head] and value {:?} [batch, kv_heads, keys, d_value] do not fit",
        key.dims(),
        value.dims()
    );
}

/// The number of query heads per key/value head, if one number divides the other.
fn groups(heads: usize, kv_heads: usize) -> Option<usize> {
    (kv_heads > 0 && heads.is_multiple_of(kv_heads)).then(|| heads / kv_heads)
}

/// f16 overflows at 65,504 and bf16 has 8 bits: both are widened before the first product.
fn at_least_f32(tensor: Tensor<4>) -> Tensor<4> {
    match tensor.dtype() {
        DType::F16 | DType::BF16 => tensor.cast(FloatDType::F32),
        _ => tensor,
    }
}

fn in_dtype(tensor: Tensor<4>, dtype: DType) -> Tensor<4> {
    match dtype {
        same if same == tensor.dtype() => tensor,
        DType::F64 => tensor.cast(FloatDType::F64),
        DType::F16 => tensor.cast(FloatDType::F16),
        DType::BF16 => tensor.cast(FloatDType::BF16),
        _ => tensor.cast(FloatDType::F32),
    }
}
