//! `repeat`: a block of random tokens, again and again. To continue it, find the last occurrence of
//! the current token and copy what followed: the induction task (Olsson et al. 2022).

use std::collections::BTreeMap;

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

    /// For each target what the tokens before say of it, over the (prefix, block) pairs that
    /// `counts` at this target.
    fn predictions(
        &self,
        sequence: &Sequence,
        counts: impl Fn(usize, usize, usize) -> bool,
    ) -> Vec<Prediction> {
        let uniform = 1.0 / self.tokens.len() as f64;
        let mut weights: Vec<((usize, usize), f64)> = self
            .hypotheses()
            .map(|hypothesis| (hypothesis, 1.0))
            .collect();
        let mut predictions = Vec::with_capacity(self.n_ctx);
        for (position, &token) in sequence.tokens.iter().enumerate() {
            let mut new = 0.0;
            let mut copied = vec![0.0; self.block[1] + 1]; // by block
            for ((prefix, block), weight) in &mut weights {
                let is_new = position < *prefix + *block;
                let counts = position > 0 && counts(position, *prefix, *block);
                let counted = if counts { *weight } else { 0.0 };
                if is_new {
                    new += counted;
                    *weight *= uniform;
                } else {
                    copied[*block] += counted;
                    let again = sequence.tokens[position - *block];
                    *weight *= f64::from(u8::from(again == token));
                }
            }
            if position > 0 {
                let copied = by_token(&copied, &sequence.tokens[..position]);
                predictions.push(Prediction::of(token, new * uniform, new, &copied));
            }
            // Keep the weights from vanishing over a long sequence.
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            for (_, weight) in &mut weights {
                *weight /= sum;
            }
        }
        predictions
    }

    /// The best predictor that knows at a scored target that the second copy has begun: only the
    /// pairs count under which it is scored.
    fn knowing_what_is_scored(&self, sequence: &Sequence) -> Vec<Prediction> {
        self.predictions(sequence, |target, prefix, block| {
            !sequence.scored[target - 1] || target > prefix + block
        })
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
        let predictions = self.predictions(sequence, |_, _, _| true);
        Some(losses(&predictions))
    }

    fn floor_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        Some(losses(&self.knowing_what_is_scored(sequence)))
    }

    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let predictions = self.knowing_what_is_scored(sequence);
        Some(predictions.iter().map(|next| next.likeliest).collect())
    }
}

/// For each token the weight of the blocks under which it comes next after the tokens `before`.
fn by_token(of_blocks: &[f64], before: &[u32]) -> BTreeMap<u32, f64> {
    let mut weights = BTreeMap::new();
    for (block, &weight) in of_blocks.iter().enumerate() {
        if weight > 0.0 {
            *weights.entry(before[before.len() - block]).or_default() += weight;
        }
    }
    weights
}

/// What a predictor says of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Prediction {
    /// The probability of the target.
    target: f64,
    /// The probability of the likeliest token.
    likeliest: f64,
}

impl Prediction {
    /// `new` is the weight of the pairs under which the target is drawn, `of_each` of them for each
    /// token; `copied` is for each token the weight of the pairs under which it comes again.
    fn of(target: u32, of_each: f64, new: f64, copied: &BTreeMap<u32, f64>) -> Self {
        let total = new + copied.values().sum::<f64>();
        let most = copied.values().copied().fold(0.0, f64::max);
        let of_target = copied.get(&target).copied().unwrap_or(0.0);
        Self {
            target: (of_each + of_target) / total,
            likeliest: (of_each + most) / total,
        }
    }
}

/// `−ln P(target)`, nats.
fn losses(predictions: &[Prediction]) -> Vec<f64> {
    predictions.iter().map(|next| -next.target.ln()).collect()
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
                rows: 1,
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
    fn the_best_guess_by_hand() {
        // Blocks of one or two of three tokens, no prefix: two pairs, equally likely.
        let task = Repeat::new(
            &RepeatConfig {
                vocabulary: 3,
                prefix: [0, 0],
                block: [1, 2],
            },
            3,
        );
        let best = |tokens: [u32; 4], scored: [bool; 3]| {
            let (tokens, scored) = (tokens.into(), scored.into());
            task.best_accuracies(&Sequence { tokens, scored }).unwrap()
        };
        // A block of two: a b a b. At the first target: again a, or any of three: 1/2 + 1/2·1/3.
        // After b came, a block of one is out, so all that follows is certain.
        let [first, then, last] = best([0, 1, 0, 1], [false, false, true])[..] else {
            panic!("three targets")
        };
        assert!((first - (0.5 + 0.5 / 3.0)).abs() < 1e-12, "{first}");
        assert_eq!((then, last), (1.0, 1.0));
        // The same token four times is a block of one or two. That the second target is scored says
        // that a block of one has begun again: two of a block of two would not be past it.
        let [first, then, last] = best([0, 0, 0, 0], [false, true, true])[..] else {
            panic!("three targets")
        };
        assert!((first - (0.5 + 0.5 / 3.0)).abs() < 1e-12, "{first}");
        assert_eq!((then, last), (1.0, 1.0));
    }

    #[test]
    fn no_other_predictor_is_right_more_often_on_the_main_job() {
        // Whoever copies what followed the last occurrence of the current token is right almost as
        // often; the mean of the best guess lies between its hits and 1.
        let task = main_job();
        let sequences = batch(&task, 0, Use::Validation, 0, 500);
        let best = sequences
            .iter()
            .map(|sequence| task.best_accuracies(sequence).unwrap());
        let best = mean_scored(&sequences, best);
        let copies = sequences.iter().map(|sequence| {
            let hit = |at: usize| {
                let seen = &sequence.tokens[..at];
                let last = seen.iter().rposition(|&token| token == sequence.tokens[at]);
                let next = last.map(|last| sequence.tokens[last + 1]);
                f64::from(u8::from(next == Some(sequence.tokens[at + 1])))
            };
            (0..sequence.scored.len()).map(hit).collect::<Vec<f64>>()
        });
        let copies = mean_scored(&sequences, copies);
        assert!(copies < best && best < 1.0, "{copies}, {best}");
        assert!(best > 0.998, "{best}");
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
                rows: 1,
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
            rows: 8,
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
