//! `[train]`: how a model is trained.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error, StopWhen,
    config::requirements::{require, require_positive},
};

/// Rows of a batch: below what would exhaust memory before the first step. A configuration may be
/// anything: [`untrusted`](crate::untrusted).
const MOST_ROWS: usize = 65_536;

/// `[train]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The number of updates; may be left out where `tokens` is given. 0 only where the
    /// initial weights are compiled: they are measured.
    pub steps: usize,
    /// Training ends with the update that has seen so many tokens, or after `steps`, whichever
    /// comes first; left out: after `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
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
    /// The steps over which `warmup_stable_decay` falls to 0, the last ones; left out: a fifth of
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<usize>,
    /// How parameters move along their gradients.
    #[serde(default)]
    pub optimizer: OptimizerKind,
    /// The share of the last step that Muon and SGD take again; left out: 0.95 for `muon`, 0.9 for
    /// `sgd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Decay of `AdamW`'s two averages.
    #[serde(default = "default_betas")]
    pub betas: [f64; 2],
    /// `AdamW`'s guard against division by zero.
    #[serde(default = "default_epsilon")]
    pub epsilon: f64,
    /// The share `learning_rate · weight_decay` of itself that a parameter loses at each step.
    #[serde(default)]
    pub weight_decay: f64,
    /// Which parameters decay.
    #[serde(default)]
    pub weight_decay_on: DecayGroup,
    /// The share of what attention and feed-forward add to the stream that falls while training,
    /// the rest being scaled up (Vaswani et al. 2017, section 5.4): `resid_pdrop` of GPT (Radford
    /// et al. 2018, section 4.1).
    #[serde(default)]
    pub dropout: f64,
    /// The share of attention weights that fall while training, after softmax, the rest being
    /// scaled up: `attn_pdrop` of GPT.
    #[serde(default)]
    pub attention_dropout: f64,
    /// The largest norm of the whole gradient.
    #[serde(default = "default_clip")]
    pub clip: f64,
    /// Parts of a batch that are worked on at the same time. It is written to `config.toml`: the
    /// result depends on it (in the last bits), never on timing.
    #[serde(default = "one")]
    pub shards: usize,
    /// Parts of each shard that are worked on one after the other: memory for less of the batch at
    /// a time, the same mean gradient.
    #[serde(default = "one")]
    pub accumulate: usize,
    /// Training ends after so many measurements (`log.every`) without a lower validation loss; left
    /// out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Training ends when a measurement is so good, `"accuracy >= 0.98"`: `accuracy` or `exact`
    /// with `>=`, or `validation` (nats) with `<=`; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_when: Option<StopWhen>,
    /// Whether every step sees the batch of step 1: a model that cannot learn that by heart has a
    /// fault.
    #[serde(default)]
    pub overfit_one_batch: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Stays where warm-up ended.
    #[default]
    Constant,
    /// Falls to 0 along half a cosine.
    Cosine,
    /// Falls to 0 along a line.
    Linear,
    /// Stays, then falls to 0 along a line over `cooldown` steps (Hu et al. 2024, section 4).
    WarmupStableDecay,
}

/// `train.optimizer`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerKind {
    /// Loshchilov & Hutter 2019.
    #[default]
    #[serde(rename = "adamw")]
    AdamW,
    /// For the matrices of the blocks Muon (Jordan et al. 2024), its steps scaled to the size of
    /// `AdamW`'s (Liu et al. 2025, section 2.2); for embeddings and vectors `AdamW`.
    Muon,
    /// Stochastic gradient descent with momentum; its weight decay is part of the gradient.
    Sgd,
}

/// `train.weight_decay_on`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecayGroup {
    /// Matrices, embeddings among them; gains and biases never.
    #[default]
    Matrices,
    /// Everything.
    All,
}

impl TrainConfig {
    /// The steps of the last fall of `warmup_stable_decay`, in force.
    #[must_use]
    pub fn cooldown(&self) -> usize {
        self.cooldown.unwrap_or((self.steps / 5).max(1))
    }

    /// The momentum of Muon and SGD in force.
    #[must_use]
    pub fn momentum(&self) -> f64 {
        self.momentum
            .unwrap_or(if self.optimizer == OptimizerKind::Muon {
                0.95
            } else {
                0.9
            })
    }

    /// Checks every number against what makes sense and against the others.
    pub(crate) fn check(&self, least_steps: usize) -> Result<(), Error> {
        for (key, value) in [
            ("train.tokens", self.tokens.unwrap_or(1)),
            ("train.batch_size", self.batch_size),
            ("train.shards", self.shards),
            ("train.accumulate", self.accumulate),
            ("train.cooldown", self.cooldown.unwrap_or(1)),
            ("train.patience", self.patience.unwrap_or(1)),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        let is_enough = self.steps >= least_steps;
        require(is_enough, "train.steps", self.steps, "must be at least 1")?;
        let most = format_args!("must be at most {MOST_ROWS}");
        require(
            self.batch_size <= MOST_ROWS,
            "train.batch_size",
            self.batch_size,
            most,
        )?;
        for (key, value) in [
            ("train.learning_rate", self.learning_rate),
            ("train.epsilon", self.epsilon),
            ("train.clip", self.clip),
        ] {
            require_positive(key, value)?;
        }
        require(
            self.weight_decay >= 0.0,
            "train.weight_decay",
            self.weight_decay,
            "must be 0 or more",
        )?;
        let all = format_args!(
            "with train.learning_rate = {} nothing is left of a parameter",
            self.learning_rate
        );
        let decay = self.learning_rate * self.weight_decay;
        require(decay < 1.0, "train.weight_decay", self.weight_decay, all)?;
        let is_share = |value: f64| (0.0..1.0).contains(&value);
        for (key, value) in [
            ("train.momentum", self.momentum()),
            ("train.dropout", self.dropout),
            ("train.attention_dropout", self.attention_dropout),
        ] {
            require(
                is_share(value),
                key,
                value,
                "must be at least 0 and below 1",
            )?;
        }
        let [beta_1, beta_2] = self.betas;
        let betas = format_args!("[{beta_1}, {beta_2}]");
        let are_shares = is_share(beta_1) && is_share(beta_2);
        require(
            are_shares,
            "train.betas",
            betas,
            "both must be at least 0 and below 1",
        )?;
        self.check_optimizer()?;
        self.check_schedule()?;
        self.check_parts()
    }

    fn check_optimizer(&self) -> Result<(), Error> {
        let has_momentum = self.optimizer != OptimizerKind::AdamW;
        let momentum = self.momentum.unwrap_or_default();
        let message = "adamw has train.betas; set train.optimizer to muon or sgd";
        require(
            has_momentum || self.momentum.is_none(),
            "train.momentum",
            momentum,
            message,
        )
    }

    fn check_schedule(&self) -> Result<(), Error> {
        let below = format_args!("must be below train.steps = {}", self.steps);
        let fits = self.warmup < self.steps || (self.warmup, self.steps) == (0, 0);
        require(fits, "train.warmup", self.warmup, below)?;
        let cools = self.schedule == ScheduleKind::WarmupStableDecay;
        let cooldown = self.cooldown();
        let message = "only warmup_stable_decay cools down; set train.schedule";
        require(
            cools || self.cooldown.is_none(),
            "train.cooldown",
            cooldown,
            message,
        )?;
        let both = format_args!(
            "does not fit after train.warmup = {} into train.steps = {}",
            self.warmup, self.steps
        );
        require(
            !cools || cooldown <= self.steps - self.warmup,
            "train.cooldown",
            cooldown,
            both,
        )
    }

    /// A batch falls into equal shards, a shard into equal parts.
    fn check_parts(&self) -> Result<(), Error> {
        let divides = format_args!("must divide train.batch_size = {}", self.batch_size);
        require(
            self.batch_size.is_multiple_of(self.shards),
            "train.shards",
            self.shards,
            divides,
        )?;
        let rows = self.batch_size / self.shards;
        let divides = format_args!("must divide the {rows} sequences of a shard");
        require(
            rows.is_multiple_of(self.accumulate),
            "train.accumulate",
            self.accumulate,
            divides,
        )
    }
}
