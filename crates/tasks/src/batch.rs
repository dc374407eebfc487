//! Rows of a task side by side.

use crate::{RowKey, Sequence, Task, Use};

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
