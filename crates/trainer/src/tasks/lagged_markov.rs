//! `lagged_markov`: the next token depends on the token *before* the current one. The current token alone says
//! nothing, so a model must learn to look one back: the smallest task that makes a previous-token head.

use headlight_run::LaggedMarkovConfig;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};

use super::{RowKey, Sequence, Task, symbols};

/// `x_{t+1} ~ P(· | x_{t−1})`, started from the stationary distribution; the rows of P are Dirichlet, fixed by the
/// run's seed. Scored is every target that has such a predecessor.
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
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let gamma = Gamma::new(config.concentration, 1.0).expect("a positive finite concentration");
        let transition: Vec<Vec<f64>> = (0..config.states)
            .map(|_| {
                // Dirichlet: independent gammas, normalised. The floor keeps every transition possible.
                let row: Vec<f64> = (0..config.states).map(|_| gamma.sample(&mut rng).max(1e-6)).collect();
                let sum: f64 = row.iter().sum();
                row.into_iter().map(|weight| weight / sum).collect()
            })
            .collect();
        let stationary = stationary_distribution(&transition);
        Self { transition, stationary, n_ctx }
    }

    /// `H(x_{t+1} | x_{t−1}) = −Σ_i π_i Σ_j P_ij ln P_ij`
    #[must_use]
    pub fn conditional_entropy(&self) -> f64 {
        let row_entropy = |row: &Vec<f64>| -row.iter().map(|p| p * p.ln()).sum::<f64>();
        self.stationary.iter().zip(&self.transition).map(|(weight, row)| weight * row_entropy(row)).sum()
    }
}

impl Task for LaggedMarkov {
    fn vocabulary(&self) -> Vec<String> {
        symbols(self.stationary.len())
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
        Sequence { tokens, scored: (0..self.n_ctx).map(|input| input >= 1).collect() }
    }

    fn bayes_losses(&self, sequence: &Sequence) -> Vec<f64> {
        (1..sequence.tokens.len())
            .map(|target| {
                let distribution = match target {
                    1 => &self.stationary,
                    _ => &self.transition[sequence.tokens[target - 2] as usize],
                };
                -distribution[sequence.tokens[target] as usize].ln()
            })
            .collect()
    }

    fn optimum(&self) -> Option<(&'static str, f64)> {
        Some(("conditional entropy", self.conditional_entropy()))
    }
}

/// The outcome whose part of [0, 1) holds `uniform`.
fn draw(distribution: &[f64], uniform: f64) -> u32 {
    let mut left = uniform;
    for (outcome, probability) in distribution.iter().enumerate() {
        left -= probability;
        if left < 0.0 {
            return outcome as u32;
        }
    }
    distribution.len() as u32 - 1
}

/// π with πP = π, by elimination of states without subtraction (Grassmann, Taksar & Heyman 1985): no cancellation,
/// however sharp the rows are.
fn stationary_distribution(transition: &[Vec<f64>]) -> Vec<f64> {
    let n = transition.len();
    let mut p = transition.to_vec();
    for last in (1..n).rev() {
        let leaves: f64 = p[last][..last].iter().sum();
        for row in 0..last {
            p[row][last] /= leaves;
            for column in 0..last {
                p[row][column] += p[row][last] * p[last][column];
            }
        }
    }
    let mut stationary = vec![1.0; n];
    for state in 1..n {
        stationary[state] = (0..state).map(|before| stationary[before] * p[before][state]).sum();
    }
    let sum: f64 = stationary.iter().sum();
    stationary.iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Use, batch, mean_scored};

    #[test]
    fn the_stationary_distribution_stays() {
        for seed in 0..20 {
            let task = LaggedMarkov::new(&LaggedMarkovConfig { states: 16, concentration: 0.05 }, 8, seed);
            for state in 0..16 {
                let after: f64 = (0..16).map(|before| task.stationary[before] * task.transition[before][state]).sum();
                assert!((after - task.stationary[state]).abs() < 1e-12, "seed {seed}, state {state}");
            }
        }
    }

    #[test]
    fn two_states_by_hand() {
        // π = (b, a)/(a + b) for leaving probabilities a and b.
        let stationary = stationary_distribution(&[vec![0.9, 0.1], vec![0.3, 0.7]]);
        assert!((stationary[0] - 0.75).abs() < 1e-12);
    }

    #[test]
    fn the_best_predictor_pays_the_conditional_entropy() {
        let task = LaggedMarkov::new(&LaggedMarkovConfig::default(), 64, 4);
        let paid = mean_scored(&batch(&task, 4, Use::Validation, 0, 4000), |sequence| task.bayes_losses(sequence));
        let entropy = task.conditional_entropy();
        assert!((paid - entropy).abs() < 0.01, "{paid} against {entropy}");
    }
}
