//! `program`: what a program answers to random inputs. The program can be compiled into weights, so
//! there is a model of this task whose circuit is known.

use headlight_compile::{self as compile, Layout, Program as Code, programs};
use headlight_run::{Error, ErrorKind, ProgramConfig};
use rand::{Rng, RngExt};

use super::{RowKey, Sequence, Task, Vocabulary};

/// Uniform inputs that are drawn in search of an answer.
const DRAWS: usize = 32;

/// The start of the sequence, an input, and the program's answer. Scored is the answer: at the last
/// position, or at as many as the input has where the input ends with `=`.
///
/// Among uniform inputs some answers are rare: one word in 16 of 8 letters a and b is a palindrome.
/// So of a program with one answer, an answer is drawn first, and then up to 32 uniform inputs until
/// one has it.
#[derive(Debug, Clone)]
pub struct Program {
    code: Code,
}

impl Program {
    /// The task of a configuration.
    ///
    /// # Errors
    /// If there is no such program, or the model has another number of positions.
    pub fn new(config: &ProgramConfig, n_ctx: usize) -> Result<Self, Error> {
        let code = code(config)?;
        let takes = code.layout().positions() + 1;
        if takes != n_ctx {
            let message = format_args!(
                "must be {takes} for {} with task.length = {}",
                config.program, config.length
            );
            return Err(Error::config(message).key("model.n_ctx").value(n_ctx));
        }
        Ok(Self { code })
    }

    fn uniform(&self, rng: &mut impl Rng) -> Vec<&str> {
        let letters = self.code.alphabet();
        let mut input = Vec::new();
        for _ in 0..self.code.layout().length() {
            input.push(letters[rng.random_range(0..letters.len())].as_str());
        }
        input
    }

    fn question(&self, input: &[&str]) -> compile::Question {
        let question = self.code.question(input);
        question.unwrap_or_else(|error| unreachable!("an input of its own letters: {error}"))
    }
}

/// The program of a configuration.
///
/// # Errors
/// If there is no such program, or its inputs cannot be so long.
pub fn code(config: &ProgramConfig) -> Result<Code, Error> {
    let named = programs::named(&config.program, Some(config.length));
    named.map_err(|error| Error::because(ErrorKind::Config, "task.program", error))
}

impl Task for Program {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names(self.code.vocabulary())
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let mut question = self.question(&self.uniform(&mut rng));
        if let Layout::Prefix { .. } = self.code.layout() {
            let answers = self.code.answers();
            let wanted = &answers[rng.random_range(0..answers.len())];
            let wanted = self.code.ids(&[wanted]).unwrap_or_default();
            for _ in 1..DRAWS {
                if question.tokens.ends_with(&wanted) {
                    break;
                }
                question = self.question(&self.uniform(&mut rng));
            }
        }
        let compile::Question { tokens, scored } = question;
        Sequence { tokens, scored }
    }

    /// What is scored is certain. Nobody pays for the letters of the input, which are about uniform.
    fn floor_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let letters = self.code.alphabet().len() as f64;
        let of_target = |&scored: &bool| if scored { 0.0 } else { letters.ln() };
        Some(sequence.scored.iter().map(of_target).collect())
    }

    /// What is scored is certain; a letter of the input is any.
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let letters = self.code.alphabet().len() as f64;
        let of_target = |&scored: &bool| if scored { 1.0 } else { 1.0 / letters };
        Some(sequence.scored.iter().map(of_target).collect())
    }

    fn chance(&self) -> f64 {
        let choices = match self.code.layout() {
            Layout::Prefix { .. } => self.code.answers().len(),
            Layout::Answer { .. } => self.code.alphabet().len(),
        };
        1.0 / choices as f64
    }

    /// The letters of inputs. The probe is an input, so it has no answers and no `=` in it.
    fn training_tokens(&self) -> Option<Vec<u32>> {
        Some((0..self.code.alphabet().len() as u32).collect())
    }

    fn start(&self) -> Option<u32> {
        Some(self.code.vocabulary().len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Use, batch};

    fn task(program: &str, length: usize, n_ctx: usize) -> Result<Program, Error> {
        let program = program.to_owned();
        Program::new(&ProgramConfig { program, length }, n_ctx)
    }

    #[test]
    fn scored_is_what_the_program_answers() {
        let previous = task("previous_token", 5, 6).unwrap();
        let names = previous.vocabulary().names();
        for row in batch(&previous, 1, Use::Training, 1, 50) {
            assert_eq!(names[row.tokens[0] as usize], "<s>");
            assert_eq!(row.scored, [false, false, false, false, false, true]);
            assert_eq!(row.tokens[6], row.tokens[4]);
        }
        let reverse = task("reverse", 3, 7).unwrap();
        for row in batch(&reverse, 1, Use::Training, 1, 50) {
            assert_eq!(row.scored, [false, false, false, false, true, true, true]);
            assert!(row.tokens[1..4].iter().eq(row.tokens[5..].iter().rev()));
            let losses = reverse.floor_losses(&row).unwrap();
            assert_eq!(losses[4..], [0.0; 3]);
        }
    }

    #[test]
    fn rare_answers_are_asked_for_too() {
        let palindrome = task("palindrome", 8, 9).unwrap();
        let yes = palindrome.code.ids(&["true"]).unwrap();
        let rows = batch(&palindrome, 1, Use::Training, 1, 400);
        let found = rows.iter().filter(|row| row.tokens.ends_with(&yes)).count();
        // Half of the time it is wanted, and then found with probability 1 − (15/16)^32 = 0.87; and
        // one of 16 comes without being wanted only if all 32 draws were palindromes.
        assert!((140..210).contains(&found), "{found}");
    }

    #[test]
    fn a_program_or_length_that_is_not_there_is_named() {
        let error = |program, length, n_ctx| task(program, length, n_ctx).unwrap_err().to_string();
        let unknown = error("srot", 5, 6);
        assert!(unknown.contains("srot: is no program"), "{unknown}");
        let other = error("reverse", 5, 6);
        let expected = "model.n_ctx = 6: must be 11 for reverse with task.length = 5";
        assert!(other.contains(expected), "{other}");
    }
}
