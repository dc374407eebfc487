//! One tile of scores: some queries of a head against some keys.

use std::ops::Range;

use headlight_vector::{Matrix, product, tanh};

use super::Plan;

/// Rows and columns of a tile.
pub(crate) const QUERIES: usize = 64;
/// See [`QUERIES`].
pub(crate) const KEYS: usize = 256;

/// Where a tile lies.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub batch: usize,
    pub head: usize,
    pub queries: Range<usize>,
    pub keys: Range<usize>,
}

/// The tiles of the rows `queries`: the keys any of them may see, in steps of [`KEYS`].
pub(crate) fn tiles(plan: &Plan, batch: usize, head: usize, queries: Range<usize>) -> impl Iterator<Item = Place> {
    let runs = queries.clone().map(|row| plan.visible.run(batch, row)).filter(|run| !run.is_empty());
    let all = runs.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0);
    let step = |start: usize| Place { batch, head, queries: queries.clone(), keys: start..(start + KEYS).min(all.end) };
    all.clone().step_by(KEYS).map(step).collect::<Vec<_>>().into_iter()
}

/// `scores ← Q·Kᵀ·scale`, softcapped, −∞ where masked; dense rows.
#[inline(always)]
pub(crate) fn scores(scores: &mut [f32], plan: &Plan, place: &Place, query: Matrix, key: Matrix) {
    let (rows, columns) = (place.queries.len(), place.keys.len());
    let query = query.some_rows(place.queries.start, rows);
    let key = key.some_rows(place.keys.start, columns);
    product(scores, false, plan.scale, query, key.transposed());
    if let Some(cap) = plan.softcap {
        for x in &mut scores[..rows * columns] {
            *x = cap * tanh(*x / cap);
        }
    }
    for (row, scores) in place.queries.clone().zip(scores.chunks_exact_mut(columns)) {
        if plan.visible.in_runs() {
            let run = plan.visible.run(place.batch, row);
            let from = run.start.clamp(place.keys.start, place.keys.end) - place.keys.start;
            let to = run.end.clamp(place.keys.start, place.keys.end) - place.keys.start;
            scores[..from.min(columns)].fill(f32::NEG_INFINITY);
            scores[to.max(from)..].fill(f32::NEG_INFINITY);
        } else {
            for (column, score) in place.keys.clone().zip(scores) {
                if !plan.visible.sees(place.batch, place.head, row, column) {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }
}
