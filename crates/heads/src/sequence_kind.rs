//! Sequences that heads are watched on.

use crate::named::named;

/// On which sequences a head was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SequenceKind {
    /// The jittered `repeat` task over the model's own vocabulary: here roles are read.
    Probe,
    /// The model's own task.
    Task,
}

impl SequenceKind {
    /// Both of them, in the order of rows and tables.
    pub const ALL: [Self; 2] = [Self::Probe, Self::Task];

    /// The name in files; a file of patterns on these sequences bears the same name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Task => "task",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(SequenceKind, "kind of sequences");
