//! Why training stops before its end.

use headlight_run::InputError;

use crate::command_line::Failure;

/// Training that did not come to its end. What it wrote stays, and `--resume` goes on from the
/// newest checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// A signal asked for it; a checkpoint was written.
    #[error("{0}")]
    Interrupted(InputError),
    /// It failed.
    #[error("{0}")]
    Failed(#[from] InputError),
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Interrupted(reason) => Self::Interrupted(reason),
            Stopped::Failed(reason) => Self::Running(reason),
        }
    }
}
