//! `[model]`: sizes and parts.

use std::path::PathBuf;

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
    /// A model of another tool whose training goes on: a folder of `transformers`, or a GGUF file.
    /// Sizes, parts, tokenizer and weights are its own; of the other keys of this table, `n_ctx`
    /// alone may differ: shorter sequences. A relative path starts at the working directory. Left
    /// out: the weights are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// SHA-256 of that model: of the GGUF file, or of the lines that `sha256sum` prints for the
    /// files of the folder, sorted by name. It is written to `config.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_sha256: Option<String>,
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of query heads in each block.
    pub n_heads: usize,
    /// The number of key/value heads in each block; left out: `n_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_kv_heads: Option<usize>,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of tokens in a sequence; may be left out where `from` is given: that of the model,
    /// at most 128.
    pub n_ctx: usize,
    /// The width of a head; left out: `d_model / n_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_head: Option<usize>,
    /// Whether the projections of attention have biases.
    #[serde(default)]
    pub attention_bias: bool,
    /// Whether `W_O` has a bias; left out: `attention_bias`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_output_bias: Option<bool>,
    /// Whether queries and keys are normalised before they are compared.
    #[serde(default)]
    pub qk_norm: QkNormKind,
    /// What the feed-forward reads.
    #[serde(default)]
    pub block_order: BlockOrder,
    /// The feed-forward of each block.
    #[serde(default)]
    pub feed_forward: FeedForwardKind,
    /// The width of the feed-forward; left out: `4·d_model`, gated `8/3·d_model` rounded up to a
    /// multiple of 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_ff: Option<usize>,
    /// Whether the feed-forward has biases; left out: those without a gate have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward_bias: Option<bool>,
    /// The norm.
    #[serde(default)]
    pub norm: NormKind,
    /// The number under the norm's root.
    #[serde(default = "default_norm_epsilon")]
    pub norm_epsilon: f64,
    /// Where the norms stand.
    #[serde(default)]
    pub norm_placement: NormPlacement,
    /// How positions enter.
    #[serde(default)]
    pub positions: PositionKind,
    /// The base of rotary angles; left out: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_base: Option<f64>,
    /// The base of layers that look through the window, whose angles are not scaled; left out: that
    /// of the other layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_base_in_window: Option<f64>,
    /// How many components of a head rotate; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_components: Option<usize>,
    /// How rotary angles are lowered for a longer context: `{ linear = { factor = 4.0 } }`,
    /// `{ dynamic = { factor = 4.0, original_n_ctx = 64 } }`, `{ yarn = { factor = 4.0, original_n_ctx = 64 } }`,
    /// `{ llama3 = { factor = 8.0, low_frequency_factor = 1.0, high_frequency_factor = 4.0,
    /// original_n_ctx = 8192 } }` or `{ longrope = { short_factors = [1.0, 1.0], long_factors = [1.5, 4.0],
    /// original_n_ctx = 64, attention_factor = 1.2 } }` with a factor for each pair; left out: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary_scaling: Option<RotaryScaling>,
    /// How many tokens up to itself a token sees; left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The layers, from 0, in which a token sees all tokens in spite of `window`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full_layers: Vec<usize>,
    /// The factor on embeddings; left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_scale: Option<f64>,
    /// Whether the unembedding is the embedding transposed.
    #[serde(default)]
    pub tied_embedding: bool,
    /// The factor on `Q·Kᵀ`; left out: `1/√d_head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_scale: Option<f64>,
    /// `c`: scores become `c·tanh(scores/c)`; left out: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_softcap: Option<f64>,
    /// `c`: logits become `c·tanh(logits/c)`; left out: unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logit_softcap: Option<f64>,
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
    /// `x/(1 + e^(−x))`
    Silu,
    /// Gated by `ReLU`.
    #[serde(rename = "reglu")]
    ReGlu,
    /// Gated by GELU.
    #[serde(rename = "geglu")]
    GeGlu,
    /// Gated by GELU by way of tanh, as in Gemma.
    #[serde(rename = "geglu_tanh")]
    GeGluTanh,
    /// Gated by `SiLU`, as in Llama.
    #[serde(rename = "swiglu")]
    SwiGlu,
}

impl FeedForwardKind {
    /// Whether a third matrix gates the middle layer.
    #[must_use]
    pub fn is_gated(self) -> bool {
        matches!(
            self,
            Self::ReGlu | Self::GeGlu | Self::GeGluTanh | Self::SwiGlu
        )
    }
}

/// `model.qk_norm`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QkNormKind {
    /// They stay as they are.
    #[default]
    None,
    /// An RMS norm over the components of each head, as in Qwen 3.
    EachHead,
    /// An RMS norm over the components of all heads together, as in `OLMo` 2.
    AllHeads,
}

/// `model.block_order`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// The stream to which attention has added.
    #[default]
    Sequential,
    /// The stream before the block, as attention does, as in GPT-NeoX.
    Parallel,
}

/// `model.rotary_scaling`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RotaryScaling {
    /// Every angle is divided by `factor`.
    Linear {
        /// How much longer the context becomes.
        factor: f64,
    },
    /// The base grows with the length of a sequence that is longer than the original context.
    Dynamic {
        /// How much longer the context becomes.
        factor: f64,
        /// The length of the original context.
        original_n_ctx: usize,
    },
    /// Llama 3.1's: slow pairs are slowed down further, fast pairs are not.
    Llama3 {
        /// How much longer the context becomes.
        factor: f64,
        /// Pairs with fewer turns in the original context are slowed down fully.
        low_frequency_factor: f64,
        /// Pairs with more turns in the original context stay as they are.
        high_frequency_factor: f64,
        /// The length of the original context.
        original_n_ctx: usize,
    },
    /// `YaRN`: slow pairs are slowed down further, fast pairs are not.
    Yarn {
        /// How much longer the context becomes.
        factor: f64,
        /// The length of the original context.
        original_n_ctx: usize,
        /// Pairs with more turns in the original context stay as they are.
        #[serde(default = "default_fast_turns")]
        fast_turns: f64,
        /// Pairs with fewer turns in the original context are slowed down fully.
        #[serde(default = "default_slow_turns")]
        slow_turns: f64,
        /// Whether the pairs with these turns are rounded outwards to whole numbers.
        #[serde(default = "default_whole_pairs")]
        whole_pairs: bool,
        /// The factor on rotated components; left out: `0.1·ln(factor) + 1`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attention_factor: Option<f64>,
    },
    /// `LongRoPE`, as in Phi-3: each pair has a factor of its own.
    #[serde(rename = "longrope")]
    LongRope {
        /// One for each pair, in sequences up to the original context.
        short_factors: Vec<f64>,
        /// One for each pair, in longer sequences.
        long_factors: Vec<f64>,
        /// The length of the original context.
        original_n_ctx: usize,
        /// The factor on rotated components.
        attention_factor: f64,
    },
}

fn default_fast_turns() -> f64 {
    32.0
}

fn default_slow_turns() -> f64 {
    1.0
}

fn default_whole_pairs() -> bool {
    true
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
    /// Each part reads the stream as it is, and adds through a norm, as in `OLMo` 2.
    Output,
    /// Each part reads through a norm and adds through another, as in Gemma 2.
    PreAndOutput,
}

impl NormPlacement {
    /// Its name in a configuration.
    fn name(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
            Self::Output => "output",
            Self::PreAndOutput => "pre_and_output",
        }
    }
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
    /// Not drawn: the weights are those of the model of `from`.
    From,
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
            kind if kind.is_gated() => (8 * self.d_model).div_ceil(3).next_multiple_of(8),
            _ => 4 * self.d_model,
        })
    }

    /// Whether the feed-forward has biases, in force.
    #[must_use]
    pub fn feed_forward_bias(&self) -> bool {
        self.feed_forward_bias
            .unwrap_or(!self.feed_forward.is_gated())
    }

    /// Whether `W_O` has a bias, in force.
    #[must_use]
    pub fn attention_output_bias(&self) -> bool {
        self.attention_output_bias.unwrap_or(self.attention_bias)
    }

    /// The window of a layer; `None`: a token sees all tokens before it.
    #[must_use]
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| !self.full_layers.contains(&layer))
    }

    /// The window, if all layers have it.
    #[must_use]
    pub fn window_of_all_layers(&self) -> Option<usize> {
        self.window.filter(|_| self.full_layers.is_empty())
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
        self.check_full_layers()?;
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
        let parallel = self.block_order == BlockOrder::Parallel;
        let key = "model.block_order";
        require(
            has_feed_forward || !parallel,
            key,
            "parallel",
            no_feed_forward,
        )?;
        require(
            self.norm_placement != NormPlacement::Post || !parallel,
            key,
            "parallel",
            "model.norm_placement = \"post\" norms the stream between the parts",
        )?;
        self.check_rotation()?;
        self.check_from()?;
        require(
            self.norm != NormKind::None || self.norm_placement == NormPlacement::Pre,
            "model.norm_placement",
            self.norm_placement.name(),
            "there is no norm to place; set model.norm",
        )?;
        require(
            self.coldness.is_none() || self.initialization == InitializationKind::Compiled,
            "model.coldness",
            self.coldness.unwrap_or_default(),
            "only compiled weights have one; set model.initialization = \"compiled\"",
        )?;
        require_positive("model.coldness", self.coldness())?;
        for (key, number) in [
            ("model.norm_epsilon", Some(self.norm_epsilon)),
            ("model.init_std", Some(self.init_std)),
            ("model.attention_scale", self.attention_scale),
            ("model.attention_softcap", self.attention_softcap),
            ("model.logit_softcap", self.logit_softcap),
            ("model.embedding_scale", self.embedding_scale),
        ] {
            require_positive(key, number.unwrap_or(1.0))?;
        }
        Ok(())
    }

    /// That weights are taken from a model exactly if one is named.
    fn check_from(&self) -> Result<(), Error> {
        let takes_weights = self.initialization == InitializationKind::From;
        if let Some(path) = &self.from {
            require(
                takes_weights,
                "model.from",
                path.display(),
                "the weights are drawn; set model.initialization = \"from\"",
            )?;
        }
        let no_model = "there is no model to take weights from; set model.from";
        let has_model = self.from.is_some();
        require(
            has_model || !takes_weights,
            "model.initialization",
            "from",
            no_model,
        )?;
        require(
            has_model || self.from_sha256.is_none(),
            "model.from_sha256",
            self.from_sha256.as_deref().unwrap_or_default(),
            no_model,
        )
    }

    /// That layers without the window are layers of the model, in order.
    fn check_full_layers(&self) -> Result<(), Error> {
        let key = "model.full_layers";
        let Some(&last) = self.full_layers.last() else {
            return Ok(());
        };
        let listed = format!("{:?}", self.full_layers);
        require(
            self.window.is_some(),
            key,
            &listed,
            "no layer has a window; set model.window",
        )?;
        require(
            self.full_layers.is_sorted_by(|a, b| a < b),
            key,
            &listed,
            "must be in rising order",
        )?;
        require(
            last < self.n_layers,
            key,
            &listed,
            format_args!("the last layer is {}", self.n_layers - 1),
        )
    }

    /// That what is said of a rotation fits, and is said only where something rotates.
    fn check_rotation(&self) -> Result<(), Error> {
        let rotary = self.positions == PositionKind::Rotary;
        let nothing_rotates = "nothing rotates; set model.positions = \"rotary\"";
        for (key, base) in [
            ("model.rotary_base", self.rotary_base),
            ("model.rotary_base_in_window", self.rotary_base_in_window),
        ] {
            let given = base.unwrap_or_default();
            require(base.is_none() || rotary, key, given, nothing_rotates)?;
            require_positive(key, base.unwrap_or(1.0))?;
        }
        require(
            self.rotary_base_in_window.is_none() || self.window.is_some(),
            "model.rotary_base_in_window",
            self.rotary_base_in_window.unwrap_or_default(),
            "no layer has a window; set model.window",
        )?;
        match self.rotary_components {
            Some(components) => {
                let key = "model.rotary_components";
                require(rotary, key, components, nothing_rotates)?;
                require(
                    components >= 2 && components.is_multiple_of(2),
                    key,
                    components,
                    "must be an even number from 2",
                )?;
                require(
                    components <= self.d_head(),
                    key,
                    components,
                    format_args!("is more than the width of a head, {}", self.d_head()),
                )?;
            }
            None => require(
                !rotary || self.d_head().is_multiple_of(2),
                "model.positions",
                "rotary",
                format_args!("takes heads of even width, not {}", self.d_head()),
            )?,
        }
        match &self.rotary_scaling {
            None => Ok(()),
            Some(scaling) => {
                require(
                    rotary,
                    "model.rotary_scaling",
                    scaling.name(),
                    nothing_rotates,
                )?;
                let rotated = self.rotary_components.unwrap_or(self.d_head());
                scaling.check(self.rotary_base, rotated)
            }
        }
    }
}

impl RotaryScaling {
    /// Its name in a configuration.
    fn name(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Dynamic { .. } => "dynamic",
            Self::Llama3 { .. } => "llama3",
            Self::Yarn { .. } => "yarn",
            Self::LongRope { .. } => "longrope",
        }
    }

    fn check(&self, base: Option<f64>, rotated: usize) -> Result<(), Error> {
        match self {
            &Self::Linear { factor } => {
                require_positive("model.rotary_scaling.linear.factor", factor)
            }
            &Self::Dynamic {
                factor,
                original_n_ctx,
            } => {
                require_positive("model.rotary_scaling.dynamic.factor", factor)?;
                require(
                    rotated >= 4,
                    "model.rotary_scaling",
                    self.name(),
                    format_args!("takes at least 4 rotary components, not {rotated}"),
                )?;
                let key = "model.rotary_scaling.dynamic.original_n_ctx";
                require_original(key, original_n_ctx)
            }
            &Self::Llama3 {
                factor,
                low_frequency_factor,
                high_frequency_factor,
                original_n_ctx,
            } => {
                require_positive("model.rotary_scaling.llama3.factor", factor)?;
                let low = "model.rotary_scaling.llama3.low_frequency_factor";
                require_positive(low, low_frequency_factor)?;
                let high = "model.rotary_scaling.llama3.high_frequency_factor";
                require_positive(high, high_frequency_factor)?;
                require(
                    high_frequency_factor > low_frequency_factor,
                    high,
                    high_frequency_factor,
                    format_args!("must be above low_frequency_factor = {low_frequency_factor}"),
                )?;
                let key = "model.rotary_scaling.llama3.original_n_ctx";
                require_original(key, original_n_ctx)
            }
            &Self::Yarn {
                factor,
                original_n_ctx,
                fast_turns,
                slow_turns,
                attention_factor,
                ..
            } => {
                require_positive("model.rotary_scaling.yarn.factor", factor)?;
                require_positive("model.rotary_scaling.yarn.slow_turns", slow_turns)?;
                let fast = "model.rotary_scaling.yarn.fast_turns";
                require_positive(fast, fast_turns)?;
                require(
                    fast_turns > slow_turns,
                    fast,
                    fast_turns,
                    format_args!("must be above slow_turns = {slow_turns}"),
                )?;
                let key = "model.rotary_scaling.yarn.attention_factor";
                require_positive(key, attention_factor.unwrap_or(1.0))?;
                let base = base.unwrap_or(f64::INFINITY);
                require(
                    base > 1.0,
                    "model.rotary_base",
                    base,
                    "must be above 1 with model.rotary_scaling = \"yarn\"",
                )?;
                require_original("model.rotary_scaling.yarn.original_n_ctx", original_n_ctx)
            }
            Self::LongRope {
                short_factors,
                long_factors,
                original_n_ctx,
                attention_factor,
            } => {
                for (key, factors) in [
                    ("model.rotary_scaling.longrope.short_factors", short_factors),
                    ("model.rotary_scaling.longrope.long_factors", long_factors),
                ] {
                    require(
                        factors.len() == rotated / 2,
                        key,
                        format_args!("{factors:?}"),
                        format_args!("must have a factor for each of {} pairs", rotated / 2),
                    )?;
                    for &factor in factors {
                        require_positive(key, factor)?;
                    }
                }
                let key = "model.rotary_scaling.longrope.attention_factor";
                require_positive(key, *attention_factor)?;
                let key = "model.rotary_scaling.longrope.original_n_ctx";
                require_original(key, *original_n_ctx)
            }
        }
    }
}

fn require_original(key: &str, original_n_ctx: usize) -> Result<(), Error> {
    require(
        original_n_ctx >= 1,
        key,
        original_n_ctx,
        "must be at least 1",
    )
}
