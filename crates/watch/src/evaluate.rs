//! Loss and accuracy on sequences that are not learned from.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use headlight_heads::HeadName;
use headlight_lens::{Quarters, mean_ablated};
use headlight_residual::{Decoder, NextTokenScores, score_next_tokens};
use headlight_run::Breakdown;
use headlight_tasks::{Marks, Question, Sequence};

use crate::{
    batch::{Batch, Right, count_right, count_scored},
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
    let scored: Vec<_> = sequences.iter().map(|sequence| &sequence.scored).collect();
    let quarters = Quarters::of(&scored);
    let mut parts = Vec::new();
    for first in (0..sequences.len()).step_by(ROWS_AT_ONCE) {
        parts.push(first..(first + ROWS_AT_ONCE).min(sequences.len()));
    }
    let sums_of = |rows: Range<usize>| {
        let batch = Batch::new(&sequences[rows.clone()], device);
        let stream = model.final_stream(batch.inputs.clone(), &mut mean_ablated(heads));
        let asked = questions.get(rows).unwrap_or_default();
        Sums::of(model, &batch, &stream, quarters.as_ref(), asked)
    };
    let mut sums = Sums::default();
    for part in cores.map(parts, sums_of) {
        sums.add(part);
    }
    let scored = count_scored(sequences).max(1) as f64;
    let mut in_context = None;
    if quarters.is_some() {
        in_context = Some(sums.late.value() - sums.early.value());
    }
    let mut evaluation = Evaluation {
        loss: sums.loss / scored,
        accuracy: sums.right.targets / scored,
        exact: sums.right.sequences / sequences.len().max(1) as f64,
        in_context,
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
    /// # Shapes
    /// - stream: `[rows, positions, d_model]`, the final stream of the batch
    fn of(
        model: &Decoder,
        batch: &Batch,
        stream: &Tensor<3>,
        quarters: Option<&Quarters>,
        asked: &[Vec<Question>],
    ) -> Self {
        let mut marks = Marks::default();
        let mut parts = Vec::new();
        for (positions, logits) in model.logits_in_parts(stream) {
            if !asked.is_empty() {
                add_marks(&mut marks, asked, &positions, logits.clone());
            }
            let targets = batch
                .targets
                .clone()
                .narrow(1, positions.start, positions.len());
            parts.push(score_next_tokens(logits, targets));
        }
        let scores = NextTokenScores::joined(parts);
        let mut sums = Self {
            loss: f64::from(scores.summed_loss(&batch.scored)),
            right: count_right(&scores, batch),
            marks,
            ..Self::default()
        };
        if let Some(Quarters { early, late }) = quarters {
            sums.early = Mean::of(&scores, batch.scored_in(early.clone()));
            sums.late = Mean::of(&scores, batch.scored_in(late.clone()));
        }
        sums
    }

    fn add(&mut self, more: Self) {
        self.loss += more.loss;
        self.early.add(more.early);
        self.late.add(more.late);
        self.right.targets += more.right.targets;
        self.right.sequences += more.right.sequences;
        self.marks.extend(more.marks);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    /// The loss over the positions that are `scored`.
    fn of(scores: &NextTokenScores, scored: Tensor<2>) -> Self {
        Self {
            sum: f64::from(scores.summed_loss(&scored)),
            count: f64::from(scored.sum().into_scalar::<f32>()),
        }
    }

    fn add(&mut self, more: Self) {
        self.sum += more.sum;
        self.count += more.count;
    }

    fn value(self) -> f64 {
        self.sum / self.count
    }
}

/// Puts the questions that stand at `positions`.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`, with a list of questions for each row
fn add_marks(
    marks: &mut Marks,
    questions: &[Vec<Question>],
    positions: &Range<usize>,
    logits: Tensor<3>,
) {
    let [_, _, vocabulary] = logits.dims();
    let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
    for (row, questions) in questions.iter().enumerate() {
        for question in questions {
            if !positions.contains(&question.input) {
                continue;
            }
            let at = row * positions.len() + question.input - positions.start;
            let logits = &logits[at * vocabulary..][..vocabulary];
            marks.add(question, question.is_answered_by(logits));
        }
    }
}
