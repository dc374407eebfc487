//! How far gradients agree with patching.

use headlight_lens::{auroc, rank_correlation};

use super::found::{Agreement, MeasuredEdge, MeasuredPart, Similarity};

/// A thing is important if it moves m by this share of its difference between the prompts.
pub(super) const IMPORTANT: f64 = 0.01;

/// Of the edges and parts that are patched besides; `None` without such an edge. `gap` is m clean − m
/// corrupted.
pub(super) fn agreement(
    edges: &[MeasuredEdge],
    parts: &[MeasuredPart],
    gap: f64,
) -> Option<Agreement> {
    let mut of_edges = Vec::new();
    for edge in edges {
        if let Some(exact) = edge.exact {
            of_edges.push([edge.effect.mean, exact.mean]);
        }
    }
    let mut of_parts = Vec::new();
    for part in parts {
        if let Some(exact) = part.exact {
            of_parts.push([part.effect.mean, exact.mean]);
        }
    }
    Some(Agreement {
        edges: similarity(&of_edges, gap)?,
        parts: similarity(&of_parts, gap),
    })
}

/// Of effects, each estimated and patched; `None` of none.
fn similarity(effects: &[[f64; 2]], gap: f64) -> Option<Similarity> {
    if effects.is_empty() {
        return None;
    }
    let estimated: Vec<f64> = effects
        .iter()
        .map(|[estimated, _]| estimated.abs())
        .collect();
    let patched: Vec<f64> = effects.iter().map(|[_, patched]| patched.abs()).collect();
    let least = IMPORTANT * gap.abs();
    let is_important: Vec<bool> = patched.iter().map(|&size| size >= least).collect();
    Some(Similarity {
        count: effects.len(),
        rank_correlation: rank_correlation(&estimated, &patched),
        important: is_important.iter().filter(|&&important| important).count(),
        auroc: auroc(&estimated, &is_important),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_and_small_effects_are_the_misses() {
        // Of a gap of 100, the first two move m by 1 or more.
        let effects = [[-9.0, 50.0], [2.0, -1.0], [3.0, 0.9], [0.0, 0.0]];
        let found = similarity(&effects, -100.0).unwrap();
        assert_eq!((found.count, found.important), (4, 2));
        // 9 is above 3 and 0, 2 only above 0.
        assert_eq!(found.auroc, Some(0.75));
        // Ranks 4 2 3 1 and 4 3 2 1.
        assert!((found.rank_correlation.unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(similarity(&[], 1.0), None);
        let all = similarity(&[[1.0, 1.0], [2.0, 2.0]], 1.0).unwrap();
        assert_eq!(all.auroc, None);
    }
}
