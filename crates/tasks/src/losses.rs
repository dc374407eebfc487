//! Means of losses over the positions that a task scores.

use crate::Sequence;

/// The mean of the `losses`, or of other numbers of each target, of these sequences, one list for each, over their scored positions.
#[must_use]
pub fn mean_scored<L: AsRef<[f64]>>(
    sequences: &[Sequence],
    losses: impl IntoIterator<Item = L>,
) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for (sequence, losses) in sequences.iter().zip(losses) {
        for (loss, &scored) in losses.as_ref().iter().zip(&sequence.scored) {
            if scored {
                sum += loss;
                count += 1;
            }
        }
    }
    sum / count.max(1) as f64
}
