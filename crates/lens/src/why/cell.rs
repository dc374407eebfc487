//! Cells of a pattern, and what the score of a cell is compared with.

use std::str::FromStr;

use headlight_heads::Measure;
use serde::Serialize;

use crate::{LayerPattern, target_weights::Targets};

/// A query and the keys that it is asked about: one, or all targets of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The position of the query.
    pub query: usize,
    /// The positions of the keys.
    pub keys: Vec<usize>,
}

/// `[sequence]`: a cell for each query that sees a target of `measure` and another key beside it.
///
/// # Panics
/// If `tokens` are not those of the pattern.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{Cell, LayerPattern, target_cells};
///
/// let pattern = [0.0; 16]; // one sequence, one head, four tokens
/// let pattern = LayerPattern::new([1, 1, 4], &pattern);
/// let cells = target_cells(Measure::Induction, &pattern, &[vec![7, 8, 9, 7]]);
/// assert_eq!(cells, [[Cell { query: 3, keys: vec![1] }]]);
/// ```
#[must_use]
pub fn target_cells(
    measure: Measure,
    pattern: &LayerPattern,
    tokens: &[Vec<u32>],
) -> Vec<Vec<Cell>> {
    let targets = Targets::of(measure, pattern, tokens);
    let mut cells = Vec::new();
    for sequence in 0..pattern.sequences() {
        let mut of_sequence = Vec::new();
        for query in 0..pattern.length() {
            let keys: Vec<usize> = targets.keys(sequence, query).collect();
            let seen = pattern.counted(query).len();
            if !keys.is_empty() && keys.len() < seen {
                of_sequence.push(Cell { query, keys });
            }
        }
        cells.push(of_sequence);
    }
    cells
}

/// What is taken off the score of a cell: softmax decides by differences of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// The scores of the other keys, weighted as the head weights them:
    /// `score(i, j) − Σ_{k≠j} A[i, k]/(1 − A[i, j])·score(i, k)`.
    #[default]
    Attention,
    /// The mean score of the other keys that the query sees.
    Uniform,
    /// Nothing.
    None,
}

impl Contrast {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Attention, Self::Uniform, Self::None];

    /// As it is written on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Uniform => "uniform",
            Self::None => "none",
        }
    }
}

impl std::fmt::Display for Contrast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Contrast {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL
            .into_iter()
            .find(|contrast| contrast.name() == name);
        known.ok_or_else(|| format!("{name} is none of attention, uniform and none"))
    }
}

/// By which the scores of one query are multiplied: what is asked about is their sum.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coefficients {
    /// `[key]`, for the keys of the cell.
    pub asked: Vec<f64>,
    /// `[key]`, for a visible key drawn at random in place of those of the cell.
    pub random: Vec<f64>,
}

impl Coefficients {
    /// Those of a cell, from the scores of its query, −∞ where masked.
    ///
    /// Several keys are weighted as the head weights them among each other.
    ///
    /// # Panics
    /// If the query does not see a key of the cell, or sees no other key.
    pub fn of(cell: &Cell, scores: &[f32], contrast: Contrast) -> Self {
        let is_asked = |key: usize| cell.keys.contains(&key);
        let sees = |key: usize| scores[key] > f32::NEG_INFINITY;
        let others = |key: usize| sees(key) && !is_asked(key);
        assert!(
            cell.keys.iter().all(|&key| sees(key)),
            "query {} does not see all of the keys {:?}",
            cell.query,
            cell.keys
        );
        assert!(
            contrast == Contrast::None || (0..scores.len()).any(others),
            "query {} sees no other key",
            cell.query
        );
        let mut asked = softmax_over(scores, is_asked);
        let mut random = uniform_over(scores.len(), others);
        let taken_off = match contrast {
            Contrast::Attention => softmax_over(scores, others),
            Contrast::Uniform => random.clone(),
            Contrast::None => vec![0.0; scores.len()],
        };
        for (key, off) in taken_off.into_iter().enumerate() {
            asked[key] -= off;
            random[key] -= off;
        }
        Self { asked, random }
    }
}

/// Softmax of the scores of some keys; 0 at the others.
fn softmax_over(scores: &[f32], of: impl Fn(usize) -> bool) -> Vec<f64> {
    let scores = scores.iter().enumerate();
    let scores: Vec<f64> = scores
        .map(|(key, &score)| {
            if of(key) {
                f64::from(score)
            } else {
                f64::NEG_INFINITY
            }
        })
        .collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// The same weight for some keys; 0 at the others.
fn uniform_over(length: usize, of: impl Fn(usize) -> bool) -> Vec<f64> {
    let count = (0..length).filter(|&key| of(key)).count();
    let weight = |key| if of(key) { 1.0 / count as f64 } else { 0.0 };
    (0..length).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASKED: f32 = f32::NEG_INFINITY;

    fn one(query: usize, key: usize) -> Cell {
        Cell {
            query,
            keys: vec![key],
        }
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
    }

    #[test]
    fn other_keys_are_weighted_as_the_head_weights_them() {
        // Weights 1 : 3 : 1 of the keys 0, 1 and 2.
        let scores = [0.0, 3f32.ln(), 0.0, MASKED];
        let found = Coefficients::of(&one(2, 2), &scores, Contrast::Attention);
        assert_near(&found.asked, &[-0.25, -0.75, 1.0, 0.0]);
        assert_near(&found.random, &[0.25, -0.25, 0.0, 0.0]);
        let found = Coefficients::of(&one(2, 2), &scores, Contrast::Uniform);
        assert_near(&found.asked, &[-0.5, -0.5, 1.0, 0.0]);
        assert_near(&found.random, &[0.0; 4]);
        let found = Coefficients::of(&one(2, 2), &scores, Contrast::None);
        assert_near(&found.asked, &[0.0, 0.0, 1.0, 0.0]);
        // Two targets share the weight as the head shares it.
        let both = Cell {
            query: 2,
            keys: vec![1, 2],
        };
        let found = Coefficients::of(&both, &scores, Contrast::Attention);
        assert_near(&found.asked, &[-1.0, 0.75, 0.25, 0.0]);
    }

    #[test]
    fn a_pattern_that_is_saturated_still_has_a_contrast() {
        // 1 − A[i, j] is 0 in f32: the others are weighted by their scores all the same.
        let scores = [0.0, 0.0, 1000.0];
        let found = Coefficients::of(&one(2, 2), &scores, Contrast::Attention);
        assert_near(&found.asked, &[-0.5, -0.5, 1.0]);
    }
}
