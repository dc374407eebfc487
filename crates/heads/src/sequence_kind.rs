//! Sequences that heads are watched on.

use serde::{Deserialize, Serialize};

/// On which sequences a head was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceKind {
    /// The jittered `repeat` task over the model's own vocabulary: here roles are read.
    Probe,
    /// The model's own task.
    Task,
}
