//! From a configuration to a task.

use headlight_run::{InputError, TaskConfig};

use crate::{
    Dyck, Grammar, IclMarkov, LaggedMarkov, Lexicon, ModularAddition, Rearrange, Rearrangement,
    Recall, Repeat, Task, Text,
};

/// The task of a configuration.
///
/// # Errors
/// If a file that it reads is not what it must be.
pub fn build(config: &TaskConfig, n_ctx: usize, seed: u64) -> Result<Box<dyn Task>, InputError> {
    Ok(match config {
        TaskConfig::Repeat(config) => Box::new(Repeat::new(config, n_ctx)),
        TaskConfig::LaggedMarkov(config) => Box::new(LaggedMarkov::new(config, n_ctx, seed)),
        TaskConfig::IclMarkov(config) => Box::new(IclMarkov::new(config, n_ctx)),
        TaskConfig::Recall(config) => Box::new(Recall::new(config, n_ctx)),
        TaskConfig::ModularAddition(config) => Box::new(ModularAddition::new(config, seed)),
        TaskConfig::Sort(config) => Box::new(Rearrange::new(config, Rearrangement::Sort)),
        TaskConfig::Reverse(config) => Box::new(Rearrange::new(config, Rearrangement::Reverse)),
        TaskConfig::Dyck(config) => Box::new(Dyck::new(config, n_ctx)),
        TaskConfig::Grammar(_) => Box::new(Grammar::new(Lexicon::english(), n_ctx)),
        TaskConfig::Text(config) => Box::new(Text::open(config, n_ctx)?),
    })
}
