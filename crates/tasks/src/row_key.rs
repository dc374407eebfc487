//! The randomness of a sequence: a function of its key.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What sequences are for; each use has its own stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To learn from.
    Training,
    /// To measure on.
    Validation,
    /// To watch the heads on.
    Probe,
}

/// Names one row of one batch. Equal keys give equal sequences, in any process and on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// The run's seed.
    pub seed: u64,
    /// What it is for.
    pub usage: Use,
    /// The step it is trained on; 0 for what is made once.
    pub step: usize,
    /// The row in the batch.
    pub row: usize,
    /// The rows of the batch. Generated sequences do not depend on it; those of a file do, since
    /// each comes once in an epoch.
    pub rows: usize,
}

impl RowKey {
    /// The row's own random numbers.
    #[must_use]
    pub fn rng(self) -> ChaCha8Rng {
        let mut key = [0; 32];
        let parts = [
            self.seed,
            self.usage as u64,
            self.step as u64,
            self.row as u64,
        ];
        for (bytes, part) in key.chunks_exact_mut(8).zip(parts) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key)
    }
}
