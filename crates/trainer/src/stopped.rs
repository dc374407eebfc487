//! Why training stops before its end.

use std::path::PathBuf;

use headlight_residual::WeightsError;
use headlight_run::Error;

use crate::optimizer::MemoryError;

/// Training that did not come to its end. What it wrote stays, and `--resume` goes on from the
/// newest checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// A signal asked for it; a checkpoint was written.
    #[error("{}", Error::new(run.display(), format_args!("by a signal after step {step}; --resume goes on from there")))]
    Interrupted {
        /// The run.
        run: PathBuf,
        /// The step of the checkpoint.
        step: usize,
    },
    /// The run must not be gone on with here: another version or another device began it. Nothing
    /// was changed.
    #[error(transparent)]
    Refused(Error),
    /// The loss or the gradient is no number.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// The thread that writes the run did not do it.
    #[error("the thread that writes the run: {0}")]
    Writer(&'static str),
    /// A rank cannot use what the first rank sent.
    #[error("rank {rank}: the checkpoint of the first rank: {source}")]
    Rank {
        /// The rank.
        rank: usize,
        /// Why it cannot.
        source: UnusableCheckpoint,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// A loss or a gradient that is no number, and where it came from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{}",
    Error::new(
        run.display(),
        format_args!(
            "step {step}: loss {loss}, gradient norm {gradient_norm}; the first tensor that is not finite is {tensor}, \
             in the batch of seed {seed}, step {step}, {}; checkpoints before it stay",
            row.map_or_else(|| "no row alone".to_owned(), |row| format!("row {row}"))
        )
    )
)]
pub struct NotFinite {
    /// The run.
    pub run: PathBuf,
    /// The update that was not made, or whose weights are no numbers.
    pub step: usize,
    /// The loss of its batch or, if only that is not finite, on the validation sequences, nats.
    pub loss: f64,
    /// The norm of its whole gradient.
    pub gradient_norm: f64,
    /// The first activation or gradient that is not finite.
    pub tensor: String,
    /// The seed of the batch.
    pub seed: u64,
    /// The first row of the batch with such numbers, if a row has them alone.
    pub row: Option<usize>,
}

/// Why training cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableCheckpoint {
    /// It is of a later step than the run has.
    #[error("the run has {0} steps")]
    TooLate(usize),
    /// Its weights are not of this model.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The optimizer's tensors cannot be read.
    #[error("optimizer: {0}")]
    Optimizer(#[source] WeightsError),
    /// The optimizer's tensors are not of this model.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
