//! How far do accuracies differ? The same sequences stand on both sides, so their difference is far
//! surer than each of them.

use burn::tensor::Tensor;
use headlight_heads::Interval;
use headlight_residual::{AnyProbe, Probed};

use crate::{Behaviour, Estimate, bootstrap::Share};

/// How many scored targets of each sequence are the likeliest token, in one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Rights(Vec<f64>);

impl Behaviour {
    /// Runs the model past `probe` and counts. The model must not be on an autodiff device.
    #[must_use]
    pub fn rights(&self, model: &dyn Probed, probe: &mut dyn AnyProbe) -> Rights {
        let scores = model.next_token_scores(self.inputs(), self.asked(), probe);
        let right = scores.right * self.scored();
        Rights(right.sum_dim(1).into_data().iter::<f64>().collect())
    }

    /// `Σ factor·accuracy` with its 95 % interval, by bootstrap over sequences that are drawn for
    /// all terms together: with factors 1 and −1 a difference of two accuracies.
    ///
    /// # Panics
    /// If a term is of another number of sequences.
    #[must_use]
    pub fn combined(&self, terms: &[(f64, &Rights)]) -> Estimate {
        let of_sequence = |(sequence, &rows): (usize, &usize)| Share {
            sum: terms
                .iter()
                .map(|(factor, rights)| factor * rights.0[sequence])
                .sum(),
            rows,
        };
        let scored = self.scored_in_row();
        Estimate::of(
            &scored
                .iter()
                .enumerate()
                .map(of_sequence)
                .collect::<Vec<_>>(),
        )
    }

    /// The accuracy at each position in one pass past `probe`, with the interval of a share: at one
    /// position each sequence is one trial. None where fewer than `least` targets are scored.
    #[must_use]
    pub fn accuracy_by_position(
        &self,
        model: &dyn Probed,
        probe: &mut dyn AnyProbe,
        least: usize,
    ) -> Vec<Option<Estimate>> {
        let scores = model.next_token_scores(self.inputs(), self.asked(), probe);
        let right = scores.right * self.scored();
        let right = counts_by_position(right);
        let scored = counts_by_position(self.scored());
        let mut accuracy = Vec::new();
        for (right, scored) in right.into_iter().zip(scored) {
            accuracy.push((scored >= least).then(|| Estimate {
                mean: right as f64 / scored as f64,
                interval: Interval::of_share(right, scored),
            }));
        }
        accuracy
    }
}

/// The sum over sequences of zeros and ones, `[batch, outputs]`.
fn counts_by_position(flags: Tensor<2>) -> Vec<usize> {
    let counts = flags.sum_dim(0).into_data();
    counts.iter::<f64>().map(|count| count as usize).collect()
}

/// What is lost through two interventions, alone and together.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Joint {
    /// The accuracy that each costs alone.
    pub alone: [Estimate; 2],
    /// The accuracy that both cost together.
    pub together: Estimate,
    /// `together − alone[0] − alone[1]`. Above 0, each does what the other can do too: tests of one
    /// at a time miss the work that they share. Below 0, both are links of one chain.
    pub interaction: Estimate,
}

impl Joint {
    /// From one pass without any intervention, with each alone, and with both.
    #[must_use]
    pub fn of(
        behaviour: &Behaviour,
        untouched: &Rights,
        alone: [&Rights; 2],
        both: &Rights,
    ) -> Self {
        let cost = |rights| behaviour.combined(&[(1.0, untouched), (-1.0, rights)]);
        let [first, second] = alone;
        Self {
            alone: alone.map(cost),
            together: cost(both),
            interaction: behaviour.combined(&[
                (1.0, first),
                (1.0, second),
                (-1.0, both),
                (-1.0, untouched),
            ]),
        }
    }
}
