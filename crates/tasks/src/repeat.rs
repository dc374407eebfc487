//! `repeat`: a block of random tokens, again and again. To continue it, find the last occurrence of
//! the current token and copy what followed: the induction task (Olsson et al. 2022).

use headlight_run::RepeatConfig;
use rand::RngExt;

use super::{RowKey, Sequence, Task, Vocabulary, symbols::symbols};

/// A prefix of `U[prefix]` uniform tokens, then a block of `U[block]` uniform tokens, repeated to
/// the end.
///
/// Scored is every target from the second token of the second copy on: there the answer follows
/// from the context, while the first token of the second copy cannot be foreseen.
#[derive(Debug, Clone)]
pub struct Repeat {
    /// The tokens that are drawn.
    tokens: Vec<u32>,
    prefix: [usize; 2],
    block: [usize; 2],
    n_ctx: usize,
}

impl Repeat {
    /// The task for sequences of `n_ctx` inputs.
    #[must_use]
    pub fn new(config: &RepeatConfig, n_ctx: usize) -> Self {
        Self {
            tokens: (0..config.vocabulary as u32).collect(),
            prefix: config.prefix,
            block: config.block,
            n_ctx,
        }
    }

    /// The task on which roles are read: `tokens`, each as often as any other, with prefix and block
    /// jittered in proportion to the length, so that no position gives the answer away.
    #[must_use]
    pub fn probe(tokens: Vec<u32>, n_ctx: usize) -> Self {
        Self {
            tokens,
            prefix: [0, n_ctx / 8],
            block: [(n_ctx / 8).max(1), (3 * n_ctx / 8).max(1)],
            n_ctx,
        }
    }

    /// `−ln P(target | tokens before)` for each target, over the (prefix, block) pairs that
    /// `counts` at this target.
    fn predictions(
        &self,
        sequence: &Sequence,
        counts: impl Fn(usize, usize, usize) -> bool,
    ) -> Vec<f64> {
        let uniform = 1.0 / self.tokens.len() as f64;
        let mut weights: Vec<((usize, usize), f64)> = self
            .hypotheses()
            .map(|hypothesis| (hypothesis, 1.0))
            .collect();
        let mut losses = Vec::with_capacity(self.n_ctx);
        for (position, &token) in sequence.tokens.iter().enumerate() {
            let (mut total, mut predicted) = (0.0, 0.0);
            for ((prefix, block), weight) in &mut weights {
                let likelihood = if position < *prefix + *block {
                    uniform
                } else {
                    f64::from(u8::from(sequence.tokens[position - *block] == token))
                };
                if position > 0 && counts(position, *prefix, *block) {
                    total += *weight;
                    predicted += *weight * likelihood;
                }
                *weight *= likelihood;
            }
            if position > 0 {
                losses.push(-(predicted / total).ln());
            }
            // Keep the weights from vanishing over a long sequence.
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            for (_, weight) in &mut weights {
                *weight /= sum;
            }
        }
        losses
    }

    fn hypotheses(&self) -> impl Iterator<Item = (usize, usize)> {
        let [least, most] = self.block;
        (self.prefix[0]..=self.prefix[1])
            .flat_map(move |prefix| (least..=most).map(move |block| (prefix, block)))
    }
}

impl Task for Repeat {
    fn vocabulary(&self) -> Vocabulary {
        let largest = self.tokens.iter().max().copied().unwrap_or(0);
        Vocabulary::of_names(symbols(largest as usize + 1))
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let prefix = rng.random_range(self.prefix[0]..=self.prefix[1]);
        let block = rng.random_range(self.block[0]..=self.block[1]);
        let mut tokens: Vec<u32> = (0..prefix + block)
            .map(|_| self.tokens[rng.random_range(0..self.tokens.len() as u32) as usize])
            .collect();
        for position in prefix + block..=self.n_ctx {
            tokens.push(tokens[position - block]);
        }
        tokens.truncate(self.n_ctx + 1);
        let scored = (1..=self.n_ctx)
            .map(|target| target > prefix + block)
            .collect();
        Sequence { tokens, scored }
    }

    /// Exact Bayes over all (prefix, block) pairs, which are equally likely before the first token.
    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        Some(self.predictions(sequence, |_, _, _| true))
    }

    /// At a scored target only the pairs count under which it is scored: that the second copy has
    /// begun is known.
    fn floor_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        Some(self.predictions(sequence, |target, prefix, block| {
            !sequence.scored[target - 1] || target > prefix + block
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Use, batch, mean_scored};

    fn main_job() -> Repeat {
        Repeat::new(&RepeatConfig::default(), 64)
    }

    #[test]
    fn the_block_comes_back_until_the_end() {
        let task = main_job();
        for row in 0..200 {
            let sequence = task.sequence(RowKey {
                seed: 1,
                usage: Use::Training,
                step: 5,
                row,
            });
            assert_eq!((sequence.tokens.len(), sequence.scored.len()), (65, 64));
            // The first scored target is token prefix + block + 1; from there on some period of the
            // allowed ones holds.
            let first = sequence.scored.iter().position(|&scored| scored).unwrap() + 1;
            assert!(sequence.scored[first - 1..].iter().all(|&scored| scored));
            let holds = |block: usize| {
                (first - 1..=64).all(|t| sequence.tokens[t] == sequence.tokens[t - block])
            };
            assert!((8..=24).any(holds));
        }
    }

    #[test]
    fn bayes_pays_ln_64_on_the_first_copy_and_little_where_scored() {
        let task = main_job();
        let sequences = batch(&task, 0, Use::Validation, 0, 2000);
        let losses = sequences
            .iter()
            .map(|sequence| task.bayes_losses(sequence).unwrap());
        let bayes = mean_scored(&sequences, losses);
        assert!((bayes - 0.016).abs() < 0.002, "{bayes}");
        let losses = sequences
            .iter()
            .map(|sequence| task.floor_losses(sequence).unwrap());
        let floor = mean_scored(&sequences, losses);
        assert!((floor - 0.0017).abs() < 0.0005, "{floor}");
        // The first 8 targets belong to the first copy under every hypothesis.
        for sequence in &sequences[..50] {
            for loss in &task.bayes_losses(sequence).unwrap()[..7] {
                assert!((loss - 64f64.ln()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_bayes_predictor_is_a_distribution() {
        // Summed over every possible next token, its probabilities are 1.
        let task = Repeat::new(
            &RepeatConfig {
                vocabulary: 3,
                prefix: [0, 2],
                block: [2, 4],
            },
            10,
        );
        for row in 0..20 {
            let sequence = task.sequence(RowKey {
                seed: 3,
                usage: Use::Training,
                step: 0,
                row,
            });
            for target in 1..=10 {
                let total: f64 = (0..3)
                    .map(|token| {
                        let mut changed = sequence.clone();
                        changed.tokens[target] = token;
                        changed.tokens.truncate(target + 1);
                        (-task.bayes_losses(&changed).unwrap()[target - 1]).exp()
                    })
                    .sum();
                assert!((total - 1.0).abs() < 1e-9, "{total}");
            }
        }
    }

    #[test]
    fn a_row_is_a_function_of_its_key() {
        let task = main_job();
        let key = RowKey {
            seed: 9,
            usage: Use::Training,
            step: 17,
            row: 3,
        };
        assert_eq!(task.sequence(key), task.sequence(key));
        for other in [
            RowKey { seed: 8, ..key },
            RowKey {
                usage: Use::Validation,
                ..key
            },
            RowKey { step: 18, ..key },
            RowKey { row: 4, ..key },
        ] {
            assert_ne!(task.sequence(key), task.sequence(other));
        }
    }
}
