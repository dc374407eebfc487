//! `[task]` of `dyck`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "dyck"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DyckConfig {
    /// The kinds of brackets: `()`, `[]`, `{}`, `<>`, the first so many of them.
    pub kinds: usize,
    /// The most brackets that are open at once.
    pub depth: usize,
}

impl Default for DyckConfig {
    fn default() -> Self {
        Self { kinds: 2, depth: 6 }
    }
}

impl TaskKeys for DyckConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        require(
            (2..=4).contains(&self.kinds),
            "task.kinds",
            self.kinds,
            "must be between 2 and 4",
        )?;
        require(
            self.depth >= 1,
            "task.depth",
            self.depth,
            "must be at least 1",
        )?;
        require(
            !model.n_ctx.is_multiple_of(2),
            "model.n_ctx",
            model.n_ctx,
            "must be odd for dyck: with the last target, brackets come in pairs",
        )?;
        let pairs = model.n_ctx.div_ceil(2);
        let most = format_args!(
            "is more than the {pairs} pairs of brackets that model.n_ctx = {} holds",
            model.n_ctx
        );
        require(self.depth <= pairs, "task.depth", self.depth, most)
    }
}
