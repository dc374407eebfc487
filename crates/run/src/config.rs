//! What a run is told to do: one TOML file of a few tables.

use serde::{Deserialize, Serialize};

use crate::InputError;

/// A whole configuration, as written to `config.toml` of a run with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Everything random follows from this number.
    #[serde(default)]
    pub seed: u64,
    /// What is learned.
    pub task: TaskConfig,
    /// The model.
    pub model: ModelConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// What is written while training.
    #[serde(default)]
    pub log: LogConfig,
    /// When weights are kept.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
}

/// `[task]`: the key `name` and the task's own keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum TaskConfig {
    /// A block of random tokens, repeated.
    Repeat(RepeatConfig),
    /// A Markov chain that skips a step.
    LaggedMarkov(LaggedMarkovConfig),
}

impl TaskConfig {
    /// Every task's name.
    pub const NAMES: [&'static str; 2] = ["repeat", "lagged_markov"];

    /// The task's name, as in `task.name`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Repeat(_) => Self::NAMES[0],
            Self::LaggedMarkov(_) => Self::NAMES[1],
        }
    }
}

/// `task.name = "repeat"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatConfig {
    /// The number of different tokens.
    pub vocabulary: usize,
    /// Shortest and longest run of random tokens before the block.
    pub prefix: [usize; 2],
    /// Shortest and longest block.
    pub block: [usize; 2],
}

impl Default for RepeatConfig {
    fn default() -> Self {
        Self { vocabulary: 64, prefix: [0, 8], block: [8, 24] }
    }
}

/// `task.name = "lagged_markov"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaggedMarkovConfig {
    /// The number of states, one token each.
    pub states: usize,
    /// The Dirichlet concentration of the rows of the transition matrix; small is sharp.
    pub concentration: f64,
}

impl Default for LaggedMarkovConfig {
    fn default() -> Self {
        Self { states: 16, concentration: 0.2 }
    }
}

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
    /// The factor on `Q·Kᵀ`; left out: `1/√d_head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_scale: Option<f64>,
    /// The standard deviation of the initial weights.
    #[serde(default = "default_init_std")]
    pub init_std: f64,
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

/// `[train]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The number of updates.
    pub steps: usize,
    /// Sequences per update.
    pub batch_size: usize,
    /// The learning rate after warm-up.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises from 0.
    #[serde(default)]
    pub warmup: usize,
    /// What the learning rate does after warm-up.
    #[serde(default)]
    pub schedule: ScheduleKind,
    /// Decay of `AdamW`'s two averages.
    #[serde(default = "default_betas")]
    pub betas: [f64; 2],
    /// `AdamW`'s guard against division by zero.
    #[serde(default = "default_epsilon")]
    pub epsilon: f64,
    /// `AdamW`'s decoupled weight decay.
    #[serde(default)]
    pub weight_decay: f64,
    /// The largest norm of the whole gradient.
    #[serde(default = "default_clip")]
    pub clip: f64,
    /// Parts of a batch that are worked on at the same time. It is written to `config.toml`: the result depends
    /// on it (in the last bits), never on timing.
    #[serde(default = "default_shards")]
    pub shards: usize,
}

fn default_betas() -> [f64; 2] {
    [0.9, 0.98]
}

fn default_epsilon() -> f64 {
    1e-8
}

fn default_clip() -> f64 {
    1.0
}

fn default_shards() -> usize {
    1
}

/// `train.schedule`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Stays where warm-up ended.
    #[default]
    Constant,
    /// Falls to 0 along half a cosine.
    Cosine,
}

/// `[log]`: how often things are measured, in steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Loss and accuracy on the validation batch, and head scores.
    pub every: usize,
    /// Attention patterns.
    pub patterns_every: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { every: 50, patterns_every: 250 }
    }
}

/// `[checkpoint]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Steps between checkpoints.
    pub every: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every: 250 }
    }
}

impl Config {
    /// Checks every number against what makes sense and against the others.
    ///
    /// # Errors
    /// Names the first key that does not.
    pub fn validate(&self) -> Result<(), InputError> {
        let Self { task, model, train, log, checkpoint, .. } = self;
        for (key, value) in [
            ("model.n_layers", model.n_layers),
            ("model.n_heads", model.n_heads),
            ("model.d_model", model.d_model),
            ("model.n_ctx", model.n_ctx),
            ("model.d_head", model.d_head.unwrap_or(1)),
            ("model.d_ff", model.d_ff.unwrap_or(1)),
            ("train.steps", train.steps),
            ("train.batch_size", train.batch_size),
            ("train.shards", train.shards),
            ("log.every", log.every),
            ("log.patterns_every", log.patterns_every),
            ("checkpoint.every", checkpoint.every),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        // Far above any mini-transformer; below what would exhaust memory before the first step.
        for (key, value, most) in [
            ("model.n_layers", model.n_layers, 128),
            ("model.n_heads", model.n_heads, 1024),
            ("model.d_model", model.d_model, 16_384),
            ("model.n_ctx", model.n_ctx, 65_536),
            ("model.d_head", model.d_head.unwrap_or(1), 16_384),
            ("model.d_ff", model.d_ff.unwrap_or(1), 131_072),
            ("train.batch_size", train.batch_size, 65_536),
        ] {
            require(value <= most, key, value, format_args!("must be at most {most}"))?;
        }
        require(
            model.d_head.is_some() || model.d_model.is_multiple_of(model.n_heads),
            "model.d_model",
            model.d_model,
            format_args!("is not divisible by model.n_heads = {}", model.n_heads),
        )?;
        require(
            model.d_ff.is_none() || model.feed_forward != FeedForwardKind::None,
            "model.d_ff",
            model.d_ff.unwrap_or_default(),
            "there is no feed-forward; set model.feed_forward",
        )?;
        require_positive("model.init_std", model.init_std)?;
        require_positive("model.attention_scale", model.attention_scale.unwrap_or(1.0))?;
        require_positive("train.learning_rate", train.learning_rate)?;
        require_positive("train.epsilon", train.epsilon)?;
        require_positive("train.clip", train.clip)?;
        require(
            train.weight_decay >= 0.0 && train.weight_decay.is_finite(),
            "train.weight_decay",
            train.weight_decay,
            "must be 0 or more",
        )?;
        for beta in train.betas {
            require((0.0..1.0).contains(&beta), "train.betas", beta, "must be at least 0 and below 1")?;
        }
        require(
            train.warmup < train.steps,
            "train.warmup",
            train.warmup,
            format_args!("must be below train.steps = {}", train.steps),
        )?;
        require(
            train.batch_size.is_multiple_of(train.shards),
            "train.shards",
            train.shards,
            format_args!("must divide train.batch_size = {}", train.batch_size),
        )?;
        task.validate(model)
    }
}

impl TaskConfig {
    fn validate(&self, model: &ModelConfig) -> Result<(), InputError> {
        match self {
            Self::Repeat(task) => {
                require_vocabulary("task.vocabulary", task.vocabulary)?;
                for (key, [least, most]) in [("task.prefix", task.prefix), ("task.block", task.block)] {
                    require(
                        least <= most,
                        key,
                        format_args!("[{least}, {most}]"),
                        "the first must not exceed the second",
                    )?;
                }
                require(task.block[0] >= 1, "task.block", task.block[0], "must be at least 1")?;
                let longest = task.prefix[1].saturating_add(task.block[1]);
                require(
                    longest < model.n_ctx,
                    "task.block",
                    task.block[1],
                    format_args!(
                        "with a prefix of {} it leaves no repetition within model.n_ctx = {}",
                        task.prefix[1], model.n_ctx
                    ),
                )
            }
            Self::LaggedMarkov(task) => {
                require_vocabulary("task.states", task.states)?;
                require_positive("task.concentration", task.concentration)?;
                require(model.n_ctx >= 2, "model.n_ctx", model.n_ctx, "must be at least 2 for lagged_markov")
            }
        }
    }
}

fn require(
    holds: bool,
    key: &str,
    value: impl std::fmt::Display,
    message: impl std::fmt::Display,
) -> Result<(), InputError> {
    if holds { Ok(()) } else { Err(InputError::new("config", message).key(key).value(value)) }
}

fn require_positive(key: &str, value: f64) -> Result<(), InputError> {
    require(value > 0.0 && value.is_finite(), key, value, "must be above 0 and finite")
}

fn require_vocabulary(key: &str, value: usize) -> Result<(), InputError> {
    require((2..=65_536).contains(&value), key, value, "must be between 2 and 65536")
}
