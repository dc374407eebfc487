//! Loss and accuracy on sequences that are not learned from.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use headlight_heads::HeadName;
use headlight_lens::{Quarters, mean_ablated};
use headlight_residual::Decoder;
use headlight_run::Breakdown;
use headlight_tasks::{Marks, Question, Sequence};

use crate::{
    batch::{Batch, Right, count_right, count_scored, summed_loss},
    cores::Cores,
};

/// Sequences in one forward pass: bounds memory.
const ROWS_AT_ONCE: usize = 64;

/// What a model does on some sequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Mean over the scored positions, nats.
    pub loss: f64,
    /// The share of scored positions whose likeliest token is right.
    pub accuracy: f64,
    /// The share of sequences whose scored targets are all right.
    pub exact: f64,
    /// The in-context score of [`Quarters`], where enough positions are scored.
    pub in_context: Option<f64>,
    /// Answers to the task's questions about these sequences, by their kind.
    pub breakdown: Breakdown,
}

/// Runs `model`, which must not be on an autodiff device, over `sequences` and puts their
/// `questions` to it: a list for each sequence, or none at all.
///
/// Where the loss is no number, accuracies are none either: the likeliest of logits that are no
/// numbers says nothing.
#[must_use]
pub fn evaluate(
    model: &Decoder,
    sequences: &[Sequence],
    questions: &[Vec<Question>],
    device: &Device,
    cores: &Cores,
) -> Evaluation {
    evaluate_without(model, &[], sequences, questions, device, cores)
}

/// [`evaluate`], with the mean over the sequences of one forward pass in place of what `heads`
/// blend.
#[must_use]
pub fn evaluate_without(
    model: &Decoder,
    heads: &[HeadName],
    sequences: &[Sequence],
    questions: &[Vec<Question>],
    device: &Device,
    cores: &Cores,
) -> Evaluation {
    let quarters = Quarters::of(
        &sequences
            .iter()
            .map(|sequence| &sequence.scored)
            .collect::<Vec<_>>(),
    );
    let part = |rows: Range<usize>| {
        let batch = Batch::new(&sequences[rows.clone()], device);
        let logits = model.forward_probed(batch.inputs.clone(), &mut mean_ablated(heads));
        let loss_of =
            |batch: &Batch| f64::from(summed_loss(logits.clone(), batch).into_scalar::<f32>());
        let mean_of = |positions: &Range<usize>| {
            let inside = batch.scored_in(positions.clone());
            Mean {
                sum: loss_of(&inside),
                count: f64::from(inside.scored.sum().into_scalar::<f32>()),
            }
        };
        let asked = questions.get(rows).unwrap_or_default();
        Sums {
            loss: loss_of(&batch),
            early: quarters
                .as_ref()
                .map(|quarters| mean_of(&quarters.early))
                .unwrap_or_default(),
            late: quarters
                .as_ref()
                .map(|quarters| mean_of(&quarters.late))
                .unwrap_or_default(),
            marks: if asked.is_empty() {
                Marks::default()
            } else {
                marks(asked, logits.clone())
            },
            right: count_right(logits, &batch),
        }
    };
    let firsts = (0..sequences.len()).step_by(ROWS_AT_ONCE);
    let parts = firsts
        .map(|first| first..(first + ROWS_AT_ONCE).min(sequences.len()))
        .collect();
    let sums = cores
        .map(parts, part)
        .into_iter()
        .fold(Sums::default(), Sums::add);
    let scored = count_scored(sequences).max(1) as f64;
    let mut evaluation = Evaluation {
        loss: sums.loss / scored,
        accuracy: sums.right.targets / scored,
        exact: sums.right.sequences / sequences.len().max(1) as f64,
        in_context: quarters
            .is_some()
            .then(|| sums.late.value() - sums.early.value()),
        breakdown: sums.marks.breakdown(),
    };
    if !evaluation.loss.is_finite() {
        evaluation.accuracy = f64::NAN;
        evaluation.exact = f64::NAN;
        for answers in evaluation.breakdown.values_mut() {
            answers.accuracy = f64::NAN;
        }
    }
    evaluation
}

/// What adds up over sequences.
#[derive(Debug, Default)]
struct Sums {
    loss: f64,
    early: Mean,
    late: Mean,
    right: Right,
    marks: Marks,
}

impl Sums {
    fn add(mut self, more: Self) -> Self {
        self.loss += more.loss;
        self.early.add(more.early);
        self.late.add(more.late);
        self.right.targets += more.right.targets;
        self.right.sequences += more.right.sequences;
        self.marks.extend(more.marks);
        self
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, more: Self) {
        self.sum += more.sum;
        self.count += more.count;
    }

    fn value(self) -> f64 {
        self.sum / self.count
    }
}

/// # Shapes
/// - logits: `[rows, positions, vocabulary]`, with a list of questions for each row
fn marks(questions: &[Vec<Question>], logits: Tensor<3>) -> Marks {
    let [_, positions, vocabulary] = logits.dims();
    let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
    let mut marks = Marks::default();
    for (row, questions) in questions.iter().enumerate() {
        for question in questions {
            let at = (row * positions + question.input) * vocabulary;
            marks.add(
                question,
                question.is_answered_by(&logits[at..at + vocabulary]),
            );
        }
    }
    marks
}
