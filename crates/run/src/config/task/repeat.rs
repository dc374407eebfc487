//! `[task]` of `repeat`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{
    Error, ModelConfig,
    config::requirements::{require, require_vocabulary},
};

/// `task.name = "repeat"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatConfig {
    /// The number of different tokens.
    pub vocabulary: usize,
    /// Shortest and longest run of random tokens before the block.
    pub prefix: [usize; 2],
    /// Shortest and longest block.
    pub block: [usize; 2],
}

impl Default for RepeatConfig {
    fn default() -> Self {
        Self {
            vocabulary: 64,
            prefix: [0, 8],
            block: [8, 24],
        }
    }
}

impl TaskKeys for RepeatConfig {
    fn check(&self, model: &ModelConfig) -> Result<(), Error> {
        require_vocabulary("task.vocabulary", self.vocabulary)?;
        for (key, [least, most]) in [("task.prefix", self.prefix), ("task.block", self.block)] {
            require(
                least <= most,
                key,
                format_args!("[{least}, {most}]"),
                "the first must not exceed the second",
            )?;
        }
        let block = format_args!("[{}, {}]", self.block[0], self.block[1]);
        require(
            self.block[0] >= 1,
            "task.block",
            block,
            "a block has at least 1 token",
        )?;
        let longest = self.prefix[1].saturating_add(self.block[1]);
        require(
            longest < model.n_ctx,
            "task.block",
            block,
            format_args!(
                "after a prefix of {} the longest leaves no repetition within model.n_ctx = {}",
                self.prefix[1], model.n_ctx
            ),
        )
    }
}
