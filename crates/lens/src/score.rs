//! Head scores: value, uniform null, ceiling and interval.

use headlight_run::{Score, Scores};
use headlight_vector::{Kernel, LANES, entropy as entropy_of, vectorised};

use crate::{
    Measure,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// The name of the entropy score, `−Σ A ln A / ln(q + 1)` for q ≥ 1: 0 when a head looks at one key, 1 (null and ceiling
/// at once) when it looks at all equally. It says how sharp a head is, not at what it looks, so it is no role.
pub const ENTROPY: &str = "entropy";

/// The patterns of the heads of one layer, `[batch, heads, queries, keys]` row by row, queries = keys.
#[derive(Debug, Clone, Copy)]
pub struct LayerPattern<'a> {
    n_heads: usize,
    length: usize,
    weights: &'a [f32],
}

impl<'a> LayerPattern<'a> {
    /// # Panics
    /// If the number of weights is not `batch · n_heads · length²`.
    #[must_use]
    pub fn new([batch, n_heads, length]: [usize; 3], weights: &'a [f32]) -> Self {
        assert_eq!(
            weights.len(),
            batch * n_heads * length * length,
            "patterns of {batch} sequences, {n_heads} heads, length {length}"
        );
        Self { n_heads, length, weights }
    }

    /// The number of heads.
    pub(crate) fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// The number of queries, and of keys.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.weights.len() / (self.n_heads * self.length * self.length).max(1)
    }

    /// The weights of one query on all keys.
    pub(crate) fn row(&self, sequence: usize, head: usize, query: usize) -> &'a [f32] {
        let row = (sequence * self.n_heads + head) * self.length + query;
        &self.weights[row * self.length..][..self.length]
    }
}

/// Scores every head of a layer on every measure that the sequences allow, and on [`ENTROPY`].
///
/// A measure without a single row (no token occurs twice, say) is left out. The interval is a 95 % bootstrap over
/// sequences, the same for the same input.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_lens::{LayerPattern, score_layer};
///
/// // One head, one sequence of 2 tokens: the second token attends to the first with weight 0.9.
/// let scores = score_layer(LayerPattern::new([1, 1, 2], &[1.0, 0.0, 0.9, 0.1]), &[vec![4, 5]]);
/// let previous = scores[0]["previous token"];
/// assert!((previous.value - 0.9).abs() < 1e-6);
/// assert_eq!(previous.null, 0.5);
/// assert!(!scores[0].contains_key("induction"));
/// ```
#[must_use]
pub fn score_layer(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<Scores> {
    assert!(
        tokens.iter().all(|row| row.len() == pattern.length)
            && tokens.len() * pattern.n_heads * pattern.length * pattern.length == pattern.weights.len(),
        "{} sequences do not fit the patterns",
        tokens.len()
    );
    let mut scores: Vec<Scores> = (0..pattern.n_heads).map(|head| entropy(&pattern, head, tokens.len())).collect();
    for measure in Measure::ALL {
        let targets = |sequence: usize, q| Some(measure.targets(&tokens[sequence], q)).filter(|keys| !keys.is_empty());
        let Some(measured) = score_targets(&pattern, targets) else { continue };
        for (scores, score) in scores.iter_mut().zip(measured) {
            scores.insert(measure.name().to_owned(), score);
        }
    }
    scores
}

/// The entropy of a head's rows, each divided by that of uniform attention; a single row says nothing.
fn entropy(pattern: &LayerPattern, head: usize, sequences: usize) -> Scores {
    let most: Vec<f64> = (0..pattern.length).map(|q| ((q + 1) as f64).ln()).collect();
    let of_sequence = |sequence| Share {
        sum: vectorised(Entropies { pattern, sequence, head, most: &most }),
        rows: pattern.length.saturating_sub(1),
    };
    let shares: Vec<Share> = (0..sequences).map(of_sequence).collect();
    let Some(value) = mean(&shares) else { return Scores::new() };
    let (low, high) = interval_of_ratio(&shares);
    Scores::from([(ENTROPY.to_owned(), Score { value, null: 1.0, ceiling: 1.0, low, high })])
}

/// The entropies of a head's rows in one sequence, each over the most it can be, summed for q ≥ 1.
struct Entropies<'a> {
    pattern: &'a LayerPattern<'a>,
    sequence: usize,
    head: usize,
    most: &'a [f64],
}

impl Kernel for Entropies<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sum = 0.0;
        for q in 1..self.pattern.length {
            let row = self.pattern.row(self.sequence, self.head, q);
            // A whole number of vectors; what a causal query cannot see is 0 and adds nothing.
            let seen = &row[..(q + 1).next_multiple_of(LANES).min(row.len())];
            sum += f64::from(entropy_of(seen)) / self.most[q];
        }
        sum
    }
}

/// Every head's mean weight on the target keys, over the queries that count: those for which `targets`, given sequence
/// and query, gives any, be it an empty list. `None` if none counts.
pub(crate) fn score_targets(
    pattern: &LayerPattern,
    targets: impl Fn(usize, usize) -> Option<Vec<usize>>,
) -> Option<Vec<Score>> {
    let rows = |sequence| (0..pattern.length).filter_map(|q| Some((q, targets(sequence, q)?))).collect();
    let targets: Vec<Vec<(usize, Vec<usize>)>> = (0..pattern.sequences()).map(rows).collect();
    let shares = |weight: &dyn Fn(usize, usize, &[usize]) -> f64| -> Vec<Share> {
        let of_sequence = |(sequence, rows): (usize, &Vec<(usize, Vec<usize>)>)| Share {
            sum: rows.iter().map(|(q, targets)| weight(sequence, *q, targets)).sum(),
            rows: rows.len(),
        };
        targets.iter().enumerate().map(of_sequence).collect()
    };
    let null = mean(&shares(&|_, q, targets| targets.len() as f64 / (q + 1) as f64))?;
    let of_head = |head| {
        let shares = shares(&|sequence, q, targets| {
            let row = pattern.row(sequence, head, q);
            targets.iter().map(|&key| f64::from(row[key])).sum()
        });
        let (low, high) = interval_of_ratio(&shares);
        Score { value: mean(&shares).unwrap_or(f64::NAN), null, ceiling: 1.0, low, high }
    };
    Some((0..pattern.n_heads).map(of_head).collect())
}
