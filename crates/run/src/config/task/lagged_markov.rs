//! `[task]` of `lagged_markov`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{
    Error, ModelConfig,
    config::requirements::{require, require_positive},
};

/// `task.name = "lagged_markov"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LaggedMarkovConfig {
    /// The number of states, one token each.
    pub states: usize,
    /// The Dirichlet concentration of the rows of the transition matrix; small is sharp.
    pub concentration: f64,
}

impl Default for LaggedMarkovConfig {
    fn default() -> Self {
        Self {
            states: 16,
            concentration: 0.2,
        }
    }
}

impl TaskKeys for LaggedMarkovConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        // The matrix takes states² numbers, and where it settles states³ steps.
        require(
            (2..=1024).contains(&self.states),
            "task.states",
            self.states,
            "must be between 2 and 1024",
        )?;
        require_positive("task.concentration", self.concentration)?;
        require(
            model.n_ctx >= 2,
            "model.n_ctx",
            model.n_ctx,
            "must be at least 2 for lagged_markov",
        )
    }
}
