//! How sure is a mean? Draw the sequences again, with replacement (Efron & Tibshirani 1993, chapter 13).

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RESAMPLES: usize = 400;

/// What one sequence contributes to a mean: the sum over its rows and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Share {
    pub sum: f64,
    pub rows: usize,
}

/// The 95 % percentile interval of `Σ sum / Σ rows` over sequences.
pub(crate) fn interval_of_ratio(shares: &[Share]) -> (f64, f64) {
    // The same draws for every head and every call: differences come from the data alone.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let (mut sum, mut rows) = (0.0, 0);
            for _ in 0..shares.len() {
                let share = shares[rng.random_range(0..shares.len())];
                sum += share.sum;
                rows += share.rows;
            }
            (rows > 0).then(|| sum / rows as f64)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let index = (quantile * (means.len().max(1) - 1) as f64).round() as usize;
        means.get(index).copied().unwrap_or(f64::NAN)
    };
    (at(0.025), at(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sequences_leave_no_doubt() {
        let shares = vec![Share { sum: 1.5, rows: 3 }; 20];
        assert_eq!(interval_of_ratio(&shares), (0.5, 0.5));
    }

    #[test]
    fn the_interval_has_the_width_of_the_central_limit() {
        // 400 sequences of one row, half 0 and half 1: standard error 0.5/√400 = 0.025, 95 % is ± 0.049.
        let shares: Vec<Share> = (0..400).map(|i| Share { sum: f64::from(i % 2), rows: 1 }).collect();
        let (low, high) = interval_of_ratio(&shares);
        assert!((low - 0.451).abs() < 0.01 && (high - 0.549).abs() < 0.01, "{low} {high}");
    }
}
