//! `[task]` of `sort` and `reverse`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require, untrusted::MOST_TOKENS};

/// `task.name = "sort"` and `task.name = "reverse"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RearrangeConfig {
    /// The number of different symbols, one token each.
    pub symbols: usize,
    /// The symbols in a sequence.
    pub length: usize,
}

impl Default for RearrangeConfig {
    fn default() -> Self {
        Self {
            symbols: 20,
            length: 10,
        }
    }
}

impl TaskKeys for RearrangeConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        // One token more stands between the symbols and the answer.
        require(
            (2..MOST_TOKENS).contains(&self.symbols),
            "task.symbols",
            self.symbols,
            format_args!("must be between 2 and {}", MOST_TOKENS - 1),
        )?;
        // With fewer there may be no sequence to hold out.
        let sequences = (self.symbols as f64).powf(self.length as f64);
        require(
            sequences >= 1000.0,
            "task.length",
            self.length,
            format_args!(
                "of {} symbols there are {sequences} such sequences, fewer than 1000",
                self.symbols
            ),
        )?;
        require(
            model.n_ctx.is_multiple_of(2) && self.length == model.n_ctx / 2,
            "task.length",
            self.length,
            format_args!(
                "takes model.n_ctx = {}, it is {}",
                self.length.saturating_mul(2),
                model.n_ctx
            ),
        )
    }
}
