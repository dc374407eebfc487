//! `inspect RUN generate`: what the model writes.

use headlight_residual::Generation;
use headlight_run::{ErrorKind, InputError};
use headlight_tasks as tasks;
use headlight_tasks::Use;
use serde::Serialize;

use super::{Inspection, ModelParts};

/// The most tokens that are written at once: bounds the memory of what was seen.
const MOST_NEW_TOKENS: usize = 65_536;

/// What a model wrote, as `inspect generate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// What it wrote on from.
    pub prompt: Vec<String>,
    /// What it wrote.
    pub tokens: Vec<String>,
    /// Why it ended.
    pub ending: String,
}

impl Inspection {
    /// Writes on after `prompt` (token names between spaces; for a text, text) or, without one,
    /// after the first half of a sequence of the run's task. Prompt and tokens are spelled out to
    /// `show` as they come.
    ///
    /// # Errors
    /// If a token of the prompt or of `stop` does not exist, the prompt is too long, or the
    /// sampling makes no sense.
    pub fn generate(
        &self,
        prompt: Option<&str>,
        stop: &[String],
        generation: Generation,
        mut show: impl FnMut(&str),
    ) -> Result<Written, InputError> {
        if generation.tokens > MOST_NEW_TOKENS {
            return Err(InputError::new(
                "--tokens",
                format_args!("must be at most {MOST_NEW_TOKENS}"),
            )
            .value(generation.tokens));
        }
        let ModelParts { model, vocabulary } = self.model()?;
        let task = &self.config.task;
        let prompt = if let Some(prompt) = prompt {
            let most = model.most_positions().unwrap_or(usize::MAX);
            tasks::encode_prompt(task, prompt, &vocabulary, most)?
        } else {
            let task = tasks::build(task, self.config.model.n_ctx, self.config.seed)?;
            let sequence =
                tasks::batch(&*task, self.config.seed, Use::Validation, 0, 1).swap_remove(0);
            sequence.tokens[..sequence.scored.len().div_ceil(2)].to_vec()
        };
        let stop = stop
            .iter()
            .map(|name| tasks::token_id("--stop", name, &vocabulary))
            .collect::<Result<_, _>>()?;
        let wrong = |error| InputError::because(ErrorKind::Argument, "generate", error);
        let mut text = model
            .generate(&prompt, Generation { stop, ..generation })
            .map_err(wrong)?;
        let name = |token: u32| vocabulary[token as usize].clone();
        let prompt: Vec<String> = prompt.into_iter().map(name).collect();
        for token in &prompt {
            show(&tasks::spelled(task, token));
        }
        let mut tokens = Vec::new();
        for token in text.by_ref() {
            let token = name(token.map_err(wrong)?);
            show(&tasks::spelled(task, &token));
            tokens.push(token);
        }
        Ok(Written {
            prompt,
            tokens,
            ending: text
                .ending()
                .map(|ending| ending.to_string())
                .unwrap_or_default(),
        })
    }
}
