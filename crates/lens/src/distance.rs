//! How far back does a head look?

use headlight_run::Score;

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// The score's name in files and tables.
pub const MEAN_DISTANCE: &str = "mean distance";

/// Every head's mean attention distance `Σ_k A[q, k] (q − k)`, in tokens, over the queries q ≥ 1.
///
/// The ceiling is the mean of q (all weight on the first token), the null, uniform attention, half of it. The
/// interval is a 95 % bootstrap over sequences.
///
/// ```
/// use headlight_lens::{LayerPattern, mean_distance};
///
/// // One head, one sequence of 3 tokens: distances 1·1 and 0.5·2 + 0.5·0, their mean 1.
/// let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.5];
/// let distance = mean_distance(LayerPattern::new([1, 1, 3], &weights))[0];
/// assert_eq!((distance.value, distance.null, distance.ceiling), (1.0, 0.75, 1.5));
/// ```
#[must_use]
pub fn mean_distance(pattern: LayerPattern) -> Vec<Score> {
    let ceiling = pattern.length() as f64 / 2.0;
    let of_head = |head| {
        let of_sequence = |sequence| {
            let of_query = |query: usize| -> f64 {
                let row = pattern.row(sequence, head, query);
                row[..=query].iter().rev().enumerate().map(|(back, weight)| back as f64 * f64::from(*weight)).sum()
            };
            let queries = 1..pattern.length();
            Share { rows: queries.len(), sum: queries.map(of_query).sum() }
        };
        let shares: Vec<Share> = (0..pattern.sequences()).map(of_sequence).collect();
        let (low, high) = interval_of_ratio(&shares);
        Score { value: mean(&shares).unwrap_or(f64::NAN), null: ceiling / 2.0, ceiling, low, high }
    };
    (0..pattern.n_heads()).map(of_head).collect()
}
