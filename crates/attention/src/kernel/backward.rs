//! Backward: computes each tile of weights again, from the scores and the saved log-sum.

use std::{ops::Range, sync::Arc};

use burn::{backend::flex::FlexTensor, tensor::Shape, tensor::TensorData};
use headlight_vector::{
    BLOCK, Kernel, Matrix, Onto, Simd, WIDEST, block_product, dot, exp, transpose, vectorised,
};
use rayon::prelude::*;

use super::{
    Plan,
    forward::Inputs,
    head::{in_order, in_vectors, matrix},
    poison::Poison,
    tile::{self, KEYS, Place, QUERIES, around, inside, seen_by_block, stride_for, tiles},
};

/// The tensors and log-sums that forward saved.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    inputs: Inputs,
    poison: Poison,
    output: FlexTensor,
    log_sums: Arc<Vec<f32>>,
    plan: Arc<Plan>,
}

impl Saved {
    pub fn new(
        inputs: Inputs,
        poison: Poison,
        output: &FlexTensor,
        log_sums: Vec<f32>,
        plan: Arc<Plan>,
    ) -> Self {
        Self {
            inputs,
            poison,
            output: output.clone(),
            log_sums: Arc::new(log_sums),
            plan,
        }
    }
}

/// Gradients of query, key, value and, if asked for, the bias, for the gradient `upstream` of the
/// output.
///
/// With weights `A`, dropout's factors `F` and `D = Σ upstream·output` for each row:
/// `dV = (A·F)ᵀ·upstream`, `dA = F·(upstream·Vᵀ)`, `d bias = A·(dA − D)`, `dS` that times the slope
/// of the softcap, `dQ = dS·K·scale`, `dK = dSᵀ·Q·scale`.
pub(crate) fn backward(
    saved: &Saved,
    upstream: &FlexTensor,
    with_bias: bool,
) -> [Option<FlexTensor>; 4] {
    let shape = &saved.plan.shape;
    let Inputs { key, value, .. } = &saved.inputs;
    let (heads, kv_heads) = (shape.heads, key.layout().shape()[1]);
    let (d_head, d_value) = (key.layout().shape()[3], value.layout().shape()[3]);
    let upstream = in_order(upstream.clone());
    let poison = &saved.poison.and_upstream(&upstream);
    let upstream = &poison.out_of_queries(upstream);
    let bias_width = if with_bias { shape.keys } else { 0 };
    let (of_queries, of_keys) = (shape.batch * shape.queries, shape.batch * shape.keys);
    let mut d_query = vec![0.0; of_queries * heads * d_head];
    let mut d_key = vec![0.0; of_keys * kv_heads * d_head];
    let mut d_value_rows = vec![0.0; of_keys * kv_heads * d_value];
    let mut d_bias = vec![0.0; of_queries * heads * bias_width];

    // A task is a sequence, with the heads side by side as the projections made them; or, if there
    // are fewer sequences than threads, a key/value head with its query heads. No two tasks add to
    // the same gradients.
    let side_by_side = shape.batch >= rayon::current_num_threads();
    let in_task = if side_by_side { kv_heads } else { 1 };
    let group = heads / kv_heads;
    let of_task = |size: usize| in_task * size;
    let d_biases = parts(
        &mut d_bias,
        of_task(group * shape.queries * bias_width),
        shape.batch * kv_heads / in_task,
    );
    d_query
        .par_chunks_mut(of_task(shape.queries * group * d_head))
        .zip(d_key.par_chunks_mut(of_task(shape.keys * d_head)))
        .zip(d_value_rows.par_chunks_mut(of_task(shape.keys * d_value)))
        .zip(d_biases)
        .enumerate()
        .for_each(|(task, (((d_query, d_key), d_value_rows), d_bias))| {
            let (batch, first_kv_head) = if side_by_side {
                (task, 0)
            } else {
                (task / kv_heads, task % kv_heads)
            };
            let runs: Vec<_> = (0..shape.queries)
                .map(|row| saved.plan.visible.run(batch, row))
                .collect();
            let mut room = Room::default();
            for kv in 0..in_task {
                fill(
                    &mut room.d_key,
                    shape.keys * d_head.next_multiple_of(WIDEST),
                );
                fill(
                    &mut room.d_value,
                    shape.keys * d_value.next_multiple_of(WIDEST),
                );
                for index in kv * group..(kv + 1) * group {
                    let of_head = shape.queries * bias_width;
                    vectorised(OneHead {
                        saved,
                        upstream,
                        poison,
                        batch,
                        head: first_kv_head * group + index,
                        runs: &runs,
                        room: &mut room,
                        d_bias: &mut d_bias[index * of_head..][..of_head],
                    });
                    vectorised(WriteRows {
                        out: &mut d_query[index * d_head..],
                        stride: in_task * group * d_head,
                        width: d_head,
                        factor: saved.plan.scale,
                        rows: &room.d_query,
                    });
                }
                vectorised(WriteRows {
                    out: &mut d_key[kv * d_head..],
                    stride: in_task * d_head,
                    width: d_head,
                    factor: saved.plan.scale,
                    rows: &room.d_key,
                });
                vectorised(WriteRows {
                    out: &mut d_value_rows[kv * d_value..],
                    stride: in_task * d_value,
                    width: d_value,
                    factor: 1.0,
                    rows: &room.d_value,
                });
            }
        });
    let tensor = |data: Vec<f32>, seq: usize, heads: usize, width: usize| -> FlexTensor {
        if side_by_side {
            let dims = Shape::new([shape.batch, seq, heads, width]);
            return FlexTensor::from_data(TensorData::new(data, dims)).permute(&[0, 2, 1, 3]);
        }
        // Each key/value head's query heads lie side by side.
        let group = heads / kv_heads;
        let dims = Shape::new([shape.batch, kv_heads, seq, group, width]);
        let tensor = FlexTensor::from_data(TensorData::new(data, dims)).permute(&[0, 1, 3, 2, 4]);
        tensor.reshape(Shape::new([shape.batch, heads, seq, width]))
    };
    let dims = Shape::new([shape.batch, heads, shape.queries, shape.keys]);
    [
        Some(tensor(d_query, shape.queries, heads, d_head)),
        Some(tensor(d_key, shape.keys, kv_heads, d_head)),
        Some(tensor(d_value_rows, shape.keys, kv_heads, d_value)),
        with_bias.then(|| FlexTensor::from_data(TensorData::new(d_bias, dims))),
    ]
}

/// Splits a slice into `count` equal parts; the parts of an empty slice are empty.
fn parts(numbers: &mut [f32], size: usize, count: usize) -> Vec<&mut [f32]> {
    if size == 0 {
        return (0..count).map(|_| Default::default()).collect();
    }
    numbers.chunks_mut(size).collect()
}

/// Writes `factor` times the rows of a head, each filled up to whole vectors, into rows of `width`
/// numbers that begin `stride` apart: other heads' rows lie between them.
struct WriteRows<'a> {
    out: &'a mut [f32],
    stride: usize,
    width: usize,
    factor: f32,
    rows: &'a [f32],
}

impl Kernel for WriteRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let rows = self.rows.chunks_exact(self.width.next_multiple_of(WIDEST));
        for (out, row) in self.out.chunks_mut(self.stride).zip(rows) {
            for (out, &x) in out[..self.width].iter_mut().zip(row) {
                *out = self.factor * x;
            }
        }
    }
}

/// Makes room for at least `length` numbers, whatever they are.
fn make_room(numbers: &mut Vec<f32>, length: usize) {
    if numbers.len() < length {
        numbers.resize(length, 0.0);
    }
}

/// Makes `numbers` a vector of `length` zeros.
fn fill(numbers: &mut Vec<f32>, length: usize) {
    numbers.clear();
    numbers.resize(length, 0.0);
}

/// Memory that the heads of a task use in turn.
#[derive(Default)]
struct Room {
    /// Copies of queries, keys and upstream, if they are no right factors as they are.
    copies: [Vec<f32>; 3],
    /// `Kᵀ` and `Vᵀ` of a tile.
    turned_key: Vec<f32>,
    turned_value: Vec<f32>,
    /// Weights and gradients of the scores of a tile.
    weights: Vec<f32>,
    d_scores: Vec<f32>,
    /// `D` of each row.
    row_sums: Vec<f32>,
    /// Sums for the gradients of the head's queries, and of all keys and values of its key/value
    /// head. Rows are filled up to whole vectors.
    d_query: Vec<f32>,
    d_key: Vec<f32>,
    d_value: Vec<f32>,
}

/// One query head; `d_key` and `d_value` of the room may hold sums of other heads of its group.
struct OneHead<'a> {
    saved: &'a Saved,
    upstream: &'a FlexTensor,
    poison: &'a Poison,
    batch: usize,
    head: usize,
    /// The run of keys that each query sees.
    runs: &'a [Range<usize>],
    room: &'a mut Room,
    /// `[queries, keys]`, or empty if no gradient of the bias is wanted.
    d_bias: &'a mut [f32],
}

impl Kernel for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            saved,
            upstream,
            poison,
            batch,
            head,
            runs,
            room,
            d_bias,
        } = self;
        let Room {
            copies: [query_copy, key_copy, upstream_copy],
            turned_key,
            turned_value,
            weights,
            d_scores,
            row_sums,
            d_query,
            d_key,
            d_value,
        } = room;
        let plan = &*saved.plan;
        let (heads, keys_in_all) = (plan.shape.heads, plan.shape.keys);
        let of = |tensor| matrix(tensor, batch, head, heads);
        let inputs = &saved.inputs;
        let (query, key, value) = (of(&inputs.query), of(&inputs.key), of(&inputs.value));
        let bias = inputs.bias.as_ref().map(of);
        let (output, upstream) = (of(&saved.output), of(upstream));
        let query_rows = in_vectors(query, query_copy);
        let key_rows = in_vectors(key, key_copy);
        let upstream_rows = in_vectors(upstream, upstream_copy);
        let (width, value_width) = (query_rows.columns, upstream_rows.columns);
        let log_sums = &saved.log_sums[batch * plan.shape.queries * heads + head..];
        make_room(row_sums, query.rows);
        for (row, sum) in row_sums[..query.rows].iter_mut().enumerate() {
            *sum = row_product(simd, upstream, output, row);
        }
        let stride = stride_for(key.rows);
        make_room(turned_key, key.columns * stride);
        make_room(turned_value, value.columns * stride);
        make_room(weights, QUERIES.min(query.rows) * stride);
        make_room(d_scores, weights.len());
        fill(d_query, query.rows * width);
        let mut slopes = [1.0; KEYS];

        for keys in tiles(runs) {
            transpose(
                simd,
                key.some_rows(keys.start, keys.len()),
                turned_key,
                stride,
            );
            transpose(
                simd,
                value.some_rows(keys.start, keys.len()),
                turned_value,
                stride,
            );
            let tile_of_keys = Matrix::dense(turned_key, key.columns, stride);
            let tile_of_values = Matrix::dense(turned_value, value.columns, stride);
            for first in (0..query.rows).step_by(QUERIES) {
                let count = QUERIES.min(query.rows - first);
                let runs = &runs[first..first + count];
                if seen_by_block(runs, &keys).is_empty() {
                    continue;
                }
                let sees_all = |run: &Range<usize>| inside(run, &keys) == (0..keys.len());
                if !runs.iter().all(sees_all) {
                    weights[..count * stride].fill(0.0);
                    d_scores[..count * stride].fill(0.0);
                }
                for from in (0..count).step_by(BLOCK) {
                    let block = from..(from + BLOCK).min(count);
                    let seen = seen_by_block(&runs[block.clone()], &keys);
                    let place = Place {
                        batch,
                        head,
                        queries: first + block.start..first + block.end,
                        keys: keys.clone(),
                        seen: seen.clone(),
                    };
                    let rows = block.start * stride..block.end * stride;
                    let (weights, d_scores) = (&mut weights[rows.clone()], &mut d_scores[rows]);
                    if seen.is_empty() {
                        continue;
                    }
                    tile::scores(simd, weights, plan, poison, &place, query, tile_of_keys);
                    block_product(
                        simd,
                        &mut d_scores[seen.start..],
                        stride,
                        Onto::Zeros,
                        1.0,
                        upstream.some_rows(place.queries.start, block.len()),
                        tile_of_values
                            .some_columns(seen.start, seen.len().next_multiple_of(WIDEST)),
                    );
                    let rows = weights
                        .chunks_exact_mut(stride)
                        .zip(d_scores.chunks_exact_mut(stride));
                    for (row, (weights, d_scores)) in place.queries.clone().zip(rows) {
                        let visible = inside(&runs[row - first], &keys);
                        let columns = tile::seen(simd, weights, plan, &place, bias, row, &visible);
                        // The scores that the block has beside those of the row.
                        let written = seen.end.next_multiple_of(WIDEST);
                        for part in around(seen.start..written, &columns) {
                            weights[part.clone()].fill(0.0);
                            d_scores[part].fill(0.0);
                        }
                        let from = columns.start;
                        let (weights, d_scores) =
                            (&mut weights[columns.clone()], &mut d_scores[columns]);
                        if let Some(cap) = plan.softcap {
                            // The derivative of the softcap, from the softcapped scores before the
                            // bias.
                            let real = weights.iter().take(keys.len() - from).enumerate();
                            for (slope, (j, &score)) in slopes.iter_mut().zip(real) {
                                let column = keys.start + from + j;
                                let capped = score - bias.map_or(0.0, |bias| bias.at(row, column));
                                *slope = 1.0 - (capped / cap) * (capped / cap);
                            }
                        }
                        if let Some(dropout) = &plan.dropout {
                            tile::drop_some(d_scores, dropout, plan, &place, row, from);
                        }
                        let (log_sum, sum) = (log_sums[row * heads], row_sums[row]);
                        if plan.visible.in_runs() {
                            for (weight, d_score) in weights.iter_mut().zip(&mut *d_scores) {
                                *weight = exp(simd, *weight - log_sum);
                                *d_score = *weight * (*d_score - sum);
                            }
                            // The log-sum is NaN if the row may attend to NaN, and its masked
                            // weights are 0 all the same.
                            let inner = visible.start - from..visible.end - from;
                            for part in around(0..weights.len(), &inner) {
                                weights[part.clone()].fill(0.0);
                                d_scores[part].fill(0.0);
                            }
                        } else {
                            for (weight, d_score) in weights.iter_mut().zip(&mut *d_scores) {
                                // By selection, for the same reason.
                                *weight = if *weight == f32::NEG_INFINITY {
                                    0.0
                                } else {
                                    exp(simd, *weight - log_sum)
                                };
                                *d_score = if *weight == 0.0 {
                                    0.0
                                } else {
                                    *weight * (*d_score - sum)
                                };
                            }
                        }
                        if !d_bias.is_empty() {
                            let out = &mut d_bias[row * keys_in_all..][keys.start + from..];
                            for (out, &d_score) in
                                out[..visible.end - from].iter_mut().zip(&*d_scores)
                            {
                                *out = d_score;
                            }
                        }
                        if plan.softcap.is_some() {
                            // The slope of a masked score is −∞.
                            for ((d_score, slope), weight) in
                                d_scores.iter_mut().zip(&slopes).zip(&*weights)
                            {
                                *d_score = if *weight == 0.0 {
                                    0.0
                                } else {
                                    *d_score * slope
                                };
                            }
                        }
                        if let Some(dropout) = &plan.dropout {
                            tile::drop_some(weights, dropout, plan, &place, row, from);
                        }
                    }
                    let d_scores = Matrix::dense(d_scores, block.len(), stride);
                    block_product(
                        simd,
                        &mut d_query[place.queries.start * width..],
                        width,
                        Onto::Out,
                        1.0,
                        d_scores.some_columns(seen.start, seen.len()),
                        key_rows.some_rows(keys.start + seen.start, seen.len()),
                    );
                }
                let weights = Matrix::dense(weights, count, stride);
                let d_scores = Matrix::dense(d_scores, count, stride);
                for from in (0..keys.len()).step_by(BLOCK) {
                    let columns = BLOCK.min(keys.len() - from);
                    let seeing = seeing(runs, &(keys.start + from..keys.start + from + columns));
                    let weights = weights
                        .some_rows(seeing.start, seeing.len())
                        .some_columns(from, columns);
                    let d_scores = d_scores
                        .some_rows(seeing.start, seeing.len())
                        .some_columns(from, columns);
                    let rows = first + seeing.start;
                    let key = keys.start + from;
                    block_product(
                        simd,
                        &mut d_value[key * value_width..],
                        value_width,
                        Onto::Out,
                        1.0,
                        weights.transposed(),
                        upstream_rows.some_rows(rows, seeing.len()),
                    );
                    block_product(
                        simd,
                        &mut d_key[key * width..],
                        width,
                        Onto::Out,
                        1.0,
                        d_scores.transposed(),
                        query_rows.some_rows(rows, seeing.len()),
                    );
                }
            }
        }
    }
}

/// A run of the rows of a tile that includes every row that sees one of `keys`.
#[inline(always)]
fn seeing(runs: &[Range<usize>], keys: &Range<usize>) -> Range<usize> {
    let sees = |run: &Range<usize>| run.start < keys.end && keys.start < run.end;
    let first = runs.iter().position(sees).unwrap_or(0);
    let end = runs.iter().rposition(sees).map_or(0, |last| last + 1);
    first..end
}

/// `Σ a·b` over row `i` of both.
#[inline(always)]
fn row_product<S: Simd>(simd: S, a: Matrix, b: Matrix, i: usize) -> f32 {
    if let (Some(a), Some(b)) = (a.row(i), b.row(i)) {
        return dot(simd, a, b);
    }
    let mut sum = 0.0;
    for j in 0..a.columns {
        sum += a.at(i, j) * b.at(i, j);
    }
    sum
}
