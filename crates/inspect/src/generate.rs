//! `inspect RUN generate`: what the model writes.

use headlight_residual::Generation;
use headlight_run::Error;
use headlight_tasks as tasks;
use serde::Serialize;

use super::{ModelParts, Subject};

/// The most tokens that are written at once, in all texts together: bounds the memory of what was
/// seen.
const MOST_TOKENS: usize = 65_536;

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

impl Subject {
    /// Writes on after each of `prompts` (token names between spaces; for a text, text) or, without
    /// one, after the first half of a validation sequence of the run. Prompts may differ in length, and
    /// each gets what it gets alone. The first text is spelled out to `show` as it comes, its prompt
    /// first.
    ///
    /// # Errors
    /// If a token of a prompt or of `stop` does not exist, a prompt is too long, or the sampling
    /// makes no sense.
    pub fn generate(
        &self,
        prompts: &[String],
        stop: &[String],
        generation: Generation,
        mut show: impl FnMut(&str),
    ) -> Result<Vec<Written>, Error> {
        let most = MOST_TOKENS / prompts.len().max(1);
        if generation.tokens > most {
            let message = match prompts.len() {
                0 | 1 => format!("must be at most {most}"),
                prompts => format!("must be at most {most} for {prompts} prompts"),
            };
            return Err(Error::new("--tokens", message).value(generation.tokens));
        }
        let ModelParts { model, vocabulary } = self.model()?;
        let task = &self.config.task;
        let most = model.most_positions().unwrap_or(usize::MAX);
        let prompts = if prompts.is_empty() {
            vec![self.half_a_sequence()?]
        } else {
            prompts
                .iter()
                .map(|prompt| tasks::encode_prompt(task, prompt, &vocabulary, most))
                .collect::<Result<_, _>>()?
        };
        let stop = stop
            .iter()
            .map(|name| tasks::token_id("--stop", name, &vocabulary))
            .collect::<Result<_, _>>()?;
        let wrong = |error| Error::new("generate", error);
        let mut texts = model
            .generate_each(&prompts, Generation { stop, ..generation })
            .map_err(wrong)?;
        let name = |&token: &u32| vocabulary[token as usize].clone();
        for token in &prompts[0] {
            show(&tasks::spelled(task, &name(token)));
        }
        for step in texts.by_ref() {
            for next in step {
                let token = next.token.map_err(wrong)?;
                if next.text == 0 {
                    show(&tasks::spelled(task, &name(&token)));
                }
            }
        }
        let mut written = Vec::with_capacity(prompts.len());
        for (at, prompt) in prompts.iter().enumerate() {
            let ending = texts.ending(at).map(|ending| ending.to_string());
            written.push(Written {
                prompt: prompt.iter().map(name).collect(),
                tokens: texts.text(at)[prompt.len()..].iter().map(name).collect(),
                ending: ending.unwrap_or_default(),
            });
        }
        Ok(written)
    }

    /// The first half of the first validation sequence.
    fn half_a_sequence(&self) -> Result<Vec<u32>, Error> {
        let sequence = &self.validation()?.sequences[0];
        Ok(sequence.tokens[..sequence.scored.len().div_ceil(2)].to_vec())
    }

    /// A text as it is shown: the prompt, what was written, and why it ended.
    #[must_use]
    pub fn written_text(&self, written: &Written) -> String {
        let tokens = written.prompt.iter().chain(&written.tokens);
        let text: String = tokens
            .map(|token| tasks::spelled(&self.config.task, token))
            .collect();
        format!("{text}\n\n{}", written.ending)
    }
}
