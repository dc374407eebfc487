//! The task of a configuration.

use headlight_run::{Config, Error, TaskConfig, TextTokens};
use headlight_tasks::{Task, Tasks, Text};

use crate::ModelFiles;

/// The task of a configuration, one of `tasks`. A text that a model of another tool learns from is
/// cut by the tokenizer of that model.
///
/// # Errors
/// If a file that it reads is not what it must be.
pub fn build(config: &Config, tasks: &Tasks) -> Result<Box<dyn Task>, Error> {
    let n_ctx = config.model.n_ctx;
    match (&config.task, &config.model.from) {
        (TaskConfig::Text(text), Some(path)) if text.tokens == TextTokens::Model => {
            let tokenizer = ModelFiles::open(path)?.text_tokenizer()?;
            Ok(Box::new(Text::open_for_model(text, n_ctx, tokenizer)?))
        }
        _ => tasks.build(&config.task, n_ctx, config.seed),
    }
}
