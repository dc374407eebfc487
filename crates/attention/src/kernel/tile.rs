//! One tile of scores: some queries of a head against some keys.

use std::ops::Range;

use headlight_vector::{LANES, Matrix, product, tanh};

use super::{Plan, poison::Poison};
use crate::{Dropout, score_shape::ScoreShape};

/// Rows and columns of a tile.
pub(crate) const QUERIES: usize = 128;
/// See [`QUERIES`].
pub(crate) const KEYS: usize = 256;

/// The place of a tile in the scores.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub batch: usize,
    pub head: usize,
    pub queries: Range<usize>,
    pub keys: Range<usize>,
}

/// The tiles of the rows `queries`: all keys that any of these rows may see, in steps of [`KEYS`].
pub(crate) fn tiles(
    plan: &Plan,
    batch: usize,
    head: usize,
    queries: Range<usize>,
) -> impl Iterator<Item = Place> {
    let runs = queries
        .clone()
        .map(|row| plan.visible.run(batch, row))
        .filter(|run| !run.is_empty());
    let all = runs
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0);
    let step = |start: usize| Place {
        batch,
        head,
        queries: queries.clone(),
        keys: start..(start + KEYS).min(all.end),
    };
    all.clone()
        .step_by(KEYS)
        .map(step)
        .collect::<Vec<_>>()
        .into_iter()
}

/// `scores ← Q·Kᵀ·scale`, as dense rows, and NaN where the query or the key is not finite. Only the
/// columns of [`seen`] are valid in each row.
#[inline(always)]
pub(crate) fn scores(
    scores: &mut [f32],
    plan: &Plan,
    poison: &Poison,
    place: &Place,
    query: Matrix,
    key: Matrix,
) {
    let (rows, columns) = (place.queries.len(), place.keys.len());
    let query = query.some_rows(place.queries.start, rows);
    let key = key.some_rows(place.keys.start, columns);
    product(scores, columns, false, plan.scale, query, key.transposed());
    poison.mark(&mut scores[..rows * columns], place, plan.shape.heads);
}

/// Applies softcap and bias to the scores of row `row` and returns the range of columns to read.
/// The range begins and ends at a multiple of the vector width, so that loops over it have no slow
/// remainder. Masked columns in the range are −∞.
#[inline(always)]
pub(crate) fn seen(
    scores: &mut [f32],
    plan: &Plan,
    place: &Place,
    bias: Option<Matrix>,
    row: usize,
) -> Range<usize> {
    let run = plan.visible.run(place.batch, row);
    let inside = |column: usize| column.clamp(place.keys.start, place.keys.end) - place.keys.start;
    let (start, end) = (inside(run.start), inside(run.end));
    let columns = if start == end {
        start..end
    } else {
        start / LANES * LANES..end.next_multiple_of(LANES).min(scores.len())
    };
    let scores = &mut scores[columns.clone()];
    if let Some(cap) = plan.softcap {
        for x in &mut *scores {
            *x = cap * tanh(*x / cap);
        }
    }
    if let Some(bias) = bias {
        for (score, column) in scores
            .iter_mut()
            .zip(place.keys.start + columns.start..place.keys.end)
        {
            *score += bias.at(row, column);
        }
    }
    scores[..start - columns.start].fill(f32::NEG_INFINITY);
    scores[end - columns.start..].fill(f32::NEG_INFINITY);
    if !plan.visible.in_runs() {
        for (score, column) in scores.iter_mut().zip(place.keys.start + columns.start..) {
            if !plan.visible.sees(place.batch, place.head, row, column) {
                *score = f32::NEG_INFINITY;
            }
        }
    }
    columns
}

/// Multiplies the weights of row `row` in the tile's `columns` by the factors of dropout.
#[inline(always)]
pub(crate) fn drop_some(
    weights: &mut [f32],
    dropout: &Dropout,
    plan: &Plan,
    place: &Place,
    row: usize,
    columns: usize,
) {
    let ScoreShape { queries, keys, .. } = plan.shape;
    let first = (place.head * queries + row) * keys + place.keys.start + columns;
    for (weight, factor) in weights
        .iter_mut()
        .zip(dropout.factors_from(place.batch, first))
    {
        *weight *= factor;
    }
}
