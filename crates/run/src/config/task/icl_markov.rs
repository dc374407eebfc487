//! `[task]` of `icl_markov`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{
    Error, ModelConfig,
    config::requirements::{require, require_positive},
};

/// `task.name = "icl_markov"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IclMarkovConfig {
    /// The number of states, one token each.
    pub states: usize,
    /// The Dirichlet concentration of the rows of each sequence's own transition matrix; 1 is
    /// uniform.
    pub concentration: f64,
}

impl Default for IclMarkovConfig {
    fn default() -> Self {
        Self {
            states: 3,
            concentration: 1.0,
        }
    }
}

impl TaskKeys for IclMarkovConfig {
    fn check(&self, _: &ModelConfig) -> Result<(), Error> {
        // Each sequence draws a matrix of states² numbers and solves for its stationary
        // distribution.
        require(
            (2..=64).contains(&self.states),
            "task.states",
            self.states,
            "must be between 2 and 64",
        )?;
        require_positive("task.concentration", self.concentration)
    }
}
