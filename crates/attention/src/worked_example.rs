//! Attention on "The cat sat down", with numbers small enough to follow with a pencil.
//!
//! Four tokens, one head, no mask, `d_model` 8, `d_k = d_v = 4`. `X` and the parameters were chosen
//! by hand; every other number follows from them.

use burn::{
    module::Param,
    tensor::{Device, Tensor, activation::softmax},
};

use crate::{ConfigError, SingleHeadAttention};

/// Numbers row by row.
pub type Rows = Vec<Vec<f32>>;

/// The width of `X`.
pub const D_MODEL: usize = 8;
/// The width of queries, keys and values.
pub const D_K: usize = 4;
/// The sentence.
pub const TOKENS: [&str; 4] = ["The", "cat", "sat", "down"];

/// One row per token, one column per feature.
const X: [[f32; D_MODEL]; 4] = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], // The
    [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], // cat
    [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.5, 0.0], // sat
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 1.0, 0.0], // down
];

type Weights = [f32; D_K];

/// The features and their rows of `W_Q`, `W_K`, `W_V`. A row of `W_Q` is what a token with the
/// feature looks for, a row of `W_K` is how it is found, a row of `W_V` is what it passes on.
const FEATURES: [(&str, Weights, Weights, Weights); D_MODEL] = [
    // name         W_Q                   W_K                   W_V
    (
        "determiner",
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.5, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ),
    (
        "noun",
        [0.0, 1.0, 0.5, 0.0],
        [1.5, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ),
    (
        "verb",
        [2.0, 0.0, 0.0, 0.0],
        [0.0, 1.5, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
    ),
    (
        "adverb",
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.5],
        [0.0, 0.0, 0.5, 0.0],
    ),
    (
        "living",
        [0.0, 1.0, 1.0, 0.0],
        [0.5, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, -0.5],
    ),
    (
        "posture",
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
    ),
    (
        "direction",
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 1.0, 0.0],
    ),
    (
        "first",
        [0.5, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0],
        [0.0, 0.0, 0.0, 0.5],
    ),
];

/// Every matrix on the way from `X` to the output.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkedExample {
    /// The input, `[tokens, d_model]`.
    pub x: Rows,
    /// Parameters, `[d_model, d_k]`: each row is a feature's part of a query.
    pub w_q: Rows,
    /// Parameters, `[d_model, d_k]`: each row is a feature's part of a key.
    pub w_k: Rows,
    /// Parameters, `[d_model, d_v]`: each row is a feature's part of a value.
    pub w_v: Rows,
    /// Activations, `X·W_Q`.
    pub q: Rows,
    /// Activations, `X·W_K`.
    pub k: Rows,
    /// Activations, `X·W_V`.
    pub v: Rows,
    /// `Q·Kᵀ`, `[queries, keys]`.
    pub scores: Rows,
    /// `scores/√d_k`
    pub scaled: Rows,
    /// `softmax(scaled)`: each row sums to 1.
    pub weights: Rows,
    /// `weights·V`, `[queries, d_v]`.
    pub output: Rows,
}

impl WorkedExample {
    /// The equation step by step, in plain tensor operations.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_attention::worked_example::WorkedExample;
    ///
    /// let example = WorkedExample::compute(&Device::flex());
    /// // cat is a noun (column 1) and living (column 4): its query is the sum of these two rows of W_Q.
    /// assert_eq!(example.q[1], [0.0, 2.0, 1.5, 0.0]);
    /// // sat's key is found as a verb: 0·0 + 2·2.5 + 1.5·0 + 0·0.5.
    /// assert_eq!(example.scores[1][2], 5.0);
    /// assert!((example.weights[1].iter().sum::<f32>() - 1.0).abs() < 1e-6);
    /// ```
    #[must_use]
    pub fn compute(device: &Device) -> Self {
        let x = Tensor::<2>::from_floats(X, device); // [tokens, d_model]
        let [w_q, w_k, w_v] = parameters(device);
        let [q, k, v] = [&w_q, &w_k, &w_v].map(|weight| x.clone().matmul(weight.clone())); // [tokens, d_k]
        let scores = q.clone().matmul(k.clone().transpose()); // [queries, keys]
        let scaled = scores.clone().div_scalar((D_K as f64).sqrt());
        let weights = softmax(scaled.clone(), 1); // over the keys: each row sums to 1
        let output = weights.clone().matmul(v.clone()); // [queries, d_v]
        let [x, w_q, w_k, w_v, q, k, v] = [x, w_q, w_k, w_v, q, k, v].map(rows);
        let [scores, scaled, weights, output] = [scores, scaled, weights, output].map(rows);
        Self {
            x,
            w_q,
            w_k,
            w_v,
            q,
            k,
            v,
            scores,
            scaled,
            weights,
            output,
        }
    }

    /// All matrices under their own names, in the order of the computation.
    #[must_use]
    pub fn matrices(&self) -> [(&'static str, &Rows); 11] {
        [
            ("X", &self.x),
            ("W_Q", &self.w_q),
            ("W_K", &self.w_k),
            ("W_V", &self.w_v),
            ("Q", &self.q),
            ("K", &self.k),
            ("V", &self.v),
            ("scores", &self.scores),
            ("scaled", &self.scaled),
            ("weights", &self.weights),
            ("output", &self.output),
        ]
    }
}

/// The output computed by the module that a model would use.
///
/// # Errors
/// As [`SingleHeadAttention::try_init`].
pub fn output_of_module(device: &Device) -> Result<Rows, ConfigError> {
    let mut head = SingleHeadAttention::try_init(D_MODEL, D_K, device)?;
    let [w_q, w_k, w_v] = parameters(device).map(Param::from_tensor);
    (head.w_q.weight, head.w_k.weight, head.w_v.weight) = (w_q, w_k, w_v);
    let batch_of_one = Tensor::<2>::from_floats(X, device).unsqueeze::<3>();
    Ok(rows(head.forward(batch_of_one).squeeze_dim(0)))
}

/// The names of the columns of `X`. Columns of a trained model have no names.
#[must_use]
pub fn features() -> [&'static str; D_MODEL] {
    FEATURES.map(|(name, ..)| name)
}

/// `W_Q`, `W_K`, `W_V`, each `[d_model, d_k]`.
fn parameters(device: &Device) -> [Tensor<2>; 3] {
    [
        FEATURES.map(|row| row.1),
        FEATURES.map(|row| row.2),
        FEATURES.map(|row| row.3),
    ]
    .map(|matrix| Tensor::from_floats(matrix, device))
}

fn rows(matrix: Tensor<2>) -> Rows {
    let [_, columns] = matrix.dims();
    let values: Vec<f32> = matrix.into_data().iter().collect();
    values.chunks_exact(columns).map(<[f32]>::to_vec).collect()
}
