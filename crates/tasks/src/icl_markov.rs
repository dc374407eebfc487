//! `icl_markov`: every sequence is a Markov chain with a matrix of its own, so what follows a state
//! must be counted in the context. On the way a model first learns how often each state comes
//! (unigrams), then what follows which (Edelman et al. 2024, "The Evolution of Statistical
//! Induction Heads").

use headlight_run::IclMarkovConfig;
use rand::RngExt;

use super::{
    RowKey, Sequence, Shortcut, Task, Vocabulary,
    markov::{dirichlet_matrix, draw, largest, stationary_distribution},
    symbols::symbols,
};

/// `x_0 ~ π`, `x_{t+1} ~ P(· | x_t)`; the rows of P are Dirichlet(α), drawn anew for each sequence,
/// and πP = π. Scored is every target.
#[derive(Debug, Clone)]
pub struct IclMarkov {
    states: usize,
    concentration: f64,
    n_ctx: usize,
}

impl IclMarkov {
    /// The task for sequences of `n_ctx` inputs.
    #[must_use]
    pub fn new(config: &IclMarkovConfig, n_ctx: usize) -> Self {
        Self {
            states: config.states,
            concentration: config.concentration,
            n_ctx,
        }
    }

    /// `−ln (n_j + α)/(n + kα)` for each target j, with counts kept for each context that `context`
    /// tells apart by the current token.
    fn counting_losses(&self, sequence: &Sequence, context: impl Fn(usize) -> usize) -> Vec<f64> {
        let mut counts = vec![vec![self.concentration; self.states]; self.states];
        let mut losses = Vec::with_capacity(self.n_ctx);
        for pair in sequence.tokens.windows(2) {
            let row = &mut counts[context(pair[0] as usize)];
            let next = pair[1] as usize;
            losses.push(-(row[next] / row.iter().sum::<f64>()).ln());
            row[next] += 1.0;
        }
        losses
    }
}

impl Task for IclMarkov {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names(symbols(self.states))
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let transition = dirichlet_matrix(self.states, self.concentration, &mut rng);
        let mut tokens = vec![draw(&stationary_distribution(&transition), rng.random())];
        for position in 0..self.n_ctx {
            tokens.push(draw(&transition[tokens[position] as usize], rng.random()));
        }
        Sequence {
            tokens,
            scored: vec![true; self.n_ctx],
        }
    }

    /// The Dirichlet posterior mean: `P(j | i) = (n_ij + α)/(n_i + kα)`, n counting the transitions
    /// so far.
    ///
    /// What the first token alone says about P, being drawn from its stationary distribution, is
    /// left out: it has no closed form.
    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        Some(self.counting_losses(sequence, |current| current))
    }

    /// `max_j (n_ij + α)/(n_i + kα)`
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut counts = vec![vec![self.concentration; self.states]; self.states];
        let mut best = Vec::with_capacity(self.n_ctx);
        for pair in sequence.tokens.windows(2) {
            let row = &mut counts[pair[0] as usize];
            best.push(largest(row) / row.iter().sum::<f64>());
            row[pair[1] as usize] += 1.0;
        }
        Some(best)
    }

    /// How often each state came, whatever the current one is.
    fn shortcut(&self, sequence: &Sequence) -> Option<Shortcut> {
        Some(Shortcut {
            name: "unigram counts".into(),
            losses: self.counting_losses(sequence, |_| 0).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Use, batch, markov::entropy_rate, mean_scored};

    fn three_states() -> IclMarkov {
        IclMarkov::new(&IclMarkovConfig::default(), 100)
    }

    #[test]
    fn twenty_thousand_chains_cost_what_is_known() {
        let task = three_states();
        let sequences = batch(&task, 0, Use::Validation, 0, 20_000);
        let bayes = mean_scored(
            &sequences,
            sequences
                .iter()
                .map(|sequence| task.bayes_losses(sequence).unwrap()),
        );
        assert!((bayes - 0.885).abs() < 0.005, "{bayes}");
        let unigram = mean_scored(
            &sequences,
            sequences
                .iter()
                .map(|sequence| task.shortcut(sequence).unwrap().losses),
        );
        assert!((unigram - 1.004).abs() < 0.005, "{unigram}");
        // The first numbers of a row's generator make its matrix.
        let entropy = |row| {
            let key = RowKey {
                seed: 0,
                usage: Use::Validation,
                step: 0,
                row,
                rows: 1,
            };
            let transition = dirichlet_matrix(3, 1.0, &mut key.rng());
            entropy_rate(&transition, &stationary_distribution(&transition))
        };
        let entropy = (0..20_000).map(entropy).sum::<f64>() / 20_000.0;
        assert!((entropy - 0.818).abs() < 0.005, "{entropy}");
    }

    #[test]
    fn the_first_prediction_is_uniform_and_later_ones_count() {
        let task = IclMarkov::new(&IclMarkovConfig::default(), 4);
        let sequence = Sequence {
            tokens: vec![0, 1, 0, 1, 2],
            scored: vec![true; 4],
        };
        // 0→1 was seen once when it comes again; 1→0 once, and 1→2 not yet.
        let expected = [1.0 / 3.0, 1.0 / 3.0, 2.0 / 4.0, 1.0 / 4.0];
        for (loss, probability) in task.bayes_losses(&sequence).unwrap().iter().zip(expected) {
            assert!((loss + f64::ln(probability)).abs() < 1e-12);
        }
        // After 0→1 and 1→0 were seen once, the state seen is the best guess, with 2 of 4.
        let best = [1.0 / 3.0, 1.0 / 3.0, 2.0 / 4.0, 2.0 / 4.0];
        assert_eq!(task.best_accuracies(&sequence), Some(best.into()));
    }

    #[test]
    fn a_row_is_the_same_on_every_thread() {
        let task = three_states();
        let here = batch(&task, 5, Use::Training, 7, 64);
        let there: Vec<Sequence> = std::thread::scope(|scope| {
            let row = |row| {
                task.sequence(RowKey {
                    seed: 5,
                    usage: Use::Training,
                    step: 7,
                    row,
                    rows: 1,
                })
            };
            let threads: Vec<_> = (0..64)
                .rev()
                .map(|index| scope.spawn(move || row(index)))
                .collect();
            threads
                .into_iter()
                .rev()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(here, there);
    }
}
