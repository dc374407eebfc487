//! Which edges come first, and how sure that is.

use std::collections::BTreeSet;

use super::{Effects, effects::mean};
use crate::bootstrap::resamples_of;

/// Bootstraps whose edges are compared with each other.
const COMPARED: usize = 50;

/// The edges by the size of their mean effect, the largest first. Edges without any effect stand at
/// the end in the order of the graph.
#[must_use]
pub fn ranked(effects: &Effects) -> Vec<usize> {
    let means: Vec<f64> = effects.means().iter().map(|effect| effect.abs()).collect();
    by_size(&effects.edges, &means)
}

/// The edges by importance, the largest first: those that work against the answer come last.
#[must_use]
pub(super) fn ranked_by_importance(effects: &Effects) -> Vec<usize> {
    let importances: Vec<f64> = (0..effects.edges.len())
        .map(|place| effects.importance(place))
        .collect();
    by_size(&effects.edges, &importances)
}

/// How far the `count` first edges depend on the pairs: the mean Jaccard index of those of two
/// bootstraps over pairs. Of as many random edges it is about `count / (2·all − count)`.
#[must_use]
pub fn stability(effects: &Effects, count: usize) -> f64 {
    let pairs = effects.by_pair.first().map_or(0, Vec::len);
    let resamples = resamples_of(pairs);
    let mut chosen: Vec<BTreeSet<usize>> = Vec::with_capacity(COMPARED);
    for resample in 0..COMPARED {
        let sum = |values: &Vec<f64>| {
            let weighted = values.iter().zip(resamples.iter());
            let sum: f64 = weighted
                .map(|(value, counts)| value * counts[resample])
                .sum();
            sum.abs()
        };
        let sizes: Vec<f64> = effects.by_pair.iter().map(sum).collect();
        let first = by_size(&effects.edges, &sizes).into_iter().take(count);
        chosen.push(first.collect());
    }
    let mut indices = Vec::new();
    for (at, one) in chosen.iter().enumerate() {
        indices.extend(chosen[at + 1..].iter().map(|other| jaccard(one, other)));
    }
    mean(&indices)
}

/// `|a ∩ b| / |a ∪ b|`; 1 for two empty sets.
///
/// ```
/// use headlight_lens::jaccard;
///
/// assert_eq!(jaccard(&[1, 2, 3].into(), &[2, 3, 4].into()), 0.5);
/// ```
#[must_use]
pub fn jaccard(one: &BTreeSet<usize>, other: &BTreeSet<usize>) -> f64 {
    let union = one.union(other).count();
    if union == 0 {
        return 1.0;
    }
    one.intersection(other).count() as f64 / union as f64
}

fn by_size(edges: &[usize], sizes: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
    order.into_iter().map(|place| edges[place]).collect()
}
