//! Attention for Burn: `softmax(Q·Kᵀ/√d_head + mask)·V`, readable, correct at the edges, with every
//! head open to inspection.
//!
//! # The mechanism
//!
//! Attention is a soft lookup. Each token has a **query** (what am I looking for?), a **key** (what
//! do I advertise?) and a **value** (what do I carry?). A dot product compares query `i` with every
//! key. Softmax turns the row of scores into weights that sum to 1. The output is the sum of the
//! values with these weights:
//!
//! ```text
//! Q = X·W_Q        K = X·W_K        V = X·W_V          parameters W, activations Q, K, V
//! scores  = Q·Kᵀ / √d_head                             [queries, keys], one row per query
//! weights = softmax(scores, over keys)                 each row sums to 1
//! output  = weights·V                                  [queries, d_value]
//! ```
//!
//! `W_Q`, `W_K`, `W_V`, `W_O` are the **parameters**, learned and stored. Q, K, V are
//! **activations**, computed anew from every input.
//!
//! # Conventions
//!
//! | question | answer |
//! |---|---|
//! | shapes | q `[batch, heads, queries, d_head]`, k `[batch, kv_heads, keys, d_head]`, v `[batch, kv_heads, keys, d_value]`; weights `[batch, heads, queries, keys]`, rows index queries |
//! | mask | [`Mask`] says which query **may attend** to which key; masks combine with [`Mask::and`], and a pair may attend only if all agree |
//! | causal with queries ≠ keys | compares positions, aligned at the end: the last query sees every key |
//! | a query that may attend to nothing | weights 0, output 0, gradients 0 and finite |
//! | masked positions | weight exactly 0, by selection, never by adding a large number; after a change of the scores, [`masked_scores`] masks them again |
//! | a query, a key or a value that is not finite | NaN for exactly those queries that may attend to it, and in the gradients of their pairs; all other numbers and gradients stay as they are |
//! | scale | `1/√d_head` unless set; softcap comes before the mask |
//! | softmax | in f32 or wider, for f16 and bf16 inputs too |
//! | grouped queries | query head `h` reads key/value head `h / (heads / kv_heads)` |
//! | dropout | on the weights, after softmax, only in a call that is given a [`Dropout`]; returned weights are the ones before dropout |
//! | weights | per head, on request, together with the output; the output keeps its bits |
//! | errors | a shape that cannot be right panics and names both shapes; a configuration that cannot be right is an `Err` that names both numbers |
//!
//! # Masks, drawn
//!
//! `■` may attend, `·` may not. Rows are queries, columns are keys.
//!
//! ```text
//! none            causal          window(2)       lengths([2])    causal and lengths([2])   causal, 1 query of 4
//!   k0 k1 k2 k3     k0 k1 k2 k3     k0 k1 k2 k3     k0 k1 k2 k3     k0 k1 k2 k3               k0 k1 k2 k3
//! q0 ■  ■  ■  ■   q0 ■  ·  ·  ·   q0 ■  ·  ·  ·   q0 ■  ■  ·  ·   q0 ■  ·  ·  ·             q3 ■  ■  ■  ■
//! q1 ■  ■  ■  ■   q1 ■  ■  ·  ·   q1 ■  ■  ·  ·   q1 ■  ■  ·  ·   q1 ■  ■  ·  ·
//! q2 ■  ■  ■  ■   q2 ■  ■  ■  ·   q2 ·  ■  ■  ·   q2 ■  ■  ·  ·   q2 ■  ■  ·  ·
//! q3 ■  ■  ■  ■   q3 ■  ■  ■  ■   q3 ·  ·  ■  ■   q3 ■  ■  ·  ·   q3 ■  ■  ·  ·
//! ```
//!
//! Constructors in [`mask_convert`] convert masks of other libraries, each by name.
//!
//! # How this differs
//!
//! **From PyTorch.** `scaled_dot_product_attention` takes true as *may attend*,
//! `nn.MultiheadAttention` as *may not*; here one type says *may attend*, and only constructors
//! that name their meaning take Bool tensors. PyTorch's `is_causal` with fewer queries than keys
//! lets the first query see one key; here the last query sees all keys, as decoding needs.
//! Projections multiply from the left, `x·W`, with `W [in, out]`; PyTorch stores `Wᵀ`.
//!
//! **From Burn's module.** `burn::nn` fills masked scores with −10⁴, and real scores can be lower.
//! Its output for a query without keys is the mean of the masked values. Here masked weights are
//! exactly 0 by selection. Burn's module has as many key heads as query heads and no bias on
//! scores. Its cache also keeps queries and computes all scores again.
//!
//! **From flash attention** (Dao et al. 2022). The function is the same. The order of work is the
//! same too if the cargo feature `flex` is on, the device is Burn's CPU backend, and the numbers
//! are f32. Then forward takes blocks of keys with a running maximum, backward starts from one
//! saved number a row, and memory is linear in the length (except for a dense bias). In all other
//! cases attention is composed of plain tensor operations and stores the n×n weights.
//!
//! # The two circuits of a head
//!
//! `W_Q` and `W_K` only ever act together: the score of two inputs is `x_q·W_Q·W_Kᵀ·x_kᵀ`, a
//! bilinear form of rank `d_head`, which decides *where* a head looks. `W_V` and `W_O` act together
//! too: `x_k·W_V·W_O` is the vector that the head adds to the stream for a token it attends to,
//! which decides *what* the head moves (Elhage et al. 2021, "QK and OV circuits"). The two circuits
//! are separate, so a head may find a token by one property and copy another. For the same reason a
//! pattern alone does not show the effect of a head: a head that attends to a value near zero adds
//! nothing.
//!
//! Costs for n tokens: the projections take `4·n·d_model²` multiplications when heads are `d_model
//! / n_heads` wide, for any number of heads. Scores and the weighted sum take `2·n²·d_model`.
//!
//! # Cargo features
//!
//! `flex` adds the kernel on Burn's CPU backend. Without features the crate compiles without any
//! backend.

mod alibi;
mod dropout;
mod error;
#[cfg(feature = "flex")]
mod kernel;
mod kv_cache;
mod load;
mod mask;
pub mod mask_convert;
mod mask_rule;
mod mask_tensors;
mod multi_head;
mod multi_head_config;
mod poison;
mod position_scheme;
mod positions;
mod qk_norm;
mod relative_bias;
mod rotary;
mod rotary_scaling;
mod scaled_dot_product;
mod score_shape;
mod single_head;
pub mod worked_example;

pub use alibi::Alibi;
pub use dropout::{Dropout, DropoutKey};
pub use error::ConfigError;
pub use kv_cache::KvCache;
pub use load::{LoadError, WeightFormat};
pub use mask::Mask;
pub use multi_head::{HeadInputs, Heads, MultiHeadAttention};
pub use multi_head_config::{Biases, MultiHeadAttentionConfig};
pub use position_scheme::{PositionConfig, PositionScheme};
pub use positions::Positions;
pub use qk_norm::QkNorm;
pub use relative_bias::RelativeBias;
pub use rotary::{Rotary, RotaryLayout};
pub use rotary_scaling::RotaryScaling;
pub use scaled_dot_product::{
    AttentionOptions, attention, attention_scores, attention_weights, attention_with_dropout,
    masked_scores, softmax_of_scores, weighted_sum,
};
pub use single_head::SingleHeadAttention;

/// Compiles and runs the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
