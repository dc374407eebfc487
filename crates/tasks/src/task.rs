//! A task: sequences, and what is known about predicting them.

use headlight_heads::Relation;
use headlight_run::SequenceRow;

use crate::{DataFile, Question, RowKey, Shortcut, Validation, Vocabulary};

/// Validation sequences of a task that has no reason for another number; the same at every step.
pub const VALIDATION_SEQUENCES: usize = 256;

/// A next-token task over fresh sequences.
pub trait Task: Send + Sync {
    /// The tokens, and how they are written.
    fn vocabulary(&self) -> Vocabulary;

    /// The sequence of one row: a function of the key alone.
    fn sequence(&self, row: RowKey) -> Sequence;

    /// The losses of the best predictor of this task's sequences, in nats: `−ln P(target | tokens
    /// before)` for each target. `None` where nobody knows that predictor.
    fn bayes_losses(&self, _sequence: &Sequence) -> Option<Vec<f64>> {
        None
    }

    /// The losses of the best predictor that also knows which targets are scored. It is the floor
    /// for a model that is trained on scored targets alone, since such a model never pays for its
    /// predictions elsewhere.
    fn floor_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        self.bayes_losses(sequence)
    }

    /// How often that predictor is right at each target, if it says the likeliest token:
    /// `max_x P(x | tokens before, which targets are scored)`. Nobody is right more often. `None`
    /// where nobody knows it.
    fn best_accuracies(&self, _sequence: &Sequence) -> Option<Vec<f64>> {
        None
    }

    /// The expected loss of that predictor on scored positions, where it is known in closed form.
    fn optimum(&self) -> Option<Optimum> {
        None
    }

    /// The accuracy of guessing.
    fn chance(&self) -> f64 {
        1.0 / self.vocabulary().len() as f64
    }

    /// The losses of a predictor that takes the task's shortcut, if there is one.
    fn shortcut(&self, _sequence: &Sequence) -> Option<Shortcut> {
        None
    }

    /// Which earlier word each word of the sequence depends on, where the task knows.
    fn relations(&self, _sequence: &Sequence) -> Vec<Relation> {
        Vec::new()
    }

    /// The task's own questions about the sequence, beside its next tokens.
    fn questions(&self, _sequence: &Sequence) -> Vec<Question> {
        Vec::new()
    }

    /// The sequences that a run is measured on, and what is known about each.
    fn validation(&self, seed: u64) -> Validation {
        Validation::of(self, seed)
    }

    /// The number of validation rows.
    fn validation_rows(&self) -> usize {
        VALIDATION_SEQUENCES
    }

    /// The files that the sequences are made from, in the order in which they were read.
    fn files(&self) -> Vec<DataFile> {
        Vec::new()
    }

    /// The share of all bytes of those files that is learned from; the rest is measured on. `None`
    /// where sequences are generated.
    fn training_share(&self) -> Option<f64> {
        None
    }

    /// The tokens that occur in training sequences, in their order; `None` if all do.
    fn training_tokens(&self) -> Option<Vec<u32>> {
        None
    }

    /// The token that begins every sequence and stands nowhere else, if there is one. The probe
    /// begins with it too, and scores leave it out.
    fn start(&self) -> Option<u32> {
        None
    }

    /// The number of training rows where there are only so many; each step then takes all of them.
    fn training_rows(&self) -> Option<usize> {
        None
    }
}

/// An expected loss that is known in closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimum {
    /// The predictor that reaches it.
    pub name: &'static str,
    /// Its expected loss on scored positions, nats.
    pub nats: f64,
}

/// Inputs, targets, and which targets count: `tokens[i + 1]` is the target at `tokens[i]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// One more than the model's context: the last is only a target.
    pub tokens: Vec<u32>,
    /// Whether the task scores the target at each input.
    pub scored: Vec<bool>,
}

impl From<SequenceRow> for Sequence {
    fn from(row: SequenceRow) -> Self {
        Self {
            scored: row.scores(),
            tokens: row.tokens.into_vec(),
        }
    }
}

impl From<&Sequence> for SequenceRow {
    /// As a line of a file; nothing else is known about it.
    fn from(sequence: &Sequence) -> Self {
        let all = sequence.scored.iter().all(|&scored| scored);
        let inputs = 0..sequence.scored.len();
        let scored = inputs.filter(|&input| sequence.scored[input]);
        Self {
            tokens: sequence.tokens.clone().into(),
            scored: (!all).then(|| scored.collect()),
            ..Self::default()
        }
    }
}
