//! How far back does a head look?
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

use headlight_heads::Score;
use headlight_vector::{Kernel, LANES, Simd, dot, vectorised};

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
    attention_distances(pattern).heads
}

/// How far back the heads of a layer look.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerDistances {
    /// The [`mean_distance`] of each head.
    pub heads: Vec<Score>,
    /// The mean of all heads. The interval is a bootstrap over sequences, in which all heads of a
    /// sequence are drawn together.
    pub layer: Score,
}

/// The [`mean_distance`] of each head of a layer, and of all together.
///
/// # Panics
/// If queries see keys after themselves.
///
/// ```
/// use headlight_lens::{LayerPattern, attention_distances};
///
/// // One sequence of 2 tokens: the first head looks at itself, the second one back.
/// let weights = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
/// let layer = attention_distances(LayerPattern::new([1, 2, 2], &weights)).layer;
/// assert_eq!((layer.value, layer.null, layer.ceiling), (0.5, 0.5, 1.0));
/// ```
#[must_use]
pub fn attention_distances(pattern: LayerPattern) -> LayerDistances {
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
    let score = |shares: &[Share]| Score {
        value: mean(shares).unwrap_or(f64::NAN),
        null: ceiling / 2.0,
        ceiling,
        interval: interval_of_ratio(shares),
    };
    let mut heads = Vec::new();
    let mut of_layer = vec![Share::default(); pattern.sequences()];
    for head in 0..pattern.n_heads() {
        let mut of_head = Vec::new();
        for (sequence, of_layer) in of_layer.iter_mut().enumerate() {
            let distances = Distances {
                pattern,
                sequence,
                head,
                back: &back,
            };
            let share = Share {
                sum: vectorised(distances),
                rows: queries.len(),
            };
            of_layer.sum += share.sum;
            of_layer.rows += share.rows;
            of_head.push(share);
        }
        heads.push(score(&of_head));
    }
    LayerDistances {
        heads,
        layer: score(&of_layer),
    }
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
    fn run<S: Simd>(self, simd: S) -> f64 {
        let length = self.pattern.length();
        let of_query = |query: usize| {
            let seen = self.pattern.row_to(self.sequence, self.head, query);
            f64::from(dot(
                simd,
                seen,
                &self.back[length - 1 - query..][..seen.len()],
            ))
        };
        (1..length).map(of_query).sum()
    }
}
