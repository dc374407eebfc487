//! What is learned: tasks whose optimum is known.

mod dyck;
mod grammar;
mod icl_markov;
mod lagged_markov;
mod markov;
mod modular_addition;
mod prompt;
mod question;
mod rearrange;
mod recall;
mod repeat;
mod text;
mod tokenizer_json;

use headlight_heads::Relation;
use headlight_run::{InputError, TaskConfig};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use dyck::Dyck;
pub use grammar::{Grammar, Lexicon};
pub use icl_markov::IclMarkov;
pub use lagged_markov::LaggedMarkov;
pub use modular_addition::ModularAddition;
pub use prompt::{encode_prompt, spelled, token_id};
pub use question::{Marks, Question};
pub use rearrange::{Rearrange, Rearrangement};
pub use recall::Recall;
pub use repeat::Repeat;
pub use text::Text;
pub use tokenizer_json::tokenizer_json;

/// Validation sequences of a task that has no reason for another number; the same at every step.
pub const VALIDATION_SEQUENCES: usize = 256;

/// A next-token task over fresh sequences.
pub trait Task: Send + Sync {
    /// The tokens' printable names, by id.
    fn vocabulary(&self) -> Vec<String>;

    /// The sequence of one row: a function of the key alone.
    fn sequence(&self, row: RowKey) -> Sequence;

    /// What the best predictor of this task's sequences pays for each target, in nats:
    /// `−ln P(target | tokens before)`; empty where nobody knows that predictor.
    fn bayes_losses(&self, sequence: &Sequence) -> Vec<f64>;

    /// What the best predictor pays that knows, besides, which targets are scored. It is the floor
    /// for a model that is trained on scored targets alone, since such a model never pays for what
    /// it says elsewhere.
    fn floor_losses(&self, sequence: &Sequence) -> Vec<f64> {
        self.bayes_losses(sequence)
    }

    /// The expected loss of that predictor on scored positions where it is known in closed form,
    /// and its name.
    fn optimum(&self) -> Option<(&'static str, f64)>;

    /// The accuracy of guessing.
    fn chance(&self) -> f64 {
        1.0 / self.vocabulary().len() as f64
    }

    /// What a predictor pays for each target that takes the task's shortcut, and that shortcut's
    /// name.
    fn shortcut_losses(&self, _: &Sequence) -> Option<(&'static str, Vec<f64>)> {
        None
    }

    /// Which earlier word each word of the sequence depends on, where the task knows.
    fn relations(&self, _sequence: &Sequence) -> Vec<Relation> {
        Vec::new()
    }

    /// What a model can be asked about the sequence besides its next tokens.
    fn questions(&self, _sequence: &Sequence) -> Vec<Question> {
        Vec::new()
    }

    /// The number of validation rows.
    fn validation_rows(&self) -> usize {
        VALIDATION_SEQUENCES
    }

    /// The number of training rows where there are only so many; each step then takes all of them.
    fn training_rows(&self) -> Option<usize> {
        None
    }
}

/// Inputs, targets, and which targets count: `tokens[i + 1]` is the target at `tokens[i]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// One more than the model's context: the last is only a target.
    pub tokens: Vec<u32>,
    /// Whether the task scores the target at each input.
    pub scored: Vec<bool>,
}

/// What sequences are for; each use has its own stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To learn from.
    Training,
    /// To measure on.
    Validation,
    /// To watch the heads on.
    Probe,
}

/// Names one row of one batch. Equal keys give equal sequences, in any process and on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// The run's seed.
    pub seed: u64,
    /// What it is for.
    pub usage: Use,
    /// The step it is trained on; 0 for what is made once.
    pub step: usize,
    /// The row in the batch.
    pub row: usize,
}

impl RowKey {
    /// The row's own random numbers.
    #[must_use]
    pub fn rng(self) -> ChaCha8Rng {
        let mut key = [0; 32];
        let parts = [
            self.seed,
            self.usage as u64,
            self.step as u64,
            self.row as u64,
        ];
        for (bytes, part) in key.chunks_exact_mut(8).zip(parts) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key)
    }
}

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

/// The sequences that a run is measured on.
#[must_use]
pub fn validation(task: &dyn Task, seed: u64) -> Vec<Sequence> {
    batch(task, seed, Use::Validation, 0, task.validation_rows())
}

/// Rows `0 .. count` for one step.
#[must_use]
pub fn batch(task: &dyn Task, seed: u64, usage: Use, step: usize, count: usize) -> Vec<Sequence> {
    (0..count)
        .map(|row| {
            task.sequence(RowKey {
                seed,
                usage,
                step,
                row,
            })
        })
        .collect()
}

/// The mean of some losses over the scored positions of these sequences.
#[must_use]
pub fn mean_scored(sequences: &[Sequence], losses: impl Fn(&Sequence) -> Vec<f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for sequence in sequences {
        for (loss, _) in losses(sequence)
            .into_iter()
            .zip(&sequence.scored)
            .filter(|(_, scored)| **scored)
        {
            sum += loss;
            count += 1;
        }
    }
    sum / count.max(1) as f64
}

/// [`mean_scored`], or `None` where the losses are not known.
#[must_use]
pub fn mean_known(sequences: &[Sequence], losses: impl Fn(&Sequence) -> Vec<f64>) -> Option<f64> {
    let known = sequences
        .first()
        .is_some_and(|sequence| !losses(sequence).is_empty());
    known.then(|| mean_scored(sequences, losses))
}

/// Names for tokens that mean nothing: letters and digits first.
fn symbols(count: usize) -> Vec<String> {
    let single = ('a'..='z')
        .chain('A'..='Z')
        .chain('0'..='9')
        .chain(['+', '-']);
    let numbered = (0..).map(|n| format!("t{n}"));
    single
        .map(String::from)
        .chain(numbered)
        .take(count)
        .collect()
}
