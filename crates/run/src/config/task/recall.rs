//! `[task]` of `recall`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{
    Error, ModelConfig,
    config::requirements::{require, require_vocabulary},
};

/// `task.name = "recall"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecallConfig {
    /// The number of different keys, one token each.
    pub keys: usize,
    /// The number of different values, one token each.
    pub values: usize,
    /// The key–value pairs at the start of a sequence; queries fill the rest.
    pub pairs: usize,
}

impl Default for RecallConfig {
    fn default() -> Self {
        Self {
            keys: 32,
            values: 32,
            pairs: 8,
        }
    }
}

impl TaskKeys for RecallConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        require_vocabulary("task.keys", self.keys)?;
        require_vocabulary("task.values", self.values)?;
        require_vocabulary("task.keys + task.values", self.keys + self.values)?;
        require(
            (1..=self.keys).contains(&self.pairs),
            "task.pairs",
            self.pairs,
            format_args!("must be at least 1 and at most task.keys = {}", self.keys),
        )?;
        require(
            2 * self.pairs < model.n_ctx,
            "task.pairs",
            self.pairs,
            format_args!("leaves no query within model.n_ctx = {}", model.n_ctx),
        )
    }
}
