//! Backward: each tile of weights again, from the scores and the saved log-sum.

use burn::{backend::flex::FlexTensor, tensor::Shape, tensor::TensorData};
use headlight_vector::{Kernel, Matrix, dot, exp, product, vectorised};
use rayon::prelude::*;

use super::{
    Plan,
    forward::{in_order, matrix},
    tile::{self, KEYS, QUERIES, tiles},
};

/// What forward saved.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub query: FlexTensor,
    pub key: FlexTensor,
    pub value: FlexTensor,
    pub output: FlexTensor,
    pub log_sums: std::sync::Arc<Vec<f32>>,
    pub plan: std::sync::Arc<Plan>,
}

/// Gradients of query, key and value for the gradient `upstream` of the output.
///
/// With weights `A`, `D = Σ upstream·output` for each row: `dV = Aᵀ·upstream`, `dA = upstream·Vᵀ`,
/// `dS = A·(dA − D)`, `dQ = dS·K·scale`, `dK = dSᵀ·Q·scale`.
pub(crate) fn backward(saved: &Saved, upstream: &FlexTensor) -> [FlexTensor; 3] {
    let shape = &saved.plan.shape;
    let (heads, kv_heads) = (shape.heads, saved.key.layout().shape()[1]);
    let (d_head, d_value) = (saved.key.layout().shape()[3], saved.value.layout().shape()[3]);
    let upstream = &in_order(upstream.clone());
    let mut gradients =
        [(shape.queries, heads, d_head), (shape.keys, kv_heads, d_head), (shape.keys, kv_heads, d_value)]
            .map(|(seq, heads, width)| vec![0.0; shape.batch * seq * heads * width]);
    let [d_query, d_key, d_value_rows] = &mut gradients;

    // A task is a sequence, with the heads side by side as the projections made them; or, where there are not enough
    // sequences to go round, a key/value head with its query heads. Nobody else adds to the same gradients.
    let side_by_side = shape.batch >= rayon::current_num_threads();
    let in_task = if side_by_side { kv_heads } else { 1 };
    let group = heads / kv_heads;
    d_query
        .par_chunks_mut(shape.queries * in_task * group * d_head)
        .zip(d_key.par_chunks_mut(shape.keys * in_task * d_head))
        .zip(d_value_rows.par_chunks_mut(shape.keys * in_task * d_value))
        .enumerate()
        .for_each(|(task, ((d_query, d_key), d_value_rows))| {
            for index in 0..in_task * group {
                let first_head = if side_by_side { 0 } else { task % kv_heads * group };
                let kv = index / group;
                vectorised(OneHead {
                    saved,
                    upstream,
                    batch: if side_by_side { task } else { task / kv_heads },
                    head: first_head + index,
                    d_query: Rows { numbers: &mut d_query[index * d_head..], stride: in_task * group * d_head },
                    d_key: Rows { numbers: &mut d_key[kv * d_head..], stride: in_task * d_head },
                    d_value: Rows { numbers: &mut d_value_rows[kv * d_value..], stride: in_task * d_value },
                });
            }
        });
    let [d_query, d_key, d_value_rows] = gradients;
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
    [
        tensor(d_query, shape.queries, heads, d_head),
        tensor(d_key, shape.keys, kv_heads, d_head),
        tensor(d_value_rows, shape.keys, kv_heads, d_value),
    ]
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
        product(&mut self.numbers[first * self.stride..], self.stride, true, factor, left, right);
    }
}

/// One query head; `d_key` and `d_value` may hold what other heads of its group added.
struct OneHead<'a> {
    saved: &'a Saved,
    upstream: &'a FlexTensor,
    batch: usize,
    head: usize,
    d_query: Rows<'a>,
    d_key: Rows<'a>,
    d_value: Rows<'a>,
}

impl Kernel for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { saved, upstream, batch, head, mut d_query, mut d_key, mut d_value } = self;
        let plan = &*saved.plan;
        let heads = plan.shape.heads;
        let of = |tensor| matrix(tensor, batch, head, heads);
        let (query, key, value) = (of(&saved.query), of(&saved.key), of(&saved.value));
        let (output, upstream) = (of(&saved.output), of(upstream));
        let log_sum_of = |row: usize| saved.log_sums[(batch * plan.shape.queries + row) * heads + head];
        let tile = QUERIES.min(query.rows) * KEYS.min(key.rows);
        let (mut weights, mut d_weights) = (vec![0.0; tile], vec![0.0; tile]);
        let mut row_sums = [0.0; QUERIES];

        for first in (0..query.rows).step_by(QUERIES) {
            let count = QUERIES.min(query.rows - first);
            for (row, sum) in row_sums[..count].iter_mut().enumerate() {
                *sum = row_product(upstream, output, first + row);
            }
            let upstream = upstream.some_rows(first, count);
            for place in tiles(plan, batch, head, first..first + count) {
                let columns = place.keys.len();
                let size = count * columns;
                tile::scores(&mut weights, plan, &place, query, key);
                let value = value.some_rows(place.keys.start, columns);
                product(&mut d_weights, columns, false, 1.0, upstream, value.transposed());
                let rows = weights[..size].chunks_exact_mut(columns).zip(d_weights[..size].chunks_exact_mut(columns));
                for (row, (weights, d_scores)) in rows.enumerate() {
                    let seen = tile::seen(weights, plan, &place, first + row);
                    for part in [0..seen.start, seen.end..columns] {
                        weights[part.clone()].fill(0.0);
                        d_scores[part].fill(0.0);
                    }
                    let (log_sum, sum) = (log_sum_of(first + row), row_sums[row]);
                    for (weight, d_score) in weights[seen.clone()].iter_mut().zip(&mut d_scores[seen]) {
                        let score = *weight;
                        // The derivative of the softcap, from the score it gave; 1 without one.
                        let slope = plan.softcap.map_or(1.0, |cap| 1.0 - (score / cap) * (score / cap));
                        *weight = exp(score - log_sum);
                        // A masked score is −∞ and so may the slope be: its gradient is 0 by selection.
                        let gradient = *weight * (*d_score - sum) * slope;
                        *d_score = if *weight == 0.0 { 0.0 } else { gradient };
                    }
                }
                let (weights, d_scores) =
                    (Matrix::dense(&weights, count, columns), Matrix::dense(&d_weights, count, columns));
                d_value.add(place.keys.start, 1.0, weights.transposed(), upstream);
                d_key.add(place.keys.start, plan.scale, d_scores.transposed(), query.some_rows(first, count));
                d_query.add(first, plan.scale, d_scores, key.some_rows(place.keys.start, columns));
            }
        }
    }
}

/// `Σ a·b` over row `i` of both.
#[inline(always)]
fn row_product(a: Matrix, b: Matrix, i: usize) -> f32 {
    match (a.row(i), b.row(i)) {
        (Some(a), Some(b)) => dot(a, b),
        _ => (0..a.columns)
            .map(|j| {
                let at = |m: Matrix| m.data[m.start + i * m.row_stride + j * m.column_stride];
                at(a) * at(b)
            })
            .sum(),
    }
}
