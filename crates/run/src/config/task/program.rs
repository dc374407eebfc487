//! `[task]` of `program`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "program"`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// The program: `identity`, `previous_token`, `induction`, `histogram`, …, or `random_7` for the
    /// random program of seed 7.
    pub program: String,
    /// The tokens of an input.
    pub length: usize,
}

impl TaskKeys for ProgramConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        require(
            (1..=64).contains(&self.length),
            "task.length",
            self.length,
            "must be between 1 and 64",
        )?;
        // The start of the sequence takes a position, and an answer may take as many as the input.
        let takes = [self.length + 1, 2 * self.length + 1];
        require(
            takes.contains(&model.n_ctx),
            "task.length",
            self.length,
            format_args!(
                "takes model.n_ctx = {} or {}, it is {}",
                takes[0], takes[1], model.n_ctx
            ),
        )
    }
}
