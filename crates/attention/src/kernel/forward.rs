//! Forward: a pass over the keys with a running maximum and a running sum.

use burn::{backend::flex::FlexTensor, tensor::Shape, tensor::TensorData};
use headlight_vector::{Kernel, Matrix, exp, exp_and_sum, max_of, product, vectorised};
use rayon::prelude::*;

use super::{
    Plan,
    poison::Poison,
    tile::{self, KEYS, QUERIES, tiles},
};

/// The tensors of a call. Query, key and value are finite: [`Poison`] has taken out the rest.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    pub query: FlexTensor,
    pub key: FlexTensor,
    pub value: FlexTensor,
    /// `[batch, heads, queries, keys]`, with stride 0 along axes that are broadcast.
    pub bias: Option<FlexTensor>,
}

/// Computes the output `[batch, heads, queries, d_value]`, and for each of its rows `ln Σ
/// exp(score)`, `[batch, queries, heads]`. The log-sum is +∞ for a row that sees nothing, so that
/// backward computes weights of 0 for it.
///
/// In memory the output is `[batch, queries, heads, d_value]`: the heads side by side, as `W_O`
/// reads them.
pub(crate) fn forward(inputs: &Inputs, poison: &Poison, plan: &Plan) -> (FlexTensor, Vec<f32>) {
    let Inputs {
        query,
        key,
        value,
        bias,
    } = inputs;
    let (heads, queries) = (plan.shape.heads, plan.shape.queries);
    let d_value = value.layout().shape()[3];
    let mut output = vec![0.0; plan.shape.batch * queries * heads * d_value];
    let mut log_sums = vec![f32::INFINITY; plan.shape.batch * queries * heads];

    // One task computes up to QUERIES rows of all heads of a sequence: outputs of tasks are
    // disjoint slices.
    let sequences = output
        .par_chunks_mut(queries * heads * d_value)
        .zip(log_sums.par_chunks_mut(queries * heads));
    sequences
        .enumerate()
        .for_each(|(batch, (output, log_sums))| {
            let blocks = output
                .par_chunks_mut(QUERIES * heads * d_value)
                .zip(log_sums.par_chunks_mut(QUERIES * heads));
            blocks.enumerate().for_each(|(block, (output, log_sums))| {
                for head in 0..heads {
                    let matrices =
                        [query, key, value].map(|tensor| matrix(tensor, batch, head, heads));
                    let bias = bias.as_ref().map(|bias| matrix(bias, batch, head, heads));
                    let (output, log_sums) = (&mut output[head * d_value..], &mut log_sums[head..]);
                    vectorised(Rows {
                        plan,
                        poison,
                        batch,
                        head,
                        first: block * QUERIES,
                        matrices,
                        bias,
                        output,
                        log_sums,
                    });
                }
            });
        });
    let shape = Shape::new([plan.shape.batch, queries, heads, d_value]);
    (
        FlexTensor::from_data(TensorData::new(output, shape)).permute(&[0, 2, 1, 3]),
        log_sums,
    )
}

/// The rows of one head from `first` on. In `output` and `log_sums`, rows of the other heads lie
/// between them.
struct Rows<'a> {
    plan: &'a Plan,
    poison: &'a Poison,
    batch: usize,
    head: usize,
    first: usize,
    /// Query, key, value.
    matrices: [Matrix<'a>; 3],
    bias: Option<Matrix<'a>>,
    output: &'a mut [f32],
    log_sums: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            plan,
            poison,
            batch,
            head,
            first,
            matrices: [query, key, value],
            bias,
            output,
            log_sums,
        } = self;
        let heads = plan.shape.heads;
        let count = log_sums.len().div_ceil(heads);
        let (d_value, stride) = (value.columns, heads * value.columns);
        let mut scores = vec![0.0; count * KEYS.min(key.rows)];
        let mut maxima = [f32::NEG_INFINITY; QUERIES];
        let mut sums = [0.0_f32; QUERIES];
        for place in tiles(plan, batch, head, first..first + count) {
            tile::scores(&mut scores, plan, poison, &place, query, key);
            let columns = place.keys.len();
            for (row, weights) in scores[..count * columns]
                .chunks_exact_mut(columns)
                .enumerate()
            {
                let seen = tile::seen(weights, plan, &place, bias, first + row);
                weights[..seen.start].fill(0.0);
                weights[seen.end..].fill(0.0);
                let (from, weights) = (seen.start, &mut weights[seen]);
                let before = maxima[row];
                let max = before.max(max_of(weights));
                if max == f32::NEG_INFINITY {
                    // The row sees no key, unless all of its visible scores are NaN. That case must
                    // stay NaN.
                    if weights.iter().any(|score| score.is_nan()) {
                        sums[row] = f32::NAN;
                    }
                    weights.fill(0.0);
                    continue;
                }
                let sum = exp_and_sum(weights, max);
                // The sums so far were taken under the old maximum: this scales them to the new
                // one.
                let shrink = exp(before - max);
                sums[row] = sums[row] * shrink + sum;
                if let Some(dropout) = &plan.dropout {
                    tile::drop_some(weights, dropout, plan, &place, first + row, from);
                }
                maxima[row] = max;
                if before != f32::NEG_INFINITY && shrink != 1.0 {
                    for z in &mut output[row * stride..][..d_value] {
                        *z *= shrink;
                    }
                }
            }
            let value = value.some_rows(place.keys.start, columns);
            product(
                output,
                stride,
                true,
                1.0,
                Matrix::dense(&scores, count, columns),
                value,
            );
        }
        for (row, log_sum) in log_sums.iter_mut().step_by(heads).enumerate() {
            if sums[row] != 0.0 {
                *log_sum = maxima[row] + sums[row].ln();
                let share = 1.0 / sums[row];
                for z in &mut output[row * stride..][..d_value] {
                    *z *= share;
                }
            }
        }
    }
}

/// The tensor itself, or a copy if one of its axes runs backwards.
pub(crate) fn in_order(tensor: FlexTensor) -> FlexTensor {
    if tensor.layout().has_positive_strides() {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

/// The matrix `[seq, width]` of one head of a tensor `[batch, heads or kv_heads, seq, width]` with
/// any strides.
pub(crate) fn matrix(tensor: &FlexTensor, batch: usize, head: usize, heads: usize) -> Matrix<'_> {
    let layout = tensor.layout();
    let (shape, strides) = (layout.shape(), layout.strides());
    let stride = |axis: usize| strides[axis] as usize;
    let own_head = head / (heads / shape[1]);
    Matrix {
        data: tensor.storage::<f32>(),
        start: layout.start_offset() + batch * stride(0) + own_head * stride(1),
        rows: shape[2],
        columns: shape[3],
        row_stride: stride(2),
        column_stride: stride(3),
    }
}
