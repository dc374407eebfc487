//! Loss and accuracy on sequences that are not learned from.

use burn::tensor::{Device, Tensor};
use headlight_lens::{Ablation, Quarters, without};
use headlight_residual::Decoder;
use headlight_run::{Breakdown, HeadName};

use crate::{
    batch::{Batch, count_right, count_scored, summed_loss},
    tasks::{Marks, Question, Sequence, Task},
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

/// Every sequence's questions; no list at all if none has any.
#[must_use]
pub fn questions(task: &dyn Task, sequences: &[Sequence]) -> Vec<Vec<Question>> {
    let questions: Vec<_> = sequences.iter().map(|sequence| task.questions(sequence)).collect();
    if questions.iter().all(Vec::is_empty) { Vec::new() } else { questions }
}

/// Runs `model`, which must not be on an autodiff device, over `sequences` and puts their `questions` to it.
#[must_use]
pub fn evaluate(model: &Decoder, sequences: &[Sequence], questions: &[Vec<Question>], device: &Device) -> Evaluation {
    evaluate_without(model, &[], sequences, questions, device)
}

/// [`evaluate`], with the mean over the sequences of one forward pass in place of what `heads` blend.
#[must_use]
pub fn evaluate_without(
    model: &Decoder,
    heads: &[HeadName],
    sequences: &[Sequence],
    questions: &[Vec<Question>],
    device: &Device,
) -> Evaluation {
    let (mut loss, mut right, mut exact) = (0.0, 0.0, 0.0);
    let quarters = Quarters::of(&sequences.iter().map(|sequence| &sequence.scored).collect::<Vec<_>>());
    let parts = quarters.map(|quarters| [quarters.early, quarters.late]);
    let mut losses = [Mean::default(); 2];
    let mut marks = Marks::default();
    let mut unasked = questions;
    for rows in sequences.chunks(ROWS_AT_ONCE) {
        let batch = Batch::new(rows, device);
        let mut edits = without(model, batch.inputs.clone(), heads, Ablation::Mean);
        let logits = model.forward_probed(batch.inputs.clone(), &mut edits);
        loss += f64::from(summed_loss(logits.clone(), &batch).into_scalar::<f32>());
        for (mean, part) in losses.iter_mut().zip(parts.iter().flatten()) {
            let part = batch.scored_in(part.clone());
            mean.sum += f64::from(summed_loss(logits.clone(), &part).into_scalar::<f32>());
            mean.count += f64::from(part.scored.sum().into_scalar::<f32>());
        }
        let asked;
        (asked, unasked) = unasked.split_at(rows.len().min(unasked.len()));
        if !asked.is_empty() {
            mark(&mut marks, asked, logits.clone());
        }
        let counts = count_right(logits, &batch);
        right += counts.targets;
        exact += counts.sequences;
    }
    let scored = count_scored(sequences).max(1) as f64;
    Evaluation {
        loss: loss / scored,
        accuracy: right / scored,
        exact: exact / sequences.len().max(1) as f64,
        in_context: parts.is_some().then(|| losses[1].value() - losses[0].value()),
        breakdown: marks.breakdown(),
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn value(self) -> f64 {
        self.sum / self.count
    }
}

/// # Shapes
/// - logits: `[rows, positions, vocabulary]`, with a list of questions for each row
fn mark(marks: &mut Marks, questions: &[Vec<Question>], logits: Tensor<3>) {
    let [_, positions, vocabulary] = logits.dims();
    let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
    for (row, questions) in questions.iter().enumerate() {
        for question in questions {
            let at = (row * positions + question.input) * vocabulary;
            marks.add(question, question.is_answered_by(&logits[at..at + vocabulary]));
        }
    }
}
