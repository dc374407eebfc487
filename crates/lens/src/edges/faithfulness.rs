//! How much of a behaviour some edges carry.

use headlight_heads::Interval;
use serde::Serialize;

use super::effects::mean;
use crate::bootstrap::{RESAMPLES, resamples_of};

/// `(mean m(circuit) − mean m(corrupted)) / (mean m(clean) − mean m(corrupted))`, a ratio of means:
/// 0 if the circuit does nothing, 1 if it does all. It need not grow with the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Faithfulness {
    /// The ratio.
    pub share: f64,
    /// By bootstrap over pairs.
    #[serde(flatten)]
    pub interval: Interval,
}

impl Faithfulness {
    /// From the metric of each pair with the circuit, in the clean and in the corrupted run.
    ///
    /// ```
    /// use headlight_lens::Faithfulness;
    ///
    /// let (clean, corrupted) = ([4.0, 6.0], [0.0, 2.0]);
    /// let half = Faithfulness::of(&[2.0, 4.0], &clean, &corrupted);
    /// assert_eq!((half.share, half.interval.low, half.interval.high), (0.5, 0.5, 0.5));
    /// ```
    #[must_use]
    pub fn of(circuit: &[f64], clean: &[f64], corrupted: &[f64]) -> Self {
        let (mut above, mut below) = ([0.0; RESAMPLES], [0.0; RESAMPLES]);
        for (pair, counts) in resamples_of(circuit.len()).iter().enumerate() {
            let (kept, all) = (
                circuit[pair] - corrupted[pair],
                clean[pair] - corrupted[pair],
            );
            for ((above, below), count) in above.iter_mut().zip(&mut below).zip(counts) {
                *above += kept * count;
                *below += all * count;
            }
        }
        let mut shares: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        shares.sort_by(f64::total_cmp);
        let at = |quantile: f64| shares[(quantile * (RESAMPLES - 1) as f64).round() as usize];
        Self {
            share: (mean(circuit) - mean(corrupted)) / (mean(clean) - mean(corrupted)),
            interval: Interval {
                low: at(0.025),
                high: at(0.975),
            },
        }
    }
}
