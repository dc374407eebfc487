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
    let kv_heads = saved.key.layout().shape()[1];
    let group = shape.heads / kv_heads;
    let (d_head, d_value) = (saved.key.layout().shape()[3], saved.value.layout().shape()[3]);
    let upstream = in_order(upstream.clone());
    let mut d_query = vec![0.0; shape.batch * shape.heads * shape.queries * d_head];
    let mut d_key = vec![0.0; shape.batch * kv_heads * shape.keys * d_head];
    let mut d_value_out = vec![0.0; shape.batch * kv_heads * shape.keys * d_value];

    // One task is a key/value head with all its query heads: nobody else adds to the same gradients.
    d_query
        .par_chunks_mut(group * shape.queries * d_head)
        .zip(d_key.par_chunks_mut(shape.keys * d_head))
        .zip(d_value_out.par_chunks_mut(shape.keys * d_value))
        .enumerate()
        .for_each(|(index, ((d_query, d_key), d_value))| {
            let (batch, kv_head) = (index / kv_heads, index % kv_heads);
            for (in_group, d_query) in d_query.chunks_exact_mut(shape.queries * d_head).enumerate() {
                let head = kv_head * group + in_group;
                let upstream = &upstream;
                vectorised(OneHead { saved, upstream, batch, head, d_query, d_key, d_value });
            }
        });
    let tensor = |data: Vec<f32>, like: &FlexTensor| -> FlexTensor {
        let shape: Shape = like.layout().shape().clone();
        FlexTensor::from_data(TensorData::new(data, shape))
    };
    [tensor(d_query, &saved.query), tensor(d_key, &saved.key), tensor(d_value_out, &saved.value)]
}

/// One query head; `d_key` and `d_value` may hold what other heads of its group added.
struct OneHead<'a> {
    saved: &'a Saved,
    upstream: &'a FlexTensor,
    batch: usize,
    head: usize,
    d_query: &'a mut [f32],
    d_key: &'a mut [f32],
    d_value: &'a mut [f32],
}

impl Kernel for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { saved, upstream, batch, head, d_query, d_key, d_value } = self;
        let plan = &*saved.plan;
        let heads = plan.shape.heads;
        let of = |tensor| matrix(tensor, batch, head, heads);
        let (query, key, value) = (of(&saved.query), of(&saved.key), of(&saved.value));
        let (output, upstream) = (of(&saved.output), of(upstream));
        let log_sums = &saved.log_sums[(batch * heads + head) * plan.shape.queries..][..plan.shape.queries];
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
                product(&mut d_weights, false, 1.0, upstream, value.some_rows(place.keys.start, columns).transposed());
                let rows = weights[..size].chunks_exact_mut(columns).zip(d_weights[..size].chunks_exact_mut(columns));
                for (row, (weights, d_scores)) in rows.enumerate() {
                    let (log_sum, sum) = (log_sums[first + row], row_sums[row]);
                    for (weight, d_score) in weights.iter_mut().zip(d_scores) {
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
                let key_rows = place.keys.start..place.keys.end;
                let part = |width: usize| key_rows.start * width..key_rows.end * width;
                product(&mut d_value[part(value.columns)], true, 1.0, weights.transposed(), upstream);
                let query = query.some_rows(first, count);
                product(&mut d_key[part(key.columns)], true, plan.scale, d_scores.transposed(), query);
                let d_query = &mut d_query[first * query.columns..][..count * query.columns];
                product(d_query, true, plan.scale, d_scores, key.some_rows(place.keys.start, columns));
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
