//! A head's scores query by query: a mean over positions hides a head that does one thing on the
//! first positions and another on the rest.

use std::collections::BTreeMap;

use headlight_heads::{Measure, Score};

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
    target_weights::Targets,
};

/// The scores of one head by measure, each by query position; none where no sequence has a target
/// there.
pub type ScoresByPosition = BTreeMap<Measure, Vec<Option<Score>>>;

/// Every head's score on each measure at each query position: the mean over the sequences that
/// have a target there. The null is uniform attention on the same rows, the ceiling is 1, the
/// interval is a 95 % bootstrap over sequences at this position alone.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, scores_by_position};
///
/// // One head, three tokens: query 1 looks one back, query 2 at itself.
/// let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
/// let pattern = LayerPattern::new([1, 1, 3], &weights);
/// let scores = &scores_by_position(pattern, &[vec![4, 5, 6]])[0];
/// let previous = &scores[&Measure::PreviousToken];
/// assert!(previous[0].is_none()); // nothing stands before the first token
/// assert_eq!(previous[1].unwrap().value, 1.0);
/// assert_eq!((previous[2].unwrap().value, previous[2].unwrap().null), (0.0, 1.0 / 3.0));
/// ```
#[must_use]
pub fn scores_by_position(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<ScoresByPosition> {
    let mut heads = vec![ScoresByPosition::new(); pattern.n_heads()];
    for measure in Measure::all() {
        let targets = Targets::of(measure, &pattern, tokens);
        for (head, scores) in heads.iter_mut().enumerate() {
            let at = |query| score_at(&targets, &pattern, head, query);
            scores.insert(measure, (0..pattern.length()).map(at).collect());
        }
    }
    heads
}

fn score_at(targets: &Targets, pattern: &LayerPattern, head: usize, query: usize) -> Option<Score> {
    let mut weights = Vec::new();
    let mut nulls = Vec::new();
    for sequence in 0..pattern.sequences() {
        if let Some(row) = targets.row(sequence, query) {
            let sum = targets.weight(pattern, head, sequence, query);
            weights.push(Share { sum, rows: 1 });
            nulls.push(Share {
                sum: row.null,
                rows: 1,
            });
        }
    }
    Some(Score {
        value: mean(&weights)?,
        null: mean(&nulls)?,
        ceiling: 1.0,
        interval: interval_of_ratio(&weights),
    })
}
