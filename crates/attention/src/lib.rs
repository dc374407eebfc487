//! Attention for Burn: `softmax(Q·Kᵀ/√d_head + mask)·V`, readable, correct at the edges, with every head open to
//! inspection.
//!
//! # The mechanism
//!
//! Attention is a soft lookup. Each token sends out a **query** (what am I looking for?), is found by its **key**
//! (what do I advertise?) and hands over its **value** (what do I carry?). Query `i` is compared with every key by
//! a dot product; softmax turns the row of scores into weights that sum to 1; the output is the blend of values
//! with these weights:
//!
//! ```text
//! Q = X·W_Q        K = X·W_K        V = X·W_V          parameters W, activations Q, K, V
//! scores  = Q·Kᵀ / √d_head                             [queries, keys], one row per query
//! weights = softmax(scores, over keys)                 each row sums to 1
//! output  = weights·V                                  [queries, d_value]
//! ```
//!
//! `W_Q`, `W_K`, `W_V`, `W_O` are the **parameters**, learned and stored. Q, K, V are **activations**, computed
//! anew from every input.
//!
//! # What things mean here
//!
//! | question | answer |
//! |---|---|
//! | shapes | q `[batch, heads, queries, d_head]`, k `[batch, kv_heads, keys, d_head]`, v `[batch, kv_heads, keys, d_value]`; weights `[batch, heads, queries, keys]`, rows index queries |
//! | mask | [`Mask`] says which query **may attend** to which key; masks combine with [`Mask::and`], and a pair may attend only if all agree |
//! | causal with queries ≠ keys | by positions, aligned at the end: the last query sees every key |
//! | a query that may attend to nothing | weights 0, output 0, gradients 0 and finite |
//! | masked positions | weight exactly 0, by selection, never by adding a large number |
//! | a key that no query may attend to | may hold anything, NaN included |
//! | scale | `1/√d_head` unless set; softcap comes before the mask |
//! | softmax | in f32 or wider, for f16 and bf16 inputs too |
//! | grouped queries | query head `h` reads key/value head `h / (heads / kv_heads)` |
//! | errors | a shape that cannot be right panics and names both shapes; a configuration that cannot be right is an `Err` that names both numbers |

mod alibi;
mod dropout;
mod error;
mod kv_cache;
mod load;
mod mask;
pub mod mask_convert;
mod mask_rule;
mod multi_head;
mod multi_head_config;
mod position_scheme;
mod positions;
mod relative_bias;
mod rotary;
mod scaled_dot_product;
mod single_head;

pub use alibi::Alibi;
pub use dropout::{Dropout, DropoutKey};
pub use error::ConfigError;
pub use kv_cache::KvCache;
pub use load::{LoadError, WeightFormat};
pub use mask::Mask;
pub use multi_head::{Heads, MultiHeadAttention};
pub use multi_head_config::{Biases, MultiHeadAttentionConfig};
pub use position_scheme::{PositionConfig, PositionScheme};
pub use positions::Positions;
pub use relative_bias::RelativeBias;
pub use rotary::{Rotary, RotaryLayout};
pub use scaled_dot_product::{
    AttentionOptions, attention, attention_scores, attention_weights, softmax_of_scores, weighted_sum,
};
pub use single_head::SingleHeadAttention;
