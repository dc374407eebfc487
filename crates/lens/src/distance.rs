//! How far back does a head look?
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

use headlight_heads::Score;
use headlight_vector::{Kernel, LANES, dot, vectorised};

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// [`ScoreName::MeanDistance`](headlight_heads::ScoreName::MeanDistance), every head's mean
/// attention distance `Σ_k A[q, k] (q − k)`, in tokens, over the queries q ≥ 1.
///
/// The ceiling is the mean of the furthest that a query sees (without a window q, all weight on the
/// first token), the null, uniform attention, half of it. The interval is a 95 % bootstrap over
/// sequences.
///
/// # Panics
/// If queries see keys after themselves.
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
    pattern.assert_causal();
    let queries = 1..pattern.length();
    let furthest: usize = queries
        .clone()
        .map(|query| pattern.seen(query).len() - 1)
        .sum();
    let ceiling = furthest as f64 / queries.len().max(1) as f64;
    // Distances from the last query; those from an earlier one begin further on. Zeros fill the
    // last vector up.
    let mut back: Vec<f32> = (0..pattern.length())
        .rev()
        .map(|distance| distance as f32)
        .collect();
    back.resize(pattern.length() + LANES, 0.0);
    let of_head = |head| {
        let of_sequence = |sequence| Share {
            sum: vectorised(Distances {
                pattern,
                sequence,
                head,
                back: &back,
            }),
            rows: queries.len(),
        };
        let shares: Vec<Share> = (0..pattern.sequences()).map(of_sequence).collect();
        Score {
            value: mean(&shares).unwrap_or(f64::NAN),
            null: ceiling / 2.0,
            ceiling,
            interval: interval_of_ratio(&shares),
        }
    };
    (0..pattern.n_heads()).map(of_head).collect()
}

/// `Σ_q Σ_k A[q, k] (q − k)` of a head in one sequence.
struct Distances<'a> {
    pattern: LayerPattern<'a>,
    sequence: usize,
    head: usize,
    back: &'a [f32],
}

impl Kernel for Distances<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let length = self.pattern.length();
        let of_query = |query: usize| {
            let seen = self.pattern.row_to(self.sequence, self.head, query);
            f64::from(dot(seen, &self.back[length - 1 - query..][..seen.len()]))
        };
        (1..length).map(of_query).sum()
    }
}
