//! `[task]` of `grammar`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "grammar"`; it has no keys of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrammarConfig {}

impl TaskKeys for GrammarConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        require(
            model.n_ctx >= 8,
            "model.n_ctx",
            model.n_ctx,
            "must be at least 8 for grammar: a sentence must fit",
        )
    }
}
