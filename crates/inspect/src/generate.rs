//! `inspect RUN generate`: what the model writes.

use headlight_residual::Generation;
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_tasks::{Stop, TextStream};
use serde::Serialize;

use super::{ModelParts, Subject};

/// The most tokens that are written at once, in all texts together: bounds the memory of what was
/// seen.
const MOST_TOKENS: usize = 65_536;

/// What a model wrote, as `inspect generate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// The prompt and what the model wrote, as text.
    pub text: String,
    /// The names of the prompt's tokens.
    pub prompt: Vec<String>,
    /// The names of the tokens that the model wrote.
    pub tokens: Vec<String>,
    /// Why it ended.
    pub ending: String,
}

impl Subject {
    /// Writes on after each of `prompts` (token names between spaces; for a text, text) or, without
    /// one, after the first half of a validation sequence of the run. Prompts may differ in length,
    /// and each gets what it gets alone. A text ends when one of `stop` came, which is text as a
    /// prompt is. The first text is spelled out to `show` as it comes, its prompt first.
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
        let ModelParts {
            model,
            vocabulary: names,
        } = self.model()?;
        let vocabulary = self.vocabulary()?;
        let most = model.most_positions().unwrap_or(usize::MAX);
        let prompts = if prompts.is_empty() {
            vec![self.half_a_sequence()?]
        } else {
            prompts
                .iter()
                .map(|prompt| tasks::encode_prompt(&vocabulary, prompt, most))
                .collect::<Result<_, _>>()?
        };
        let stops = stop
            .iter()
            .map(|text| tasks::parse_stop(&vocabulary, text))
            .collect::<Result<Vec<Stop>, _>>()?;
        let wrong = |error| Error::new("generate", error);
        let mut texts = model.generate_each(&prompts, generation).map_err(wrong)?;
        let mut shown = TextStream::new(&vocabulary);
        for &token in &prompts[0] {
            show(&shown.push(token));
        }
        while let Some(step) = texts.next() {
            for next in step {
                let token = next.token.map_err(wrong)?;
                if next.text == 0 {
                    show(&shown.push(token));
                }
                let written = &texts.text(next.text)[prompts[next.text].len()..];
                if stops
                    .iter()
                    .any(|stop| vocabulary.has_come_to(stop, written))
                {
                    texts.stop(next.text);
                }
            }
        }
        show(&shown.rest());
        let name = |&token: &u32| names[token as usize].clone();
        let mut written = Vec::with_capacity(prompts.len());
        for (at, prompt) in prompts.iter().enumerate() {
            let ending = texts.ending(at).map(|ending| ending.to_string());
            written.push(Written {
                text: vocabulary.decode(texts.text(at)),
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
}

impl Written {
    /// For the terminal: the text, and why it ended.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}\n\n{}", self.text, self.ending)
    }
}
