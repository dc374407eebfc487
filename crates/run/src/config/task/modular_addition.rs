//! `[task]` of `modular_addition`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "modular_addition"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModularAdditionConfig {
    /// p: sums are taken modulo this number.
    pub modulus: usize,
    /// The share of the p² pairs that is trained on; the rest is the validation set.
    pub train_share: f64,
}

impl Default for ModularAdditionConfig {
    fn default() -> Self {
        Self {
            modulus: 113,
            train_share: 0.3,
        }
    }
}

impl ModularAdditionConfig {
    /// The number of pairs that are trained on, rounded down.
    #[must_use]
    pub fn training_pairs(&self) -> usize {
        (self.train_share * (self.modulus * self.modulus) as f64) as usize
    }
}

impl TaskKeys for ModularAdditionConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        // All p² pairs are held in memory.
        require(
            (2..=1024).contains(&self.modulus),
            "task.modulus",
            self.modulus,
            "must be between 2 and 1024",
        )?;
        require(
            (1..self.modulus * self.modulus).contains(&self.training_pairs()),
            "task.train_share",
            self.train_share,
            format_args!(
                "must leave some of the {0}² pairs on both sides",
                self.modulus
            ),
        )?;
        require(
            model.n_ctx == 3,
            "model.n_ctx",
            model.n_ctx,
            "must be 3 for modular_addition: a b =",
        )
    }
}
