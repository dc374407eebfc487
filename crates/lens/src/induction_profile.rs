//! Does an induction head find every copy, and every key? Query position confounds both: later
//! queries have more copies before them, and keys of any position.

use headlight_heads::{Measure, Score};

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
    target_weights::Targets,
};

/// A score over fewer rows is not shown.
const FEWEST_ROWS: usize = 20;

/// The induction score of one head, apart by what query position confounds.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct InductionProfile {
    /// By the number of the copy: 2 means that the query's token stood before once. Copies with
    /// fewer than 20 queries are left out.
    pub by_copy: Vec<(usize, Score)>,
    /// By the position of the key, over queries of the second copy, which have one key. Keys with
    /// fewer than 20 queries are left out.
    pub by_key: Vec<(usize, Score)>,
}

/// The [`InductionProfile`] of every head of a layer.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_lens::{LayerPattern, induction_profile};
///
/// // In 20 sequences 7 8 7 8 7 one head attends to the earliest successor of its token.
/// let keys = [0, 0, 1, 2, 1];
/// let row = |query: usize| (0..5).map(move |key| f32::from(u8::from(key == keys[query])));
/// let weights: Vec<f32> = (0..5).flat_map(row).collect();
/// let pattern = weights.repeat(20);
/// let pattern = LayerPattern::new([20, 1, 5], &pattern);
/// let profile = &induction_profile(pattern, &vec![vec![7, 8, 7, 8, 7]; 20])[0];
/// let (copy, score) = profile.by_copy[1]; // query 4 has seen 7 twice; both successors count
/// assert!((copy, score.value) == (3, 1.0) && (score.null - 2.0 / 5.0).abs() < 1e-12);
/// let (key, score) = profile.by_key[0]; // only query 2 has one key, at 1
/// assert!((key, score.value) == (1, 1.0) && (score.null - 1.0 / 3.0).abs() < 1e-12);
/// assert_eq!(profile.by_key[1].0, 2); // query 3 looks at the 7 after the first 8
/// ```
#[must_use]
pub fn induction_profile(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<InductionProfile> {
    let targets = Targets::of(Measure::Induction, &pattern, tokens);
    (0..pattern.n_heads())
        .map(|head| of_head(&targets, &pattern, head))
        .collect()
}

fn of_head(targets: &Targets, pattern: &LayerPattern, head: usize) -> InductionProfile {
    let length = pattern.length();
    // By copy and by key: the rows of each sequence.
    let mut copies = vec![Rows::new(pattern.sequences()); length + 1];
    let mut keys = vec![Rows::new(pattern.sequences()); length];
    for sequence in 0..pattern.sequences() {
        for query in 0..length {
            let Some(row) = targets.row(sequence, query) else {
                continue;
            };
            let weight = targets.weight(pattern, head, sequence, query);
            let seen: Vec<usize> = targets.keys(sequence, query).collect();
            copies[seen.len()].add(sequence, weight, row.null);
            if let [key] = seen[..] {
                keys[key].add(sequence, weight, row.null);
            }
        }
    }
    let scores = |rows: &[Rows]| -> Vec<(usize, Score)> {
        let known = rows.iter().enumerate();
        known
            .filter_map(|(index, rows)| Some((index, rows.score()?)))
            .collect()
    };
    let by_copy = scores(&copies).into_iter();
    InductionProfile {
        by_copy: by_copy
            .map(|(earlier, score)| (earlier + 1, score))
            .collect(),
        by_key: scores(&keys),
    }
}

/// The rows of one score by sequence.
#[derive(Clone)]
struct Rows {
    weights: Vec<Share>,
    nulls: Vec<Share>,
}

impl Rows {
    fn new(sequences: usize) -> Self {
        Self {
            weights: vec![Share::default(); sequences],
            nulls: vec![Share::default(); sequences],
        }
    }

    fn add(&mut self, sequence: usize, weight: f64, null: f64) {
        for (shares, value) in [(&mut self.weights, weight), (&mut self.nulls, null)] {
            shares[sequence].sum += value;
            shares[sequence].rows += 1;
        }
    }

    fn score(&self) -> Option<Score> {
        let rows: usize = self.weights.iter().map(|share| share.rows).sum();
        if rows < FEWEST_ROWS {
            return None;
        }
        Some(Score {
            value: mean(&self.weights)?,
            null: mean(&self.nulls)?,
            ceiling: 1.0,
            interval: interval_of_ratio(&self.weights),
        })
    }
}
