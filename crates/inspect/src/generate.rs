//! `inspect RUN generate`: what the model writes.

use std::io::{IsTerminal, Write};

use headlight_residual::{Generation, Sampling};
use headlight_run::Error;
use headlight_tasks as tasks;
use headlight_tasks::{Stop, TextStream};
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb};

/// What the model writes, token by token
#[derive(Debug, clap::Args)]
pub struct GenerateVerb {
    /// Token names with spaces between them; may be given several times, and each prompt gets its
    /// own text [default: the first half of a sequence of the run's task]
    #[arg(long)]
    prompt: Vec<String>,
    /// The most tokens to write
    #[arg(long, default_value_t = 32)]
    tokens: usize,
    /// Divides the logits; 0 takes the likeliest token
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Only the K likeliest tokens may come
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Only the likeliest tokens that together reach this probability may come
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// What the draws follow from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Text that ends the text, or token names with spaces between them; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
}

impl Verb for GenerateVerb {
    const NAME: &'static str = "generate";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let generation = Generation {
            tokens: self.tokens,
            sampling: Sampling {
                temperature: self.temperature,
                top_k: self.top_k,
                top_p: self.top_p,
            },
            seed: self.seed,
            ..Generation::default()
        };
        let written = subject.generate(&self.prompt, &self.stop, generation, |piece| {
            if !out.json {
                print_piece(piece);
            }
        })?;
        // One text is no list.
        if let [one] = written.as_slice() {
            return out.show_text(one, one, Vec::new(), |one| format!("\n\n{}", one.ending));
        }
        out.show_text(&written, &written, Vec::new(), |all| {
            // The first text was printed as it came.
            let mut text = format!("\n\n{}", all[0].ending);
            for other in &all[1..] {
                text.push_str("\n\n");
                text.push_str(&other.shown());
            }
            text
        })
    }
}

/// Shows a token as soon as it is there. In a terminal, a control character that the model learned
/// from a text is a dot: it could move the cursor or worse.
fn print_piece(token: &str) {
    let mut out = std::io::stdout().lock();
    let in_terminal = out.is_terminal();
    let shown = |c: char| {
        if in_terminal && c.is_control() && !matches!(c, '\n' | '\t') {
            '·'
        } else {
            c
        }
    };
    let token: String = token.chars().map(shown).collect();
    // A reader that has gone away is no failure; anything else shows when the ending is printed.
    let _ = write!(out, "{token}").and_then(|()| out.flush());
}

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
