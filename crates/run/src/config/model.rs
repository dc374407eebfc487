//! `[model]`: sizes and parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    config::requirements::{require, require_positive},
};

/// `[model]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of query heads in each block.
    pub n_heads: usize,
    /// The number of key/value heads in each block; left out: `n_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_kv_heads: Option<usize>,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of tokens in a sequence.
    pub n_ctx: usize,
    /// The width of a head; left out: `d_model / n_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_head: Option<usize>,
    /// Whether the projections of attention have biases.
    #[serde(default)]
    pub attention_bias: bool,
    /// The feed-forward of each block.
    #[serde(default)]
    pub feed_forward: FeedForwardKind,
    /// The width of the feed-forward; left out: `4·d_model`, for `SwiGLU` `8/3·d_model` rounded up
    /// to a multiple of 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_ff: Option<usize>,
    /// Whether the feed-forward has biases; left out: all but `SwiGLU` have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward_bias: Option<bool>,
    /// The norm.
    #[serde(default)]
    pub norm: NormKind,
    /// The number under the norm's root.
    #[serde(default = "default_norm_epsilon")]
    pub norm_epsilon: f64,
    /// Where the norm stands.
    #[serde(default)]
    pub norm_placement: NormPlacement,
    /// How positions enter.
    #[serde(default)]
    pub positions: PositionKind,
    /// The base of rotary angles; left out: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_base: Option<f64>,
    /// How many tokens up to itself a token sees; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Whether the unembedding is the embedding transposed.
    #[serde(default)]
    pub tied_embedding: bool,
    /// The factor on `Q·Kᵀ`; left out: `1/√d_head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_scale: Option<f64>,
    /// How the initial weights are drawn.
    #[serde(default)]
    pub initialization: InitializationKind,
    /// The standard deviation of the initial weights.
    #[serde(default = "default_init_std")]
    pub init_std: f64,
    /// The factor on the scores of compiled weights; left out: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coldness: Option<f64>,
}

fn default_norm_epsilon() -> f64 {
    1e-5
}

fn default_init_std() -> f64 {
    0.02
}

/// `model.feed_forward`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedForwardKind {
    /// Attention only.
    #[default]
    None,
    /// `max(0, x)`
    Relu,
    /// `x·Φ(x)`
    Gelu,
    /// GELU by way of tanh, as in GPT-2.
    GeluTanh,
    /// Gated, as in Llama.
    #[serde(rename = "swiglu")]
    SwiGlu,
}

/// `model.norm`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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

/// `model.norm_placement`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NormPlacement {
    /// Each part reads the stream through a norm.
    #[default]
    Pre,
    /// A norm replaces the stream after each part has added to it.
    Post,
}

/// `model.positions`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PositionKind {
    /// A learned vector is added to the embedding.
    #[default]
    Learned,
    /// Sines and cosines are added to the embedding.
    Sinusoidal,
    /// Queries and keys rotate.
    Rotary,
    /// Scores fall with distance.
    Alibi,
    /// Not at all.
    None,
}

/// `model.initialization`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InitializationKind {
    /// One deviation, less for what writes to the stream the more parts write.
    #[default]
    Gpt2,
    /// One deviation for all.
    Normal,
    /// A deviation from each matrix's shape.
    Xavier,
    /// Not drawn: the weights compute the program that the task asks for.
    Compiled,
}

impl ModelConfig {
    /// The factor on the scores of compiled weights, in force.
    #[must_use]
    pub fn coldness(&self) -> f64 {
        self.coldness.unwrap_or(100.0)
    }

    /// The width of a head in force.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.d_head.unwrap_or(self.d_model / self.n_heads)
    }

    /// The width of the feed-forward in force.
    #[must_use]
    pub fn d_ff(&self) -> usize {
        self.d_ff.unwrap_or(match self.feed_forward {
            // Three matrices then hold what two of 4·d_model would (Touvron et al. 2023, section
            // 2.2).
            FeedForwardKind::SwiGlu => (8 * self.d_model).div_ceil(3).next_multiple_of(8),
            _ => 4 * self.d_model,
        })
    }

    /// Whether the feed-forward has biases, in force.
    #[must_use]
    pub fn feed_forward_bias(&self) -> bool {
        self.feed_forward_bias
            .unwrap_or(self.feed_forward != FeedForwardKind::SwiGlu)
    }

    /// Checks every number against what makes sense and against the others.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // At most: far above any mini-transformer; below what would exhaust memory before the first
        // step. A configuration may be anything: see the module `untrusted`.
        for (key, value, most) in [
            ("model.n_layers", self.n_layers, 128),
            ("model.n_heads", self.n_heads, 1024),
            ("model.n_kv_heads", self.n_kv_heads.unwrap_or(1), 1024),
            ("model.d_model", self.d_model, 16_384),
            ("model.n_ctx", self.n_ctx, 65_536),
            ("model.d_head", self.d_head.unwrap_or(1), 16_384),
            ("model.d_ff", self.d_ff.unwrap_or(1), 131_072),
            ("model.window", self.window.unwrap_or(1), 65_536),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
            require(
                value <= most,
                key,
                value,
                format_args!("must be at most {most}"),
            )?;
        }
        require(
            self.d_head.is_some() || self.d_model.is_multiple_of(self.n_heads),
            "model.d_model",
            self.d_model,
            format_args!("is not divisible by model.n_heads = {}", self.n_heads),
        )?;
        require(
            self.n_heads * self.d_head() <= 65_536,
            "model.d_head",
            self.d_head(),
            format_args!(
                "with model.n_heads = {} attention is wider than 65536",
                self.n_heads
            ),
        )?;
        require(
            self.n_heads.is_multiple_of(self.n_kv_heads.unwrap_or(1)),
            "model.n_kv_heads",
            self.n_kv_heads.unwrap_or_default(),
            format_args!("does not divide model.n_heads = {}", self.n_heads),
        )?;
        let window = self.window.unwrap_or(1);
        require(
            window <= self.n_ctx,
            "model.window",
            window,
            format_args!("is wider than model.n_ctx = {}", self.n_ctx),
        )?;
        let no_feed_forward = "there is no feed-forward; set model.feed_forward";
        let has_feed_forward = self.feed_forward != FeedForwardKind::None;
        require(
            self.d_ff.is_none() || has_feed_forward,
            "model.d_ff",
            self.d_ff.unwrap_or_default(),
            no_feed_forward,
        )?;
        require(
            self.feed_forward_bias.is_none() || has_feed_forward,
            "model.feed_forward_bias",
            self.feed_forward_bias.unwrap_or_default(),
            no_feed_forward,
        )?;
        let rotary = self.positions == PositionKind::Rotary;
        require(
            !rotary || self.d_head().is_multiple_of(2),
            "model.positions",
            "rotary",
            format_args!("takes heads of even width, not {}", self.d_head()),
        )?;
        require(
            self.rotary_base.is_none() || rotary,
            "model.rotary_base",
            self.rotary_base.unwrap_or_default(),
            "nothing rotates; set model.positions = \"rotary\"",
        )?;
        require(
            self.norm != NormKind::None || self.norm_placement == NormPlacement::Pre,
            "model.norm_placement",
            "post",
            "there is no norm to place; set model.norm",
        )?;
        require(
            self.coldness.is_none() || self.initialization == InitializationKind::Compiled,
            "model.coldness",
            self.coldness.unwrap_or_default(),
            "only compiled weights have one; set model.initialization = \"compiled\"",
        )?;
        require_positive("model.coldness", self.coldness())?;
        require_positive("model.rotary_base", self.rotary_base.unwrap_or(1.0))?;
        require_positive("model.norm_epsilon", self.norm_epsilon)?;
        require_positive("model.init_std", self.init_std)?;
        require_positive("model.attention_scale", self.attention_scale.unwrap_or(1.0))
    }
}
