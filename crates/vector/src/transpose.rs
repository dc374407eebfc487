//! A matrix turned, so that its columns become rows.

use std::slice::from_mut;

use pulp::{Simd, bytemuck::cast_slice_mut};

use crate::Matrix;

/// Columns that are turned at once.
const FOUR: usize = 4;

/// Writes `matrix` turned: element (i, j) becomes `out[j·out_stride + i]`.
///
/// # Panics
/// If the sizes reach outside their slices.
#[inline(always)]
pub fn transpose<S: Simd>(simd: S, matrix: Matrix, out: &mut [f32], out_stride: usize) {
    let lanes = S::F32_LANES;
    let (mut rows, mut columns) = (0, 0);
    if matrix.column_stride == 1 && lanes >= FOUR {
        rows = matrix.rows / lanes * lanes;
        columns = matrix.columns / FOUR * FOUR;
    }
    for i in (0..rows).step_by(lanes) {
        for j in (0..columns).step_by(FOUR) {
            four_columns(
                simd,
                matrix,
                i,
                j,
                &mut out[j * out_stride + i..],
                out_stride,
            );
        }
    }
    for i in 0..matrix.rows {
        let from = if i < rows { columns } else { 0 };
        for j in from..matrix.columns {
            out[j * out_stride + i] = matrix.at(i, j);
        }
    }
}

/// Turns columns `j .. j + 4` of as many rows from `i` on as a vector has lanes.
#[inline(always)]
fn four_columns<S: Simd>(
    simd: S,
    matrix: Matrix,
    i: usize,
    j: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    // Vector `v` holds four numbers of row `v`, of row `4 + v`, of row `8 + v` and so on. To
    // deinterleave four such vectors turns each 4×4 square inside them.
    let mut vectors = [simd.splat_f32s(0.0); FOUR];
    for (v, vector) in vectors.iter_mut().enumerate() {
        let numbers: &mut [f32] = cast_slice_mut(from_mut(vector));
        for (square, four) in numbers.chunks_exact_mut(FOUR).enumerate() {
            let row = i + square * FOUR + v;
            let from = matrix.start + row * matrix.row_stride + j;
            four.copy_from_slice(&matrix.data[from..from + FOUR]);
        }
    }
    for (v, vector) in simd.deinterleave_shfl_f32s(vectors).iter_mut().enumerate() {
        let numbers: &mut [f32] = cast_slice_mut(from_mut(vector));
        out[v * out_stride..][..numbers.len()].copy_from_slice(numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, for_tests::on_every_processor};

    #[derive(Clone, Copy)]
    struct TurnsEverySize;

    impl Kernel for TurnsEverySize {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let numbers: Vec<f32> = (0..5000).map(|i| i as f32).collect();
            for (rows, columns) in [(1, 1), (16, 4), (37, 19), (32, 64), (7, 40), (64, 3)] {
                let apart = Matrix {
                    start: 11,
                    row_stride: columns + 2,
                    ..Matrix::dense(&numbers, rows, columns)
                };
                let turned = Matrix::dense(&numbers, columns, rows).transposed();
                for matrix in [apart, turned] {
                    let stride = rows + 3;
                    let mut out = vec![-1.0; columns * stride];
                    transpose(simd, matrix, &mut out, stride);
                    for (i, &number) in out.iter().enumerate() {
                        let (j, i) = (i / stride, i % stride);
                        let expected = if i < rows { matrix.at(i, j) } else { -1.0 };
                        assert_eq!(number, expected, "{rows}×{columns} at ({i}, {j})");
                    }
                }
            }
        }
    }

    #[test]
    fn every_size_is_turned_and_nothing_else_is_written() {
        on_every_processor(TurnsEverySize);
    }
}
