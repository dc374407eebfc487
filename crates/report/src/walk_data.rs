//! One sequence's numbers on their way through the heads, as the model computed them.

use serde::{Deserialize, Serialize};

use crate::Floats;

/// The numbers of a walk; matrices are written row by row. Q, K, V … are activations, W_Q …
/// parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WalkData {
    /// The sequence.
    pub tokens: Vec<String>,
    /// The width of the stream.
    pub d_model: usize,
    /// The names of the stream's basis directions, where they have some.
    pub directions: Option<Vec<String>>,
    /// The width of a head.
    pub d_head: usize,
    /// The factor on `Q·Kᵀ`.
    pub scale: f64,
    /// What the factor is called: `1/√16`.
    pub scale_name: String,
    /// Whether the norms replace the stream (post-norm).
    pub replaces_stream: bool,
    /// What is written to the stream, in order: `embedding`, `positions`, `attention 0`,
    /// `feed-forward 0` …; each `[tokens, d_model]`.
    pub written: Vec<(String, Floats)>,
    /// The layers.
    pub layers: Vec<WalkLayer>,
}

/// One layer's attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WalkLayer {
    /// The layer, counted from 0.
    pub layer: usize,
    /// `X [tokens, d_model]`: the stream as it finds it.
    pub stream: Floats,
    /// The norm it reads through, if there is one.
    pub norm: Option<WalkNorm>,
    /// `[tokens, d_model]`: what all its heads write, and the bias.
    pub added: Floats,
    /// `b_O [d_model]`
    pub bias: Option<Floats>,
    /// Its heads, or some of them.
    pub heads: Vec<WalkHead>,
}

/// A norm with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WalkNorm {
    /// `layer` or `rms`.
    pub kind: String,
    /// `[d_model]`
    pub gain: Floats,
    /// `[d_model]`, of layer norm.
    pub bias: Option<Floats>,
    /// Under the root.
    pub epsilon: f64,
    /// `[tokens, d_model]`: what goes on.
    pub output: Floats,
}

/// One head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WalkHead {
    /// The head, counted from 0.
    pub head: usize,
    /// `W_Q`, `W_K`, `W_V`, each `[d_model, d_head]`.
    pub w_qkv: [Floats; 3],
    /// Their biases, each `[d_head]`.
    pub b_qkv: [Option<Floats>; 3],
    /// `W_O [d_head, d_model]`
    pub w_o: Floats,
    /// Q, K, V, each `[tokens, d_head]`.
    pub qkv: [Floats; 3],
    /// Q and K as rotary positions turn them.
    pub rotated: Option<[Floats; 2]>,
    /// `[tokens, tokens]`, −∞ where masked.
    pub scores: Floats,
    /// `[tokens, tokens]`
    pub pattern: Floats,
    /// `[tokens, d_head]`
    pub z: Floats,
    /// `[tokens, d_model]`: what the head writes.
    pub result: Floats,
}
