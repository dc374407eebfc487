//! Bigram-Backcopy (Guo et al. 2024, arXiv 2410.13835), as a task of one's own. After a trigger comes
//! the token before it once more; after any other token comes one that is drawn by this token alone.
//!
//! ```sh
//! cargo run --bin own_task -- train examples/own_task/backcopy.toml
//! ```

use std::process::ExitCode;

use headlight::Program;
use headlight::own::{Error, FromKeys, RowKey, Sequence, Task, Vocabulary};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    /// The start, 0, then the triggers, then the others.
    vocabulary: usize,
    triggers: usize,
    /// What the probabilities follow from.
    chain: u64,
    /// `false` is the negative control: what comes after a trigger is drawn by the trigger alone.
    backcopy: bool,
}

struct Backcopy {
    keys: Keys,
    n_ctx: usize,
    chain: Vec<Vec<f64>>, // [token][next]: the probability of the next token
}

impl Backcopy {
    /// The probability of each token after these.
    fn next(&self, tokens: &[u32]) -> Vec<f64> {
        let last = tokens[tokens.len() - 1] as usize;
        let mut next = self.chain[last].clone();
        if self.keys.backcopy && (1..=self.keys.triggers).contains(&last) {
            next.fill(0.0);
            next[tokens[tokens.len() - 2] as usize] = 1.0;
        }
        next
    }
}

impl FromKeys for Backcopy {
    type Keys = Keys;

    fn from_keys(keys: Keys, n_ctx: usize, _seed: u64) -> Result<Self, Error> {
        if keys.triggers == 0 || keys.vocabulary < keys.triggers + 2 {
            let message = "must be at least 1, and at least 2 less than task.vocabulary";
            return Err(Error::config(message)
                .key("task.triggers")
                .value(keys.triggers));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(keys.chain);
        let mut chain = vec![vec![0.0; keys.vocabulary]; keys.vocabulary];
        for (token, row) in chain.iter_mut().enumerate() {
            // No sequence starts with a trigger, and none starts twice.
            let first = if token == 0 { keys.triggers + 1 } else { 1 };
            row[first..].fill_with(|| -rng.random_range(1e-9..1.0f64).ln());
            let sum: f64 = row.iter().sum();
            *row = row.iter().map(|weight| weight / sum).collect();
        }
        Ok(Self { keys, n_ctx, chain })
    }
}

impl Task for Backcopy {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names((0..self.keys.vocabulary).map(|id| id.to_string()).collect())
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let mut tokens = vec![0];
        while tokens.len() <= self.n_ctx {
            let (next, mut left) = (self.next(&tokens), rng.random_range(0.0..1.0));
            let drawn = next.iter().position(|p| {
                left -= p;
                left < 0.0
            });
            tokens.push(drawn.unwrap_or(self.keys.vocabulary - 1) as u32);
        }
        let scored = vec![true; self.n_ctx];
        Sequence { tokens, scored }
    }

    /// Exact: the sequence is drawn from these probabilities.
    fn bayes_losses(&self, Sequence { tokens, .. }: &Sequence) -> Option<Vec<f64>> {
        let loss = |at: usize| (1.0 / self.next(&tokens[..at])[tokens[at] as usize]).ln();
        Some((1..tokens.len()).map(loss).collect())
    }
}

fn main() -> ExitCode {
    Program::new().task::<Backcopy>("backcopy").run()
}
