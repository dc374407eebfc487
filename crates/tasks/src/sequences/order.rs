//! The order of the lines in one epoch.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// The order in force: it is made when a row of another seed or epoch is asked for.
#[derive(Default)]
pub struct Order {
    of: Option<(u64, usize)>,
    lines: Vec<u32>,
}

impl Order {
    /// The line that comes as number `at` in the epoch, of `count` lines.
    pub fn line(&mut self, seed: u64, epoch: usize, at: usize, count: usize) -> usize {
        if self.of != Some((seed, epoch)) {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..16].copy_from_slice(&(epoch as u64).to_le_bytes());
            self.lines = (0..count as u32).collect();
            self.lines.shuffle(&mut ChaCha8Rng::from_seed(key));
            self.of = Some((seed, epoch));
        }
        self.lines[at] as usize
    }
}
