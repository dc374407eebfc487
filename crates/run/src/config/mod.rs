//! What a run is told to do: one TOML file of a few tables.

mod difference;
mod interchange;
mod model;
mod parse;
mod preset;
mod reference;
mod requirements;
mod schema;
mod stop_when;
pub mod task;
mod token_budget;
mod train;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use interchange::InterchangeConfig;
pub use model::{
    BlockOrder, FeedForwardKind, InitializationKind, ModelConfig, NormKind, NormPlacement,
    PositionKind, QkNormKind, RotaryScaling,
};
pub use reference::reference;
pub use schema::schema;
pub use stop_when::{NoTarget, Quantity, StopWhen};
pub use task::TaskConfig;
pub use train::{DecayGroup, OptimizerKind, ScheduleKind, TrainConfig};

use crate::Error;
use requirements::require;

/// A whole configuration, as written to `config.toml` of a run with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Which part of the model is to compute which variable of the task's program; left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interchange: Option<InterchangeConfig>,
    /// What is written while training.
    #[serde(default)]
    pub log: LogConfig,
    /// When weights are kept.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
}

/// `[log]`: how often things are measured, in steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Loss and accuracy on the validation batch, and head scores.
    pub every: usize,
    /// Attention patterns.
    pub patterns_every: usize,
    /// The megabytes that patterns may take besides, of measurements that matter: eight a decade of
    /// steps, and each at which a head took on a role or lost one; 0: none. Patterns that would
    /// pass the limit are not kept.
    pub moments_megabytes: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            every: 50,
            patterns_every: 250,
            moments_megabytes: 16,
        }
    }
}

/// `[checkpoint]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        Self {
            every: 250,
            keep: None,
        }
    }
}

impl Config {
    /// Checks every number against what makes sense and against the others.
    ///
    /// # Errors
    /// Names the first key that does not.
    pub fn validate(&self) -> Result<(), Error> {
        let Self {
            task,
            model,
            train,
            interchange,
            log,
            checkpoint,
            ..
        } = self;
        model.check()?;
        let is_compiled = model.initialization == InitializationKind::Compiled;
        train.check(usize::from(!is_compiled))?;
        for (key, value) in [
            ("log.every", log.every),
            ("log.patterns_every", log.patterns_every),
            ("checkpoint.every", checkpoint.every),
            ("checkpoint.keep", checkpoint.keep.unwrap_or(1)),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        task.check(model)?;
        if let Some(interchange) = interchange {
            interchange.check(task, model, train)?;
        }
        let has_program = matches!(task, TaskConfig::Program(_));
        require(
            has_program || !is_compiled,
            "model.initialization",
            "compiled",
            "there is no program to compile; set task.name = \"program\"",
        )
    }
}
