//! `modular_addition`: `a b =` is followed by a + b mod p. There are only p² such lines, and the
//! model learns from some of them: it knows these by heart long before it finds the rule and
//! answers the others (grokking, Power et al. 2022; how the rule looks inside, Nanda et al. 2023).

use headlight_run::ModularAdditionConfig;
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::{Optimum, RowKey, Sequence, Task, Use, Vocabulary};

/// All pairs (a, b), in an order fixed by the run's seed: the first are the training set, the rest
/// the validation set. Scored is the sum.
#[derive(Debug, Clone)]
pub struct ModularAddition {
    modulus: u32,
    pairs: Vec<(u32, u32)>,
    training: usize,
}

impl ModularAddition {
    /// The task with the training set of this seed.
    #[must_use]
    pub fn new(config: &ModularAdditionConfig, seed: u64) -> Self {
        let modulus = config.modulus as u32;
        let mut pairs: Vec<(u32, u32)> = (0..modulus)
            .flat_map(|a| (0..modulus).map(move |b| (a, b)))
            .collect();
        pairs.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Self {
            modulus,
            pairs,
            training: config.training_pairs(),
        }
    }
}

impl Task for ModularAddition {
    /// The numbers, and `=`.
    fn vocabulary(&self) -> Vocabulary {
        let names = (0..self.modulus)
            .map(|number| number.to_string())
            .chain(["=".to_owned()])
            .collect();
        Vocabulary::of_names(names)
    }

    /// Row n is the n-th pair of its set, at every step; after the last comes the first again.
    fn sequence(&self, row: RowKey) -> Sequence {
        let (training, validation) = self.pairs.split_at(self.training);
        let set = if row.usage == Use::Validation {
            validation
        } else {
            training
        };
        let (a, b) = set[row.row % set.len()];
        Sequence {
            tokens: vec![a, b, self.modulus, (a + b) % self.modulus],
            scored: vec![false, false, true],
        }
    }

    /// b is uniform, `=` and the sum are certain.
    fn bayes_losses(&self, _: &Sequence) -> Option<Vec<f64>> {
        Some(vec![f64::from(self.modulus).ln(), 0.0, 0.0])
    }

    fn best_accuracies(&self, _: &Sequence) -> Option<Vec<f64>> {
        Some(vec![1.0 / f64::from(self.modulus), 1.0, 1.0])
    }

    fn optimum(&self) -> Option<Optimum> {
        Some(Optimum {
            name: "the rule",
            nats: 0.0,
        })
    }

    fn chance(&self) -> f64 {
        1.0 / f64::from(self.modulus)
    }

    fn validation_rows(&self) -> usize {
        self.pairs.len() - self.training
    }

    fn training_rows(&self) -> Option<usize> {
        Some(self.training)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::batch;

    #[test]
    fn each_pair_is_trained_on_or_held_out_and_its_sum_is_right() {
        let task = ModularAddition::new(
            &ModularAdditionConfig {
                modulus: 13,
                train_share: 0.3,
            },
            4,
        );
        let training = task.training_rows().unwrap();
        assert_eq!((training, task.validation_rows()), (50, 119));
        let mut rows = batch(&task, 4, Use::Training, 1, training);
        assert_eq!(
            rows,
            batch(&task, 4, Use::Training, 2, training),
            "every step sees the whole set"
        );
        rows.extend(batch(&task, 4, Use::Validation, 0, task.validation_rows()));
        let different: HashSet<_> = rows
            .iter()
            .map(|sequence| sequence.tokens.clone())
            .collect();
        assert_eq!(different.len(), 169);
        assert!(rows.iter().all(
            |row| row.tokens[3] == (row.tokens[0] + row.tokens[1]) % 13 && row.tokens[2] == 13
        ));

        let other = ModularAddition::new(
            &ModularAdditionConfig {
                modulus: 13,
                train_share: 0.3,
            },
            5,
        );
        assert_ne!(
            rows[..training],
            batch(&other, 5, Use::Training, 1, training)[..]
        );
    }
}
