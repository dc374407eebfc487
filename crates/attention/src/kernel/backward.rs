//! Backward: computes each tile of weights again, from the scores and the saved log-sum.

use std::sync::Arc;

use burn::{backend::flex::FlexTensor, tensor::Shape, tensor::TensorData};
use headlight_vector::{Kernel, Matrix, dot, exp, product, vectorised};
use rayon::prelude::*;

use super::{
    Plan,
    forward::{Inputs, in_order, matrix},
    poison::Poison,
    tile::{self, KEYS, QUERIES, tiles},
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
    let mut gradients = [
        (shape.queries, heads, d_head),
        (shape.keys, kv_heads, d_head),
        (shape.keys, kv_heads, d_value),
        (shape.queries, heads, bias_width),
    ]
    .map(|(seq, heads, width)| vec![0.0; shape.batch * seq * heads * width]);
    let [d_query, d_key, d_value_rows, d_bias] = &mut gradients;

    // A task is a sequence, with the heads side by side as the projections made them; or, if there
    // are fewer sequences than threads, a key/value head with its query heads. No two tasks add to
    // the same gradients.
    let side_by_side = shape.batch >= rayon::current_num_threads();
    let in_task = if side_by_side { kv_heads } else { 1 };
    let group = heads / kv_heads;
    let of_task = |size: usize| in_task * size;
    let d_biases = parts(
        d_bias,
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
            for index in 0..in_task * group {
                let first_head = if side_by_side {
                    0
                } else {
                    task % kv_heads * group
                };
                let kv = index / group;
                let of_head = shape.queries * bias_width;
                vectorised(OneHead {
                    saved,
                    upstream,
                    poison,
                    batch: if side_by_side { task } else { task / kv_heads },
                    head: first_head + index,
                    d_query: Rows {
                        numbers: &mut d_query[index * d_head..],
                        stride: in_task * group * d_head,
                    },
                    d_key: Rows {
                        numbers: &mut d_key[kv * d_head..],
                        stride: in_task * d_head,
                    },
                    d_value: Rows {
                        numbers: &mut d_value_rows[kv * d_value..],
                        stride: in_task * d_value,
                    },
                    d_bias: &mut d_bias[index * of_head..][..of_head],
                });
            }
        });
    let [d_query, d_key, d_value_rows, d_bias] = gradients;
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

/// Rows of one head, with other heads' rows between them.
struct Rows<'a> {
    numbers: &'a mut [f32],
    stride: usize,
}

impl Rows<'_> {
    /// Adds `factor·left·right` to the rows from `first` on.
    #[inline(always)]
    fn add(&mut self, first: usize, factor: f32, left: Matrix, right: Matrix) {
        product(
            &mut self.numbers[first * self.stride..],
            self.stride,
            true,
            factor,
            left,
            right,
        );
    }
}

/// One query head; `d_key` and `d_value` may hold gradients that other heads of its group added.
struct OneHead<'a> {
    saved: &'a Saved,
    upstream: &'a FlexTensor,
    poison: &'a Poison,
    batch: usize,
    head: usize,
    d_query: Rows<'a>,
    d_key: Rows<'a>,
    d_value: Rows<'a>,
    /// `[queries, keys]`, or empty if no gradient of the bias is wanted.
    d_bias: &'a mut [f32],
}

impl Kernel for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            saved,
            upstream,
            poison,
            batch,
            head,
            mut d_query,
            mut d_key,
            mut d_value,
            d_bias,
        } = self;
        let plan = &*saved.plan;
        let (heads, keys) = (plan.shape.heads, plan.shape.keys);
        let of = |tensor| matrix(tensor, batch, head, heads);
        let Inputs {
            query,
            key,
            value,
            bias,
        } = &saved.inputs;
        let (query, key, value, bias) = (of(query), of(key), of(value), bias.as_ref().map(of));
        let (output, upstream) = (of(&saved.output), of(upstream));
        let log_sum_of =
            |row: usize| saved.log_sums[(batch * plan.shape.queries + row) * heads + head];
        let tile = QUERIES.min(query.rows) * KEYS.min(key.rows);
        let (mut weights, mut d_weights) = (vec![0.0; tile], vec![0.0; tile]);
        let mut row_sums = [0.0; QUERIES];
        let mut slopes = [1.0; KEYS];

        for first in (0..query.rows).step_by(QUERIES) {
            let count = QUERIES.min(query.rows - first);
            for (row, sum) in row_sums[..count].iter_mut().enumerate() {
                *sum = row_product(upstream, output, first + row);
            }
            let upstream = upstream.some_rows(first, count);
            for place in tiles(plan, batch, head, first..first + count) {
                let columns = place.keys.len();
                let size = count * columns;
                tile::scores(&mut weights, plan, poison, &place, query, key);
                let value = value.some_rows(place.keys.start, columns);
                product(
                    &mut d_weights,
                    columns,
                    false,
                    1.0,
                    upstream,
                    value.transposed(),
                );
                let rows = weights[..size]
                    .chunks_exact_mut(columns)
                    .zip(d_weights[..size].chunks_exact_mut(columns));
                for (row, (weights, d_scores)) in (first..).zip(rows) {
                    let seen = tile::seen(weights, plan, &place, bias, row);
                    for part in [0..seen.start, seen.end..columns] {
                        weights[part.clone()].fill(0.0);
                        d_scores[part].fill(0.0);
                    }
                    let (from, to) = (seen.start, seen.end);
                    let (weights, d_scores) = (&mut weights[seen.clone()], &mut d_scores[seen]);
                    if let Some(cap) = plan.softcap {
                        // The derivative of the softcap, from the softcapped scores before the
                        // bias.
                        for (j, (slope, &score)) in slopes.iter_mut().zip(&*weights).enumerate() {
                            let capped = score
                                - bias
                                    .map_or(0.0, |bias| bias.at(row, place.keys.start + from + j));
                            *slope = 1.0 - (capped / cap) * (capped / cap);
                        }
                    }
                    if let Some(dropout) = &plan.dropout {
                        tile::drop_some(d_scores, dropout, plan, &place, row, from);
                    }
                    let (log_sum, sum) = (log_sum_of(row), row_sums[row - first]);
                    for (weight, d_score) in weights.iter_mut().zip(&mut *d_scores) {
                        // By selection: the log-sum is NaN if the row may attend to NaN, and its
                        // masked weights are 0 all the same.
                        *weight = if *weight == f32::NEG_INFINITY {
                            0.0
                        } else {
                            exp(*weight - log_sum)
                        };
                        *d_score = if *weight == 0.0 {
                            0.0
                        } else {
                            *weight * (*d_score - sum)
                        };
                    }
                    if !d_bias.is_empty() {
                        d_bias[row * keys + place.keys.start..][from..to].copy_from_slice(d_scores);
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
                let (weights, d_scores) = (
                    Matrix::dense(&weights, count, columns),
                    Matrix::dense(&d_weights, count, columns),
                );
                d_value.add(place.keys.start, 1.0, weights.transposed(), upstream);
                d_key.add(
                    place.keys.start,
                    plan.scale,
                    d_scores.transposed(),
                    query.some_rows(first, count),
                );
                d_query.add(
                    first,
                    plan.scale,
                    d_scores,
                    key.some_rows(place.keys.start, columns),
                );
            }
        }
    }
}

/// `Σ a·b` over row `i` of both.
#[inline(always)]
fn row_product(a: Matrix, b: Matrix, i: usize) -> f32 {
    match (a.row(i), b.row(i)) {
        (Some(a), Some(b)) => dot(a, b),
        _ => (0..a.columns).map(|j| a.at(i, j) * b.at(i, j)).sum(),
    }
}
