//! What a run is told to do: one TOML file of a few tables.

mod difference;
mod from_model;
mod interchange;
mod log;
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

pub use from_model::ReadModel;
pub use interchange::InterchangeConfig;
pub use log::{LogConfig, WatchedHeads};
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
        log.check(model)?;
        for (key, value) in [
            ("checkpoint.every", checkpoint.every),
            ("checkpoint.keep", checkpoint.keep.unwrap_or(1)),
        ] {
            require(value >= 1, key, value, "must be at least 1")?;
        }
        task.check(model)?;
        if let Some(interchange) = interchange {
            interchange.check(task, model, train)?;
        }
        task.check_from(model)?;
        let has_program = matches!(task, TaskConfig::Program(_));
        require(
            has_program || !is_compiled,
            "model.initialization",
            "compiled",
            "there is no program to compile; set task.name = \"program\"",
        )
    }
}
