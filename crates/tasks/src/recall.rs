//! `recall`: key–value pairs, then keys to be answered with their values: multi-query associative
//! recall (Arora et al. 2023, "Zoology"). A key stands beside its value, not in it, so one layer
//! has to bring the two together before another can look the key up; one layer alone knows the
//! values of the context and not which is meant.

use headlight_run::RecallConfig;
use rand::{RngExt, seq::index};

use super::{Optimum, RowKey, Sequence, Shortcut, Task, Vocabulary, symbols::symbols};

/// `pairs` different keys, each followed by a uniform value; then, to the end, uniform ones of
/// these keys, each followed by its value. Scored are the values after the queries.
///
/// Queries are drawn with replacement: if each key came once, the answers so far would rule values
/// out, and a model that binds nothing would be right in 34 % of all cases by elimination, not in 1
/// of 8.
#[derive(Debug, Clone)]
pub struct Recall {
    keys: usize,
    values: usize,
    pairs: usize,
    n_ctx: usize,
}

impl Recall {
    /// The task for sequences of `n_ctx` inputs.
    #[must_use]
    pub fn new(config: &RecallConfig, n_ctx: usize) -> Self {
        Self {
            keys: config.keys,
            values: config.values,
            pairs: config.pairs,
            n_ctx,
        }
    }
}

impl Recall {
    /// `ln` of the number of choices for each target: the keys not yet seen, any value, any of the
    /// pairs, and no choice at all.
    fn losses_of_choices(&self, tokens: usize) -> Vec<f64> {
        let mut losses = Vec::new();
        for target in 1..tokens {
            let is_pair = target < 2 * self.pairs;
            let is_key = target % 2 == 0;
            losses.push(match (is_pair, is_key) {
                (true, true) => ((self.keys - target / 2) as f64).ln(),
                (true, false) => (self.values as f64).ln(),
                (false, true) => (self.pairs as f64).ln(),
                (false, false) => 0.0,
            });
        }
        losses
    }
}

impl Task for Recall {
    /// Keys are written `k0`, `k1`, …; values have names of their own.
    fn vocabulary(&self) -> Vocabulary {
        let names = (0..self.keys)
            .map(|key| format!("k{key}"))
            .chain(symbols(self.values))
            .collect();
        Vocabulary::of_names(names)
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let keys = index::sample(&mut rng, self.keys, self.pairs);
        let pairs: Vec<[u32; 2]> = keys
            .iter()
            .map(|key| [key, self.keys + rng.random_range(0..self.values)].map(|id| id as u32))
            .collect();
        let mut tokens = pairs.concat();
        while tokens.len() <= self.n_ctx {
            tokens.extend(pairs[rng.random_range(0..self.pairs)]);
        }
        tokens.truncate(self.n_ctx + 1);
        let scored = (1..=self.n_ctx)
            .map(|target| target > 2 * self.pairs && target % 2 == 1)
            .collect();
        Sequence { tokens, scored }
    }

    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        Some(self.losses_of_choices(sequence.tokens.len()))
    }

    /// One of the choices.
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let losses = self.losses_of_choices(sequence.tokens.len());
        Some(losses.into_iter().map(|loss| (-loss).exp()).collect())
    }

    fn optimum(&self) -> Option<Optimum> {
        Some(Optimum {
            name: "a look-up",
            nats: 0.0,
        })
    }

    /// Any value of the context.
    fn chance(&self) -> f64 {
        1.0 / self.pairs as f64
    }

    /// Each value as often as it came in the context.
    fn shortcut(&self, sequence: &Sequence) -> Option<Shortcut> {
        let values: Vec<u32> = sequence.tokens[1..2 * self.pairs]
            .iter()
            .copied()
            .step_by(2)
            .collect();
        let mut losses = self.losses_of_choices(sequence.tokens.len());
        for (input, loss) in losses.iter_mut().enumerate() {
            if sequence.scored[input] {
                let target = sequence.tokens[input + 1];
                let count = values.iter().filter(|&&value| value == target).count();
                *loss = -(count as f64 / self.pairs as f64).ln();
            }
        }
        Some(Shortcut {
            name: "any value of the context".into(),
            losses: losses.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{Use, batch};

    #[test]
    fn every_query_is_answered_with_the_value_of_its_key() {
        let task = Recall::new(&RecallConfig::default(), 31);
        for sequence in batch(&task, 2, Use::Training, 3, 200) {
            assert_eq!(
                (
                    sequence.tokens.len(),
                    sequence.scored.iter().filter(|&&scored| scored).count()
                ),
                (32, 8)
            );
            let (pairs, queries) = sequence.tokens.split_at(16);
            let values: HashMap<u32, u32> =
                pairs.chunks(2).map(|pair| (pair[0], pair[1])).collect();
            assert_eq!(values.len(), 8, "keys are different");
            assert!(
                values
                    .iter()
                    .all(|(&key, &value)| key < 32 && (32..64).contains(&value))
            );
            assert!(queries.chunks(2).all(|query| values[&query[0]] == query[1]));
            // Scored are exactly the targets at which a query is the input.
            for (input, &scored) in sequence.scored.iter().enumerate() {
                assert_eq!(scored, input >= 16 && sequence.tokens[input] < 32);
            }
        }
    }

    #[test]
    fn losses_by_hand() {
        let task = Recall::new(
            &RecallConfig {
                keys: 4,
                values: 5,
                pairs: 2,
            },
            7,
        );
        let sequence = task.sequence(RowKey {
            seed: 0,
            usage: Use::Training,
            step: 0,
            row: 0,
            rows: 1,
        });
        let choices = [5, 3, 5, 2, 1, 2, 1];
        for (loss, choices) in task.bayes_losses(&sequence).unwrap().iter().zip(choices) {
            assert!((loss - f64::from(choices).ln()).abs() < 1e-12);
        }
    }
}
