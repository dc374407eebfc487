//! `[model]`: sizes and parts.

use serde::{Deserialize, Serialize};

use crate::{
    InputError,
    check::{require, require_positive},
};

/// `[model]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of heads in each block.
    pub n_heads: usize,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of tokens in a sequence.
    pub n_ctx: usize,
    /// The width of a head; left out: `d_model / n_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_head: Option<usize>,
    /// The feed-forward of each block.
    #[serde(default)]
    pub feed_forward: FeedForwardKind,
    /// The width of the feed-forward; left out: `4·d_model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_ff: Option<usize>,
    /// The norm before each part.
    #[serde(default)]
    pub norm: NormKind,
    /// The number under the norm's root.
    #[serde(default = "default_norm_epsilon")]
    pub norm_epsilon: f64,
    /// The factor on `Q·Kᵀ`; left out: `1/√d_head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_scale: Option<f64>,
    /// The standard deviation of the initial weights.
    #[serde(default = "default_init_std")]
    pub init_std: f64,
}

fn default_norm_epsilon() -> f64 {
    1e-5
}

fn default_init_std() -> f64 {
    0.02
}

/// `model.feed_forward`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedForwardKind {
    /// Attention only.
    #[default]
    None,
    /// `max(0, x)`
    Relu,
    /// `x·Φ(x)`
    Gelu,
}

/// `model.norm`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    /// Layer norm.
    #[default]
    LayerNorm,
    /// Layer norm that neither centres nor shifts.
    RmsNorm,
    /// Each part reads the stream as it is.
    None,
}

impl ModelConfig {
    /// Checks every number against what makes sense and against the others.
    pub(crate) fn check(&self) -> Result<(), InputError> {
        // At most: far above any mini-transformer; below what would exhaust memory before the first step.
        for (key, value, most) in [
            ("model.n_layers", self.n_layers, 128),
            ("model.n_heads", self.n_heads, 1024),
            ("model.d_model", self.d_model, 16_384),
            ("model.n_ctx", self.n_ctx, 65_536),
            ("model.d_head", self.d_head.unwrap_or(1), 16_384),
            ("model.d_ff", self.d_ff.unwrap_or(1), 131_072),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
            require(value <= most, key, value, format_args!("must be at most {most}"))?;
        }
        require(
            self.d_head.is_some() || self.d_model.is_multiple_of(self.n_heads),
            "model.d_model",
            self.d_model,
            format_args!("is not divisible by model.n_heads = {}", self.n_heads),
        )?;
        require(
            self.d_ff.is_none() || self.feed_forward != FeedForwardKind::None,
            "model.d_ff",
            self.d_ff.unwrap_or_default(),
            "there is no feed-forward; set model.feed_forward",
        )?;
        require_positive("model.norm_epsilon", self.norm_epsilon)?;
        require_positive("model.init_std", self.init_std)?;
        require_positive("model.attention_scale", self.attention_scale.unwrap_or(1.0))
    }
}
