//! One tile of scores: some queries of a head against some keys, a block of queries at a time.

use std::ops::Range;

use headlight_vector::{BLOCK, Matrix, Onto, Simd, WIDEST, block_product, tanh};

use super::{Plan, poison::Poison};
use crate::{Dropout, score_shape::ScoreShape};

/// Rows of a tile: whole blocks.
pub(crate) const QUERIES: usize = 16 * BLOCK;
/// Columns of a tile.
pub(crate) const KEYS: usize = 256;

/// Numbers between rows of a tile that begin one after the other, for so many keys in all: one
/// vector more than the columns. Rows a power of two apart would compete for the same lines of the
/// cache.
pub(crate) fn stride_for(keys: usize) -> usize {
    KEYS.min(keys.next_multiple_of(WIDEST)) + WIDEST
}

/// The place of a tile, or of a block of its rows, in the scores.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub batch: usize,
    pub head: usize,
    pub queries: Range<usize>,
    pub keys: Range<usize>,
    /// The columns of the tile that some of the queries see, from a multiple of the widest vector
    /// on.
    pub seen: Range<usize>,
}

/// The keys of each tile that rows need which see these `runs` of keys: all that any row sees, in
/// steps of [`KEYS`].
pub(crate) fn tiles(runs: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> + use<> {
    let all = union(runs);
    let start = all.start / KEYS * KEYS;
    (start..all.end)
        .step_by(KEYS)
        .map(move |start| start..(start + KEYS).min(all.end))
}

/// The columns of a tile that some row of a block sees, from a multiple of the widest vector on.
#[inline(always)]
pub(crate) fn seen_by_block(runs: &[Range<usize>], keys: &Range<usize>) -> Range<usize> {
    let all = inside(&union(runs), keys);
    all.start / WIDEST * WIDEST..all.end
}

/// The part of a run of keys that lies in a tile, as columns of the tile.
#[inline(always)]
pub(crate) fn inside(run: &Range<usize>, keys: &Range<usize>) -> Range<usize> {
    let column = |key: usize| key.clamp(keys.start, keys.end) - keys.start;
    column(run.start)..column(run.end)
}

/// What lies in `outer` before and behind `inner`; parts without a column are left out.
#[inline(always)]
pub(crate) fn around(
    outer: Range<usize>,
    inner: &Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<> {
    [outer.start..inner.start, inner.end..outer.end]
        .into_iter()
        .filter(|part| !part.is_empty())
}

/// The smallest run that holds all runs that are not empty.
#[inline(always)]
fn union(runs: &[Range<usize>]) -> Range<usize> {
    let (mut start, mut end) = (usize::MAX, 0);
    for run in runs {
        if !run.is_empty() {
            start = start.min(run.start);
            end = end.max(run.end);
        }
    }
    start.min(end)..end
}

/// `scores ← Q·Kᵀ·scale` for a block of rows, and NaN where the query or the key is not finite.
/// Only the columns that are seen are written, and then up to a multiple of the widest vector.
///
/// `turned` holds `Kᵀ` of the tile. Its rows and those of the scores begin equally far apart.
#[inline(always)]
pub(crate) fn scores<S: Simd>(
    simd: S,
    scores: &mut [f32],
    plan: &Plan,
    poison: &Poison,
    place: &Place,
    query: Matrix,
    turned: Matrix,
) {
    let query = query.some_rows(place.queries.start, place.queries.len());
    let (stride, seen) = (turned.row_stride, &place.seen);
    let width = seen.len().next_multiple_of(WIDEST);
    block_product(
        simd,
        &mut scores[seen.start..],
        stride,
        Onto::Zeros,
        plan.scale,
        query,
        turned.some_columns(seen.start, width),
    );
    poison.mark(scores, stride, place, plan.shape.heads);
}

/// Applies softcap and bias to the scores of row `row`, which sees the columns `visible`, and
/// returns the range of columns to read. The range begins and ends at a multiple of the widest
/// vector, or at the end of the row, so that loops over it have no slow remainder. Masked columns
/// in the range are −∞.
#[inline(always)]
pub(crate) fn seen<S: Simd>(
    simd: S,
    scores: &mut [f32],
    plan: &Plan,
    place: &Place,
    bias: Option<Matrix>,
    row: usize,
    visible: &Range<usize>,
) -> Range<usize> {
    let &Range { start, end } = visible;
    let columns = if start == end {
        start..end
    } else {
        start / WIDEST * WIDEST..end.next_multiple_of(WIDEST).min(scores.len())
    };
    if let Some(cap) = plan.softcap {
        for x in &mut scores[start..end] {
            *x = cap * tanh(simd, *x / cap);
        }
    }
    if let Some(bias) = bias {
        for (score, column) in scores[start..end]
            .iter_mut()
            .zip(place.keys.start + start..)
        {
            *score += bias.at(row, column);
        }
    }
    for part in around(columns.clone(), visible) {
        scores[part].fill(f32::NEG_INFINITY);
    }
    if !plan.visible.in_runs() {
        for (score, column) in scores[start..end]
            .iter_mut()
            .zip(place.keys.start + start..)
        {
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
