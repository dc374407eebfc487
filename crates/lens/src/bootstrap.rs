//! How sure is a mean? Draw the sequences again, with replacement (Efron & Tibshirani 1993, chapter
//! 13).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use headlight_heads::Interval;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

pub(crate) const RESAMPLES: usize = 400;

/// What one sequence contributes to a mean: the sum over its rows and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Share {
    pub sum: f64,
    pub rows: usize,
}

/// A mean and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean over all rows.
    pub mean: f64,
    /// By bootstrap over sequences.
    #[serde(flatten)]
    pub interval: Interval,
}

impl Estimate {
    /// The mean of one value for each sequence.
    ///
    /// ```
    /// use headlight_heads::Interval;
    /// use headlight_lens::Estimate;
    ///
    /// let certain = Estimate::of_values(&[0.5; 20]);
    /// assert_eq!((certain.mean, certain.interval), (0.5, Interval::point(0.5)));
    /// ```
    #[must_use]
    pub fn of_values(values: &[f64]) -> Self {
        Self::of(
            &values
                .iter()
                .map(|&sum| Share { sum, rows: 1 })
                .collect::<Vec<_>>(),
        )
    }

    /// `Σ of / Σ over`, with one number of each for each sequence: a share of what could be had, which
    /// sequences with little to have cannot spoil. NaN if nothing could be had.
    ///
    /// ```
    /// use headlight_lens::Estimate;
    ///
    /// let half = Estimate::of_ratio(&[1.0, 0.5, 0.0], &[2.0, 1.0, 0.0]);
    /// assert_eq!((half.mean, half.interval.low, half.interval.high), (0.5, 0.5, 0.5));
    /// ```
    ///
    /// # Panics
    /// If there are not as many numbers.
    #[must_use]
    pub fn of_ratio(of: &[f64], over: &[f64]) -> Self {
        assert_eq!(of.len(), over.len(), "numbers of a ratio");
        let terms = of.iter().copied().zip(over.iter().copied());
        Self {
            mean: of.iter().sum::<f64>() / over.iter().sum::<f64>(),
            interval: interval_of_terms(terms, |over| over != 0.0),
        }
    }

    /// `Σ sum / Σ rows`; NaN without any row.
    pub(crate) fn of(shares: &[Share]) -> Self {
        Self {
            mean: mean(shares).unwrap_or(f64::NAN),
            interval: interval_of_ratio(shares),
        }
    }
}

/// `Σ sum / Σ rows`, `None` without any row.
pub(crate) fn mean(shares: &[Share]) -> Option<f64> {
    let rows: usize = shares.iter().map(|share| share.rows).sum();
    (rows > 0).then(|| shares.iter().map(|share| share.sum).sum::<f64>() / rows as f64)
}

/// The 95 % percentile interval of `Σ sum / Σ rows` over sequences.
pub(crate) fn interval_of_ratio(shares: &[Share]) -> Interval {
    let terms = shares.iter().map(|share| (share.sum, share.rows as f64));
    interval_of_terms(terms, |rows| rows > 0.0)
}

/// The same of `Σ first / Σ second`, where the sum of the second `counts`.
fn interval_of_terms(
    terms: impl ExactSizeIterator<Item = (f64, f64)>,
    counts: impl Fn(f64) -> bool,
) -> Interval {
    // All resamples side by side: one sum after the other would wait for each addition.
    let (mut sums, mut rows) = ([0.0; RESAMPLES], [0.0; RESAMPLES]);
    let resamples = resamples_of(terms.len());
    for ((first, second), drawn) in terms.zip(resamples.iter()) {
        for ((sum, rows), count) in sums.iter_mut().zip(&mut rows).zip(drawn) {
            *sum += first * count;
            *rows += second * count;
        }
    }
    let drawn = sums.iter().zip(rows).filter(|(_, rows)| counts(*rows));
    let mut means: Vec<f64> = drawn.map(|(sum, rows)| sum / rows).collect();
    means.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let index = (quantile * (means.len().max(1) - 1) as f64).round() as usize;
        means.get(index).copied().unwrap_or(f64::NAN)
    };
    Interval {
        low: at(0.025),
        high: at(0.975),
    }
}

/// How often each of `count` sequences is drawn in each resample: the same for every head and every
/// call, so that differences come from the data alone. Drawn once and kept, since scores come by
/// the hundred.
pub(crate) fn resamples_of(count: usize) -> Arc<[[f64; RESAMPLES]]> {
    static KEPT: Mutex<BTreeMap<usize, Arc<[[f64; RESAMPLES]]>>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let draw = || {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut counts = vec![[0.0; RESAMPLES]; count];
        for resample in 0..RESAMPLES {
            for _ in 0..count {
                counts[rng.random_range(0..count)][resample] += 1.0;
            }
        }
        counts.into()
    };
    Arc::clone(kept.entry(count).or_insert_with(draw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sequences_leave_no_doubt() {
        let shares = vec![Share { sum: 1.5, rows: 3 }; 20];
        assert_eq!(interval_of_ratio(&shares), Interval::point(0.5));
    }

    #[test]
    fn the_interval_has_the_width_of_the_central_limit() {
        // 400 sequences of one row, half 0 and half 1: standard error 0.5/√400 = 0.025, 95 % is ±
        // 0.049.
        let shares: Vec<Share> = (0..400)
            .map(|i| Share {
                sum: f64::from(i % 2),
                rows: 1,
            })
            .collect();
        let Interval { low, high } = interval_of_ratio(&shares);
        assert!(
            (low - 0.451).abs() < 0.01 && (high - 0.549).abs() < 0.01,
            "{low} {high}"
        );
    }
}
