//! `dyck`: well-nested brackets of several kinds. Which kind closes next is the kind of the last
//! bracket still open, which may stand far back with closed pairs in between: to find it is to
//! count depth (Hewitt et al. 2020).

use headlight_run::DyckConfig;
use rand::RngExt;

use super::{RowKey, Sequence, Task, Vocabulary};

/// A walk in depth from 0 back to 0: where both are possible, a bracket opens or closes with
/// probability ½; an opening one is of a uniform kind. Scored are the closing brackets.
#[derive(Debug, Clone)]
pub struct Dyck {
    kinds: u32,
    depth: usize,
    length: usize,
}

impl Dyck {
    /// The task for sequences of `n_ctx` inputs.
    #[must_use]
    pub fn new(config: &DyckConfig, n_ctx: usize) -> Self {
        Self {
            kinds: config.kinds as u32,
            depth: config.depth,
            length: n_ctx + 1,
        }
    }

    /// The probability that the bracket at `position` opens when `depth` are open.
    fn opens(&self, position: usize, depth: usize) -> f64 {
        match (
            depth < self.depth && depth < self.length - position,
            depth > 0,
        ) {
            (true, true) => 0.5,
            (may_open, _) => f64::from(u8::from(may_open)),
        }
    }

    /// Even tokens open, odd ones close.
    fn is_opening(token: u32) -> bool {
        token.is_multiple_of(2)
    }
}

impl Task for Dyck {
    fn vocabulary(&self) -> Vocabulary {
        let names = ["(", ")", "[", "]", "{", "}", "<", ">"]
            .into_iter()
            .take(2 * self.kinds as usize)
            .map(String::from)
            .collect();
        Vocabulary::of_names(names)
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let mut open = Vec::with_capacity(self.depth);
        let tokens: Vec<u32> = (0..self.length)
            .map(|position| {
                let opens = rng.random::<f64>() < self.opens(position, open.len());
                match (opens, open.pop()) {
                    (false, Some(bracket)) => bracket + 1,
                    (_, last) => {
                        open.extend(last);
                        open.push(2 * rng.random_range(0..self.kinds));
                        open[open.len() - 1]
                    }
                }
            })
            .collect();
        let scored = tokens[1..]
            .iter()
            .map(|&token| !Self::is_opening(token))
            .collect();
        Sequence { tokens, scored }
    }

    /// Whether it opens or closes; if it opens, its kind as well. The kind of a closing bracket is
    /// certain.
    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut depth = 1;
        let mut losses = Vec::new();
        for (target, &token) in sequence.tokens.iter().enumerate().skip(1) {
            let opens = self.opens(target, depth);
            if Self::is_opening(token) {
                depth += 1;
                losses.push(-(opens / f64::from(self.kinds)).ln());
            } else {
                depth -= 1;
                losses.push(-(1.0 - opens).ln());
            }
        }
        Some(losses)
    }

    /// At a scored target it is known that a bracket closes: nothing is left to pay.
    fn floor_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut losses = self.bayes_losses(sequence)?;
        for (loss, &scored) in losses.iter_mut().zip(&sequence.scored) {
            if scored {
                *loss = 0.0;
            }
        }
        Some(losses)
    }

    /// At a scored target the last open bracket closes; at any other a bracket of any kind opens.
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let any_kind = 1.0 / f64::from(self.kinds);
        let of_target = |&scored: &bool| if scored { 1.0 } else { any_kind };
        Some(sequence.scored.iter().map(of_target).collect())
    }

    /// Some closing bracket.
    fn chance(&self) -> f64 {
        1.0 / f64::from(self.kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Use, batch};

    fn default() -> Dyck {
        Dyck::new(&DyckConfig::default(), 63)
    }

    #[test]
    fn brackets_nest_end_closed_and_stay_within_the_depth() {
        let mut deepest = 0;
        for sequence in batch(&default(), 0, Use::Training, 1, 200) {
            let mut open = Vec::new();
            for (position, &token) in sequence.tokens.iter().enumerate() {
                if token % 2 == 0 {
                    open.push(token);
                } else {
                    assert_eq!(open.pop(), Some(token - 1), "closes what was opened last");
                }
                deepest = deepest.max(open.len());
                assert!(position == 0 || sequence.scored[position - 1] == (token % 2 == 1));
            }
            assert!(open.is_empty());
            assert_eq!(sequence.tokens.len(), 64);
        }
        assert_eq!(deepest, 6);
    }

    #[test]
    fn the_best_guess_knows_what_closes_and_not_what_opens() {
        let task = Dyck::new(&DyckConfig { kinds: 2, depth: 2 }, 3);
        let sequence = Sequence {
            tokens: vec![0, 0, 1, 1],
            scored: vec![false, true, true],
        };
        assert_eq!(task.best_accuracies(&sequence), Some(vec![0.5, 1.0, 1.0]));
    }

    #[test]
    fn the_bayes_predictor_is_a_distribution_over_sequences() {
        // The probabilities of all words of length 6, depth at most 2 and two kinds add up to 1.
        let task = Dyck::new(&DyckConfig { kinds: 2, depth: 2 }, 5);
        let mut words: Vec<(Vec<u32>, Vec<u32>)> = vec![(vec![], vec![])];
        for _ in 0..6 {
            words = words
                .into_iter()
                .flat_map(|(word, open)| {
                    let opened = [0, 2].map(|token| {
                        (
                            [word.clone(), vec![token]].concat(),
                            [open.clone(), vec![token]].concat(),
                        )
                    });
                    let closed = open
                        .split_last()
                        .map(|(last, open)| ([word, vec![last + 1]].concat(), open.to_vec()));
                    opened
                        .into_iter()
                        .chain(closed)
                        .filter(|(_, open)| open.len() <= 2)
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        let total: f64 = words
            .into_iter()
            .filter(|(_, open)| open.is_empty())
            .map(|(tokens, _)| {
                let sequence = Sequence {
                    tokens,
                    scored: vec![],
                };
                // The first bracket opens and is one of two kinds.
                0.5 * (-task.bayes_losses(&sequence).unwrap().iter().sum::<f64>()).exp()
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}
