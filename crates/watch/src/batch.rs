//! Sequences as tensors, and what is right in them.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};
use headlight_residual::{NextTokenScores, token_tensor};
use headlight_tasks::Sequence;

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
        let positions = sequences
            .first()
            .map_or(0, |sequence| sequence.scored.len());
        let ids = |from: usize| {
            let rows: Vec<&[u32]> = sequences
                .iter()
                .map(|sequence| &sequence.tokens[from..from + positions])
                .collect();
            token_tensor(&rows, device)
        };
        let scored: Vec<f32> = sequences
            .iter()
            .flat_map(|sequence| &sequence.scored)
            .map(|&scored| f32::from(u8::from(scored)))
            .collect();
        Self {
            inputs: ids(0),
            targets: ids(1),
            scored: Tensor::from_data(TensorData::new(scored, [rows, positions]), device),
        }
    }

    /// `scored` with nothing scored outside `positions`.
    #[must_use]
    pub fn scored_in(&self, positions: Range<usize>) -> Tensor<2> {
        let [rows, _] = self.scored.dims();
        let inside = self.scored.clone().slice([0..rows, positions.clone()]);
        self.scored
            .zeros_like()
            .slice_assign([0..rows, positions], inside)
    }
}

/// How many targets the task scores.
#[must_use]
pub fn count_scored(sequences: &[Sequence]) -> usize {
    sequences
        .iter()
        .flat_map(|sequence| &sequence.scored)
        .filter(|&&scored| scored)
        .count()
}

/// What a model got right.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Right {
    /// Scored targets that are the likeliest token.
    pub targets: f64,
    /// Sequences of which that is true of every scored target.
    pub sequences: f64,
}

/// Counts what is right.
#[must_use]
pub fn count_right(scores: &NextTokenScores, batch: &Batch) -> Right {
    let right = scores.right.clone() * batch.scored.clone();
    let of_rows = right.sum_dim(1);
    let whole = of_rows
        .clone()
        .equal(batch.scored.clone().sum_dim(1))
        .float();
    let count = |of: Tensor<2>| f64::from(of.sum().into_scalar::<f32>());
    Right {
        targets: count(of_rows),
        sequences: count(whole),
    }
}

#[cfg(test)]
mod tests {
    use headlight_residual::score_next_tokens;

    use super::*;

    #[test]
    fn a_sequence_is_right_when_all_its_scored_targets_are() {
        // Targets 1 1 | 1 0 | 0 0; the model always says 1.
        let row = |tokens: [u32; 3], scored: [bool; 2]| Sequence {
            tokens: tokens.to_vec(),
            scored: scored.to_vec(),
        };
        let sequences = [
            row([0, 1, 1], [true, true]),
            row([0, 1, 0], [true, true]),
            row([0, 0, 1], [false, true]),
        ];
        let batch = Batch::new(&sequences, &Device::flex());
        let logits = Tensor::<3>::from_data([[[0.0, 1.0]; 2]; 3], &Device::flex());
        let scores = score_next_tokens(logits, batch.targets.clone());
        assert_eq!(
            count_right(&scores, &batch),
            Right {
                targets: 4.0,
                sequences: 2.0
            }
        );
    }

    #[test]
    fn of_equal_logits_the_first_is_the_guess() {
        // Burn takes other paths through wider rows.
        for vocabulary in [4, 5000] {
            let last = vocabulary as u32 - 1;
            let sequences = [1, last].map(|target| Sequence {
                tokens: vec![0, target],
                scored: vec![true],
            });
            let batch = Batch::new(&sequences, &Device::flex());
            let mut row = vec![0.0_f32; vocabulary];
            row[1] = 2.0;
            row[vocabulary - 1] = 2.0;
            let logits = TensorData::new(row.repeat(2), [2, 1, vocabulary]);
            let logits = Tensor::<3>::from_data(logits, &Device::flex());
            let scores = score_next_tokens(logits, batch.targets.clone());
            assert_eq!(count_right(&scores, &batch).targets, 1.0, "{vocabulary}");
            assert_eq!(headlight_residual::argmax(&row), Some(1));
        }
    }
}
