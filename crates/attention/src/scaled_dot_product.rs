//! The equation: `softmax(Q·Kᵀ/√d_head + mask)·V`, as plain tensor operations.

use burn::{
    config::Config,
    tensor::{DType, FloatDType, Tensor},
};
use serde::{Deserialize, Serialize};

use crate::{Dropout, Mask, score_shape::ScoreShape};

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
/// attend to nothing is 0. A key that no query may attend to may hold any number, NaN included.
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
    let mut weights = attention_weights(query, key, mask, options);
    if let Some(dropout) = dropout {
        let factors = dropout.factors(weights.dims(), &weights.device());
        let dtype = weights.dtype();
        weights = weights * in_dtype(factors, dtype);
    }
    weighted_sum(weights, value, mask)
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

/// The scores before softmax, `Q·Kᵀ·scale` (softcapped, plus the bias), −∞ where the query may not
/// attend.
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
    let shape = score_shape(&query, &key);
    let [_, _, _, d_head] = query.dims();
    let device = query.device();
    let materialized = mask.materialize(&shape, &device);

    let (query, key) = (at_least_f32(query), at_least_f32(key));
    let key = clear_dead_keys(key, &materialized);
    let mut scores = per_kv_head(query, key.transpose()).mul_scalar(options.scale_for(d_head));
    if let Some(cap) = options.softcap {
        // Not div_scalar: its gradient in Burn 0.22.1 goes through an f32 reciprocal, also for f64.
        scores = scores.mul_scalar(1.0 / cap).tanh().mul_scalar(cap);
    }
    if let Some(bias) = mask.bias_for(&shape) {
        let dtype = scores.dtype();
        scores = scores + in_dtype(bias, dtype);
    }
    match materialized.blocked {
        // Selection, not addition: a masked score of any size leaves no trace.
        Some(blocked) => {
            let dims = scores.dims();
            scores.mask_fill(blocked.expand(dims), f32::NEG_INFINITY)
        }
        None => scores,
    }
}

/// Softmax over the keys, `exp(s − max) / Σ exp(s − max)`, and 0 for a row of −∞ alone.
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
    let max = scores.clone().detach().max_dim(3);
    let nothing_allowed = max.clone().equal_scalar(f32::NEG_INFINITY);
    // −∞ − (−∞) would be NaN; 0 as the maximum makes every exponential of such a row 0.
    let max = max.mask_fill(nothing_allowed.clone(), 0.0);
    let exponentials = (scores - max).exp();
    let sum = exponentials
        .clone()
        .sum_dim(3)
        .mask_fill(nothing_allowed, 1.0);
    exponentials / sum
}

/// `weights·V`, the last step of [`attention`], for weights that a caller computed or changed.
///
/// # Shapes
/// - weights: `[batch, heads, queries, keys]`
/// - value: `[batch, kv_heads, keys, d_value]`
/// - output: `[batch, heads, queries, d_value]`
///
/// `mask` is the mask of the weights. Values of keys that no query may attend to are not read.
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
    let shape = ScoreShape {
        batch,
        heads,
        queries,
        keys,
    };
    let value = clear_dead_keys(
        at_least_f32(value),
        &mask.materialize(&shape, &weights.device()),
    );
    let z = per_kv_head(weights, value);
    in_dtype(z, dtype)
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

/// Sets keys or values to 0 where no query may attend to them: 0·NaN would be NaN.
fn clear_dead_keys(
    keys_or_values: Tensor<4>,
    mask: &crate::mask_tensors::Materialized,
) -> Tensor<4> {
    match &mask.dead_keys {
        Some(dead) => {
            let dims = keys_or_values.dims();
            keys_or_values.mask_fill(dead.clone().expand(dims), 0.0)
        }
        None => keys_or_values,
    }
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
