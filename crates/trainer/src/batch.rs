//! Sequences as tensors, and the loss on them.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::tasks::Sequence;

/// Inputs, targets and weights of some sequences.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[rows, positions]`
    pub inputs: Tensor<2, Int>,
    /// `[rows, positions]`
    pub targets: Tensor<2, Int>,
    /// `[rows, positions]`, 1 where the task scores the target, else 0.
    pub scored: Tensor<2>,
}

impl Batch {
    /// Puts sequences of equal length on `device`.
    #[must_use]
    pub fn new(sequences: &[Sequence], device: &Device) -> Self {
        let rows = sequences.len();
        let positions = sequences.first().map_or(0, |sequence| sequence.scored.len());
        let ids = |from: usize| {
            let ids: Vec<i32> = sequences
                .iter()
                .flat_map(|sequence| sequence.tokens[from..from + positions].iter().map(|&token| token as i32))
                .collect();
            Tensor::from_data(TensorData::new(ids, [rows, positions]), device)
        };
        let scored: Vec<f32> =
            sequences.iter().flat_map(|sequence| &sequence.scored).map(|&scored| f32::from(u8::from(scored))).collect();
        Self {
            inputs: ids(0),
            targets: ids(1),
            scored: Tensor::from_data(TensorData::new(scored, [rows, positions]), device),
        }
    }
}

/// How many targets the task scores.
#[must_use]
pub fn count_scored(sequences: &[Sequence]) -> usize {
    sequences.iter().flat_map(|sequence| &sequence.scored).filter(|&&scored| scored).count()
}

/// `−Σ ln softmax(logits)[target]` over the scored targets, in nats: `[1]`.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
#[must_use]
pub fn summed_loss(logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
    headlight_ops::cross_entropy(logits, batch.targets.clone(), batch.scored.clone())
}

/// How many scored targets are the likeliest token.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
#[must_use]
pub fn count_right(logits: Tensor<3>, batch: &Batch) -> f64 {
    let guesses = logits.argmax(2).squeeze_dim::<2>(2);
    let right = guesses.equal(batch.targets.clone()).float() * batch.scored.clone();
    f64::from(right.sum().into_scalar::<f32>())
}
