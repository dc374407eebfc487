//! Forward: a pass over the keys with a running maximum and a running sum.

use std::ops::Range;

use burn::{backend::flex::FlexTensor, tensor::Shape, tensor::TensorData};
use headlight_vector::{
    BLOCK, Kernel, Matrix, Onto, Simd, block_product, exp, exp_and_sum, max_of, transpose,
    vectorised,
};
use rayon::prelude::*;

use super::{
    Plan,
    head::{in_vectors, matrix},
    poison::Poison,
    tile::{self, KEYS, Place, QUERIES, around, inside, seen_by_block, stride_for, tiles},
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
            let sources = KeysAndValues::new(key, value, batch);
            let blocks = output
                .par_chunks_mut(QUERIES * heads * d_value)
                .zip(log_sums.par_chunks_mut(QUERIES * heads));
            blocks.enumerate().for_each(|(block, (output, log_sums))| {
                let first = block * QUERIES;
                let rows = first..(first + QUERIES).min(queries);
                let runs: Vec<_> = rows.map(|row| plan.visible.run(batch, row)).collect();
                let mut scores = vec![0.0; BLOCK * sources.stride];
                let mut z = Vec::new();
                for head in 0..heads {
                    vectorised(Rows {
                        plan,
                        poison,
                        batch,
                        head,
                        first,
                        runs: &runs,
                        query: matrix(query, batch, head, heads),
                        keys: sources.keys_of(head, heads),
                        value: sources.values_of(head, heads),
                        bias: bias.as_ref().map(|bias| matrix(bias, batch, head, heads)),
                        scores: &mut scores,
                        z: &mut z,
                        d_value,
                        output: &mut output[head * d_value..],
                        log_sums: &mut log_sums[head..],
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

/// The keys of a sequence, turned once for all of its queries, and its values.
struct KeysAndValues<'a> {
    value: &'a FlexTensor,
    batch: usize,
    /// For each key/value head and each tile of keys `Kᵀ`, `[d_head, stride]`.
    turned: Vec<f32>,
    stride: usize,
    /// For each key/value head a copy of its values if they are no rows of whole vectors.
    copies: Vec<Vec<f32>>,
}

impl<'a> KeysAndValues<'a> {
    fn new(key: &FlexTensor, value: &'a FlexTensor, batch: usize) -> Self {
        let [kv_heads, keys, d_head] = [1, 2, 3].map(|axis| key.layout().shape()[axis]);
        let stride = stride_for(keys);
        let of_head = keys.div_ceil(KEYS) * d_head * stride;
        let mut turned = vec![0.0; kv_heads * of_head];
        let mut copies = vec![Vec::new(); kv_heads];
        turned
            .par_chunks_mut(of_head)
            .zip(&mut copies)
            .enumerate()
            .for_each(|(head, (turned, copy))| {
                vectorised(Turn {
                    matrix: matrix(key, batch, head, kv_heads),
                    turned,
                    stride,
                });
                in_vectors(matrix(value, batch, head, kv_heads), copy);
            });
        Self {
            value,
            batch,
            turned,
            stride,
            copies,
        }
    }

    /// `Kᵀ` of each tile for a query head, one tile below the other.
    fn keys_of(&self, head: usize, heads: usize) -> Matrix<'_> {
        let kv_heads = self.copies.len();
        let numbers = self.turned.len() / kv_heads;
        let kv_head = head / (heads / kv_heads);
        let turned = &self.turned[kv_head * numbers..][..numbers];
        Matrix::dense(turned, numbers / self.stride, self.stride)
    }

    /// The values for a query head, as a right factor.
    fn values_of(&self, head: usize, heads: usize) -> Matrix<'_> {
        let value = matrix(self.value, self.batch, head, heads);
        let copy = &self.copies[head / (heads / self.copies.len())];
        if copy.is_empty() {
            value
        } else {
            Matrix::dense(copy, value.rows, copy.len() / value.rows)
        }
    }
}

/// Turns the keys of a head, tile by tile.
struct Turn<'a> {
    matrix: Matrix<'a>,
    turned: &'a mut [f32],
    stride: usize,
}

impl Kernel for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let tiles = self
            .turned
            .chunks_exact_mut(self.matrix.columns * self.stride);
        for (tile, turned) in tiles.enumerate() {
            let first = tile * KEYS;
            let count = KEYS.min(self.matrix.rows - first);
            transpose(
                simd,
                self.matrix.some_rows(first, count),
                turned,
                self.stride,
            );
        }
    }
}

/// The rows of one head from `first` on, each with the run of keys it sees. In `output` and
/// `log_sums`, rows of the other heads lie between them.
struct Rows<'a> {
    plan: &'a Plan,
    poison: &'a Poison,
    batch: usize,
    head: usize,
    first: usize,
    runs: &'a [Range<usize>],
    query: Matrix<'a>,
    /// `Kᵀ` of each tile
    keys: Matrix<'a>,
    value: Matrix<'a>,
    bias: Option<Matrix<'a>>,
    /// Room for the scores of a block.
    scores: &'a mut [f32],
    /// Room for the sums of weighted values.
    z: &'a mut Vec<f32>,
    d_value: usize,
    output: &'a mut [f32],
    log_sums: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            plan,
            poison,
            batch,
            head,
            first,
            runs,
            query,
            keys: turned,
            value,
            bias,
            scores,
            z,
            d_value,
            output,
            log_sums,
        } = self;
        let (heads, count, width) = (plan.shape.heads, runs.len(), value.columns);
        z.clear();
        z.resize(count * width, 0.0);
        let mut maxima = [f32::NEG_INFINITY; QUERIES];
        let mut sums = [0.0_f32; QUERIES];
        let stride = turned.columns;
        for keys in tiles(runs) {
            let turned = turned.some_rows(keys.start / KEYS * query.columns, query.columns);
            for from in (0..count).step_by(BLOCK) {
                let block = from..(from + BLOCK).min(count);
                let seen = seen_by_block(&runs[block.clone()], &keys);
                if seen.is_empty() {
                    continue;
                }
                let place = Place {
                    batch,
                    head,
                    queries: first + block.start..first + block.end,
                    keys: keys.clone(),
                    seen: seen.clone(),
                };
                tile::scores(simd, scores, plan, poison, &place, query, turned);
                for (row, weights) in block.clone().zip(scores.chunks_exact_mut(stride)) {
                    let visible = inside(&runs[row], &keys);
                    let columns =
                        tile::seen(simd, weights, plan, &place, bias, first + row, &visible);
                    for part in around(seen.clone(), &columns) {
                        weights[part].fill(0.0);
                    }
                    let (column, weights) = (columns.start, &mut weights[columns]);
                    let before = maxima[row];
                    let max = before.max(max_of(weights));
                    if max == f32::NEG_INFINITY {
                        // The row sees no key, unless all of its visible scores are NaN. That case
                        // must stay NaN.
                        if weights.iter().any(|score| score.is_nan()) {
                            sums[row] = f32::NAN;
                        }
                        weights.fill(0.0);
                        continue;
                    }
                    maxima[row] = max;
                    let sum = exp_and_sum(simd, weights, max);
                    if let Some(dropout) = &plan.dropout {
                        tile::drop_some(weights, dropout, plan, &place, first + row, column);
                    }
                    if before == f32::NEG_INFINITY {
                        sums[row] += sum;
                        continue;
                    }
                    // The sums so far were taken under the old maximum: this scales them to the
                    // new one.
                    let shrink = exp(simd, before - max);
                    sums[row] = sums[row] * shrink + sum;
                    if shrink != 1.0 {
                        for z in &mut z[row * width..][..width] {
                            *z *= shrink;
                        }
                    }
                }
                let weights = Matrix {
                    row_stride: stride,
                    ..Matrix::dense(scores, block.len(), seen.end)
                };
                block_product(
                    simd,
                    &mut z[from * width..],
                    width,
                    Onto::Out,
                    1.0,
                    weights.some_columns(seen.start, seen.len()),
                    value.some_rows(keys.start + seen.start, seen.len()),
                );
            }
        }
        let outputs = output.chunks_mut(heads * d_value);
        let log_sums = log_sums.iter_mut().step_by(heads);
        for (row, (output, log_sum)) in outputs.zip(log_sums).enumerate() {
            if sums[row] != 0.0 {
                *log_sum = maxima[row] + sums[row].ln();
                let share = 1.0 / sums[row];
                for (output, z) in output[..d_value].iter_mut().zip(&z[row * width..]) {
                    *output = z * share;
                }
            }
        }
    }
}
