//! `lagged_markov`: the next token depends on the token *before* the current one. The current token
//! alone says nothing, so a model must learn to look one back: the smallest task that makes a
//! previous-token head.

use headlight_run::LaggedMarkovConfig;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Optimum, RowKey, Sequence, Task, Vocabulary,
    markov::{dirichlet_matrix, draw, entropy_rate, largest, stationary_distribution},
    symbols::symbols,
};

/// `x_{t+1} ~ P(· | x_{t−1})`, started from the stationary distribution; the rows of P are
/// Dirichlet, fixed by the run's seed. Scored is every target that has such a predecessor.
#[derive(Debug, Clone)]
pub struct LaggedMarkov {
    transition: Vec<Vec<f64>>,
    stationary: Vec<f64>,
    n_ctx: usize,
}

impl LaggedMarkov {
    /// The chain of this seed.
    ///
    /// # Panics
    /// If the concentration is not positive and finite; a checked configuration's is.
    #[must_use]
    pub fn new(config: &LaggedMarkovConfig, n_ctx: usize, seed: u64) -> Self {
        let transition = dirichlet_matrix(
            config.states,
            config.concentration,
            &mut ChaCha8Rng::seed_from_u64(seed),
        );
        let stationary = stationary_distribution(&transition);
        Self {
            transition,
            stationary,
            n_ctx,
        }
    }

    /// `H(x_{t+1} | x_{t−1}) = −Σ_i π_i Σ_j P_ij ln P_ij`
    #[must_use]
    pub fn conditional_entropy(&self) -> f64 {
        entropy_rate(&self.transition, &self.stationary)
    }

    /// Of the target at a position from 1 on, given all tokens before it.
    fn distribution(&self, sequence: &Sequence, target: usize) -> &[f64] {
        match target {
            1 => &self.stationary,
            _ => &self.transition[sequence.tokens[target - 2] as usize],
        }
    }
}

impl Task for LaggedMarkov {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names(symbols(self.stationary.len()))
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let mut tokens: Vec<u32> = Vec::with_capacity(self.n_ctx + 1);
        for position in 0..=self.n_ctx {
            let distribution = match position {
                0 | 1 => &self.stationary,
                _ => &self.transition[tokens[position - 2] as usize],
            };
            tokens.push(draw(distribution, rng.random()));
        }
        Sequence {
            tokens,
            scored: (0..self.n_ctx).map(|input| input >= 1).collect(),
        }
    }

    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut losses = Vec::new();
        for target in 1..sequence.tokens.len() {
            let distribution = self.distribution(sequence, target);
            losses.push(-distribution[sequence.tokens[target] as usize].ln());
        }
        Some(losses)
    }

    /// `max_j P_ij`, i being the token before the current one.
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut best = Vec::new();
        for target in 1..sequence.tokens.len() {
            best.push(largest(self.distribution(sequence, target)));
        }
        Some(best)
    }

    fn optimum(&self) -> Option<Optimum> {
        Some(Optimum {
            name: "conditional entropy",
            nats: self.conditional_entropy(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Use, batch, mean_scored};

    #[test]
    fn the_best_guess_is_right_as_often_as_its_row_says() {
        // After state 0 comes state 1 with 0.9, after state 1 state 0 with 0.6.
        let task = LaggedMarkov {
            transition: vec![vec![0.1, 0.9], vec![0.6, 0.4]],
            stationary: vec![0.4, 0.6],
            n_ctx: 3,
        };
        let sequence = Sequence {
            tokens: vec![0, 1, 1, 0],
            scored: vec![false, true, true],
        };
        // The first target has no token two back: the stationary distribution decides.
        let expected = Some(vec![0.6, 0.9, 0.6]);
        assert_eq!(task.best_accuracies(&sequence), expected);
    }

    #[test]
    fn the_best_predictor_pays_the_conditional_entropy() {
        let task = LaggedMarkov::new(&LaggedMarkovConfig::default(), 64, 4);
        let sequences = batch(&task, 4, Use::Validation, 0, 4000);
        let losses = sequences
            .iter()
            .map(|sequence| task.bayes_losses(sequence).unwrap());
        let paid = mean_scored(&sequences, losses);
        let entropy = task.conditional_entropy();
        assert!((paid - entropy).abs() < 0.01, "{paid} against {entropy}");
    }
}
