//! A matrix turned, so that its columns become rows.

use std::slice::from_ref;

use pulp::{
    Simd,
    bytemuck::{cast_slice, pod_read_unaligned},
};

use crate::Matrix;

/// Rows that are turned at once.
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
        rows = matrix.rows / FOUR * FOUR;
        columns = matrix.columns / lanes * lanes;
    }
    // Down a column first: the lines of the cache that are begun are then filled one after another.
    for j in (0..columns).step_by(lanes) {
        for i in (0..rows).step_by(FOUR) {
            four_rows(
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

/// Turns rows `i .. i + 4` of as many columns from `j` on as a vector has lanes.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "a check of every four numbers takes longer than to write them"
)]
fn four_rows<S: Simd>(
    simd: S,
    matrix: Matrix,
    i: usize,
    j: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    let mut vectors = [simd.splat_f32s(0.0); FOUR];
    for (row, vector) in vectors.iter_mut().enumerate() {
        let from = matrix.start + (i + row) * matrix.row_stride + j;
        let numbers = &matrix.data[from..from + S::F32_LANES];
        *vector = pod_read_unaligned(cast_slice(numbers));
    }
    // Each 4×4 square inside the four vectors is turned: vector `v` then holds columns `v`, `4 + v`,
    // `8 + v` and so on, four rows of each.
    let vectors = simd.deinterleave_shfl_f32s(vectors);
    let last = (S::F32_LANES - 1) * out_stride + FOUR;
    let out = &mut out[..last];
    for (v, vector) in vectors.iter().enumerate() {
        let numbers: &[f32] = cast_slice(from_ref(vector));
        let (squares, _) = numbers.as_chunks::<FOUR>();
        for (square, four) in squares.iter().enumerate() {
            let from = (square * FOUR + v) * out_stride;
            // SAFETY: `square·4 + v` is less than the number of lanes, so that four numbers from
            // there on lie inside `out`, as its length says.
            unsafe {
                out.as_mut_ptr()
                    .add(from)
                    .cast::<[f32; FOUR]>()
                    .write(*four);
            }
        }
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
