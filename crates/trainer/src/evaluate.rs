//! Loss and accuracy on sequences that are not learned from.

use burn::tensor::Device;
use headlight_residual::Decoder;

use crate::{
    batch::{Batch, count_right, count_scored, summed_loss},
    tasks::Sequence,
};

/// Sequences in one forward pass: bounds memory.
const ROWS_AT_ONCE: usize = 64;

/// What a model does on some sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean over the scored positions, nats.
    pub loss: f64,
    /// The share of scored positions whose likeliest token is right.
    pub accuracy: f64,
    /// The share of sequences whose scored targets are all right.
    pub exact: f64,
}

/// Runs `model`, which must not be on an autodiff device, over `sequences`.
#[must_use]
pub fn evaluate(model: &Decoder, sequences: &[Sequence], device: &Device) -> Evaluation {
    let (mut loss, mut right, mut exact) = (0.0, 0.0, 0.0);
    for rows in sequences.chunks(ROWS_AT_ONCE) {
        let batch = Batch::new(rows, device);
        let logits = model.forward(batch.inputs.clone());
        loss += f64::from(summed_loss(logits.clone(), &batch).into_scalar::<f32>());
        let counts = count_right(logits, &batch);
        right += counts.targets;
        exact += counts.sequences;
    }
    let scored = count_scored(sequences).max(1) as f64;
    Evaluation { loss: loss / scored, accuracy: right / scored, exact: exact / sequences.len().max(1) as f64 }
}
