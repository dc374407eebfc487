//! Why training stops before its end.

use headlight_run::InputError;

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
