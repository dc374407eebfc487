//! Rows of a task side by side.

use crate::{RowKey, Sequence, Task, Use};

/// The sequences that a run is measured on.
#[must_use]
pub fn validation(task: &dyn Task, seed: u64) -> Vec<Sequence> {
    batch(task, seed, Use::Validation, 0, task.validation_rows())
}

/// Rows `0 .. count` for one step.
#[must_use]
pub fn batch(task: &dyn Task, seed: u64, usage: Use, step: usize, count: usize) -> Vec<Sequence> {
    (0..count)
        .map(|row| {
            task.sequence(RowKey {
                seed,
                usage,
                step,
                row,
            })
        })
        .collect()
}
