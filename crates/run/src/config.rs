//! What a run is told to do: one TOML file of a few tables.

use serde::{Deserialize, Serialize};

use crate::{
    InputError, ModelConfig, TaskConfig,
    check::{require, require_positive},
};

/// Rows of a batch: below what would exhaust memory before the first step.
const MOST_ROWS: usize = 65_536;

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
    #[serde(default = "one")]
    pub shards: usize,
    /// Parts of each shard that are worked on one after the other: memory for less of the batch at a time, the same
    /// mean gradient.
    #[serde(default = "one")]
    pub accumulate: usize,
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

fn one() -> usize {
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
    /// How many of them are kept, the newest; left out: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every: 250, keep: None }
    }
}

impl Config {
    /// Checks every number against what makes sense and against the others.
    ///
    /// # Errors
    /// Names the first key that does not.
    pub fn validate(&self) -> Result<(), InputError> {
        let Self { task, model, train, log, checkpoint, .. } = self;
        model.check()?;
        for (key, value) in [
            ("train.steps", train.steps),
            ("train.batch_size", train.batch_size),
            ("train.shards", train.shards),
            ("train.accumulate", train.accumulate),
            ("log.every", log.every),
            ("log.patterns_every", log.patterns_every),
            ("checkpoint.every", checkpoint.every),
            ("checkpoint.keep", checkpoint.keep.unwrap_or(1)),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        require(
            train.batch_size <= MOST_ROWS,
            "train.batch_size",
            train.batch_size,
            format_args!("must be at most {MOST_ROWS}"),
        )?;
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
        require(
            (train.batch_size / train.shards).is_multiple_of(train.accumulate),
            "train.accumulate",
            train.accumulate,
            format_args!("must divide the {} sequences of a shard", train.batch_size / train.shards),
        )?;
        task.check(model)
    }
}
