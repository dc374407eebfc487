//! The sequences that a run is measured on, and what its task knows about each.

use std::mem::take;

use headlight_heads::Relation;
use headlight_run::SequenceRow;

use crate::{Question, Sequence, Shortcut, Task, Use, batch, mean_scored};

/// Losses and probabilities are kept to this part of a nat or of 1. Numbers with so few digits come back from a file with
/// every bit, which JSON readers do not promise of longer ones.
const PARTS_OF_A_NAT: f64 = 1e9;

/// The sequences that a run is measured on, always the same, and what is known about each. Training
/// makes them from the task; whoever looks at a run reads them from its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// All of one length.
    pub sequences: Vec<Sequence>,
    /// Of each sequence the gold relations; no list at all if none has any.
    pub relations: Vec<Vec<Relation>>,
    /// Of each sequence the task's own questions; no list at all if none has any.
    pub questions: Vec<Vec<Question>>,
    floor: Option<Vec<Box<[f64]>>>,
    /// `None` where nobody knows it or it is the floor.
    bayes: Option<Vec<Box<[f64]>>>,
    shortcut: Option<Vec<Shortcut>>,
    /// For each target how often the best guess is right.
    best_accuracy: Option<Vec<Box<[f64]>>>,
}

impl Validation {
    /// The validation sequences of a task.
    ///
    /// ```
    /// use headlight_run::RepeatConfig;
    /// use headlight_tasks::{Repeat, Validation};
    ///
    /// let validation = Validation::of(&Repeat::new(&RepeatConfig::default(), 64), 0);
    /// assert_eq!(validation.sequences.len(), 256);
    /// // What is written to a file comes back with every bit.
    /// assert_eq!(Validation::of_rows(validation.rows()), validation);
    /// ```
    #[must_use]
    pub fn of<T: Task + ?Sized>(task: &T, seed: u64) -> Self {
        Self::of_first(task, seed, task.validation_rows())
    }

    /// The first `rows` validation sequences of a task.
    #[must_use]
    pub fn of_first<T: Task + ?Sized>(task: &T, seed: u64, rows: usize) -> Self {
        let sequences = batch(task, seed, Use::Validation, 0, rows);
        let floor = known(&sequences, |sequence| {
            task.floor_losses(sequence).map(rounded)
        });
        let bayes = known(&sequences, |sequence| {
            task.bayes_losses(sequence).map(rounded)
        });
        let shortcut = |sequence: &Sequence| {
            let Shortcut { name, losses } = task.shortcut(sequence)?;
            let losses = rounded(losses.into_vec());
            Some(Shortcut { name, losses })
        };
        Self {
            relations: lists(sequences.iter().map(|sequence| task.relations(sequence))),
            questions: lists(sequences.iter().map(|sequence| task.questions(sequence))),
            bayes: if bayes == floor { None } else { bayes },
            floor,
            shortcut: known(&sequences, shortcut),
            best_accuracy: known(&sequences, |sequence| {
                task.best_accuracies(sequence).map(rounded)
            }),
            sequences,
        }
    }

    /// What a run has in its file, whose rows are checked. It takes little more memory than the
    /// rows: lists move, and no list of lists grows.
    #[must_use]
    pub fn of_rows(mut rows: Vec<SequenceRow>) -> Self {
        // Collecting would keep the room of the rows.
        let mut sequences = Vec::with_capacity(rows.len());
        let has_relations = rows.iter().any(|row| !row.relations.is_empty());
        let has_questions = rows.iter().any(|row| !row.questions.is_empty());
        let relations = moved(&mut rows, |row| {
            has_relations.then(|| take(&mut row.relations).into_vec())
        });
        let questions = moved(&mut rows, |row| {
            has_questions.then(|| take(&mut row.questions).into_vec())
        });
        let floor = moved(&mut rows, |row| row.floor.take());
        let bayes = moved(&mut rows, |row| row.bayes.take());
        let shortcut = moved(&mut rows, |row| row.shortcut.take());
        let best_accuracy = moved(&mut rows, |row| row.best_accuracy.take());
        for row in rows {
            sequences.push(Sequence::from(row));
        }
        Self {
            sequences,
            relations: relations.unwrap_or_default(),
            questions: questions.unwrap_or_default(),
            floor,
            bayes,
            shortcut,
            best_accuracy,
        }
    }

    /// As lines of a file.
    #[must_use]
    pub fn rows(&self) -> Vec<SequenceRow> {
        let row = |(at, sequence): (usize, &Sequence)| SequenceRow {
            relations: boxed(self.relations.get(at)),
            questions: boxed(self.questions.get(at)),
            floor: self.floor.as_ref().map(|losses| losses[at].clone()),
            bayes: self.bayes.as_ref().map(|losses| losses[at].clone()),
            shortcut: self.shortcut.as_ref().map(|losses| losses[at].clone()),
            best_accuracy: self.best_accuracy.as_ref().map(|best| best[at].clone()),
            ..SequenceRow::from(sequence)
        };
        self.sequences.iter().enumerate().map(row).collect()
    }

    /// For each target of a sequence what the best predictor pays that knows the task and which
    /// targets are scored, nats; `None` where nobody knows it.
    #[must_use]
    pub fn floor_losses(&self, sequence: usize) -> Option<&[f64]> {
        self.floor.as_ref().map(|losses| &*losses[sequence])
    }

    /// The mean of what that predictor pays on scored targets, nats.
    #[must_use]
    pub fn floor(&self) -> Option<f64> {
        let losses = self.floor.as_ref()?;
        Some(mean_scored(&self.sequences, losses))
    }

    /// The mean of what the best predictor pays on scored targets that knows the task alone, nats.
    #[must_use]
    pub fn bayes(&self) -> Option<f64> {
        let losses = self.bayes.as_ref().or(self.floor.as_ref())?;
        Some(mean_scored(&self.sequences, losses))
    }

    /// For each target of a sequence how often that predictor is right; `None` where nobody knows it.
    #[must_use]
    pub fn best_accuracies(&self, sequence: usize) -> Option<&[f64]> {
        self.best_accuracy.as_ref().map(|best| &*best[sequence])
    }

    /// The share of scored targets at which the best predictor that knows the task and what is scored
    /// is expected to be right.
    #[must_use]
    pub fn best_accuracy(&self) -> Option<f64> {
        let best = self.best_accuracy.as_ref()?;
        Some(mean_scored(&self.sequences, best))
    }

    /// The name of the task's shortcut and its mean loss on scored targets, nats.
    #[must_use]
    pub fn shortcut(&self) -> Option<(&str, f64)> {
        let shortcuts = self.shortcut.as_ref()?;
        let losses = shortcuts.iter().map(|shortcut| &shortcut.losses);
        let loss = mean_scored(&self.sequences, losses);
        Some((&shortcuts.first()?.name, loss))
    }
}

/// What is known of every sequence, or `None` if it is not known of one.
fn known<T>(sequences: &[Sequence], of: impl Fn(&Sequence) -> Option<T>) -> Option<Vec<T>> {
    sequences.iter().map(of).collect()
}

/// A part of every row, or `None` if the first has none.
fn moved<T>(
    rows: &mut [SequenceRow],
    part: impl Fn(&mut SequenceRow) -> Option<T>,
) -> Option<Vec<T>> {
    let (first, others) = rows.split_first_mut()?;
    let first = part(first)?;
    let mut parts = Vec::with_capacity(others.len() + 1);
    parts.push(first);
    for row in others {
        parts.push(part(row)?);
    }
    Some(parts)
}

/// The lists, or none at all if each is empty.
fn lists<T>(lists: impl Iterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    let lists: Vec<Vec<T>> = lists.collect();
    if lists.iter().all(Vec::is_empty) {
        Vec::new()
    } else {
        lists
    }
}

fn boxed<T: Clone>(list: Option<&Vec<T>>) -> Box<[T]> {
    list.cloned().unwrap_or_default().into()
}

fn rounded(losses: Vec<f64>) -> Box<[f64]> {
    // The sum takes the sign from a 0.
    let rounded = |loss: f64| (loss * PARTS_OF_A_NAT).round() / PARTS_OF_A_NAT + 0.0;
    losses.into_iter().map(rounded).collect()
}
