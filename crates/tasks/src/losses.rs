//! Means of losses over the positions that a task scores.

use crate::{Sequence, Task};

/// The mean of some losses over the scored positions of these sequences.
#[must_use]
pub fn mean_scored(sequences: &[Sequence], losses: impl Fn(&Sequence) -> Vec<f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for sequence in sequences {
        for (loss, &scored) in losses(sequence).into_iter().zip(&sequence.scored) {
            if scored {
                sum += loss;
                count += 1;
            }
        }
    }
    sum / count.max(1) as f64
}

/// [`mean_scored`], or `None` where the losses are not known.
#[must_use]
pub fn mean_known(
    sequences: &[Sequence],
    losses: impl Fn(&Sequence) -> Option<Vec<f64>>,
) -> Option<f64> {
    losses(sequences.first()?)?;
    Some(mean_scored(sequences, |sequence| {
        losses(sequence).unwrap_or_default()
    }))
}

/// The name of the task's shortcut and its mean loss on these sequences, if there is one.
#[must_use]
pub fn shortcut_loss(task: &dyn Task, sequences: &[Sequence]) -> Option<(&'static str, f64)> {
    let name = task.shortcut(sequences.first()?)?.name;
    let loss = mean_known(sequences, |sequence| {
        task.shortcut(sequence).map(|shortcut| shortcut.losses)
    })?;
    Some((name, loss))
}
