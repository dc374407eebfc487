//! Products of small strided matrices.

use gemm::Parallelism;

/// A matrix inside a slice: element (i, j) is `data[start + i·row_stride + j·column_stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The slice that holds the matrix.
    pub data: &'a [f32],
    /// The index of element (0, 0).
    pub start: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The distance from a row to the next.
    pub row_stride: usize,
    /// The distance from a column to the next.
    pub column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix whose rows follow each other.
    #[inline(always)]
    #[must_use]
    pub fn dense(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self {
            data,
            start: 0,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
    }

    /// The transpose.
    #[inline(always)]
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// Rows `from .. from + count`.
    #[inline(always)]
    #[must_use]
    pub fn some_rows(self, from: usize, count: usize) -> Self {
        Self {
            start: self.start + from * self.row_stride,
            rows: count,
            ..self
        }
    }

    /// Columns `from .. from + count`.
    #[inline(always)]
    #[must_use]
    pub fn some_columns(self, from: usize, count: usize) -> Self {
        Self {
            start: self.start + from * self.column_stride,
            columns: count,
            ..self
        }
    }

    /// Row `i`, if its elements lie next to each other.
    #[inline(always)]
    #[must_use]
    pub fn row(self, i: usize) -> Option<&'a [f32]> {
        let from = self.start + i * self.row_stride;
        (self.column_stride == 1).then(|| &self.data[from..from + self.columns])
    }

    /// Element (i, j).
    #[inline(always)]
    #[must_use]
    pub fn at(self, i: usize, j: usize) -> f32 {
        self.data[self.start + i * self.row_stride + j * self.column_stride]
    }

    #[inline(always)]
    pub(crate) fn last_index(&self) -> usize {
        self.start + (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
    }
}

/// `out ← factor·left·right`, or `out ← out + factor·left·right`; row `i` of `out` begins at
/// `i·out_stride`.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[allow(
    unsafe_code,
    reason = "the library's entry takes pointers; every bound is checked before"
)]
pub fn product(
    out: &mut [f32],
    out_stride: usize,
    add: bool,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    let (rows, columns) = (left.rows, right.columns);
    assert_inside(left, right);
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(
        out_stride >= columns && out.len() >= (rows - 1) * out_stride + columns,
        "matrix product outside its slice"
    );
    if left.columns == 0 {
        if !add {
            out.chunks_mut(out_stride)
                .take(rows)
                .for_each(|row| row[..columns].fill(0.0));
        }
        return;
    }
    // SAFETY: both inputs and the output lie inside their slices, as asserted; the output is
    // borrowed mutably, so it overlaps neither input.
    unsafe {
        multiply(
            out.as_mut_ptr(),
            out_stride,
            add,
            factor,
            left,
            right,
            Parallelism::None,
        );
    }
}

/// `left·right + bias` as new rows, one after the other. Large products use all threads of the
/// current pool.
///
/// The memory of the rows is written once and not cleared before.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[must_use]
#[allow(
    unsafe_code,
    reason = "the library's entry takes pointers; every bound is checked before"
)]
pub fn new_product(left: Matrix, right: Matrix, bias: Option<&[f32]>) -> Vec<f32> {
    let (rows, columns) = (left.rows, right.columns);
    assert_inside(left, right);
    assert!(
        bias.is_none_or(|bias| bias.len() == columns),
        "{columns} columns with another number of biases"
    );
    let size = rows * columns;
    let mut out = Vec::with_capacity(size);
    if let Some(bias) = bias {
        (0..rows).for_each(|_| out.extend_from_slice(bias));
    }
    if size == 0 || left.columns == 0 {
        out.resize(size, 0.0);
        return out;
    }
    let pays = rayon::current_num_threads() > 1 && size * left.columns >= MOST_ALONE;
    let threads = if pays {
        Parallelism::Rayon(0)
    } else {
        Parallelism::None
    };
    // SAFETY: both inputs lie inside their slices, as asserted; `out` has room for rows·columns
    // numbers and is nobody else's. They are all written: read before only where the bias has
    // filled them.
    unsafe {
        multiply(
            out.as_mut_ptr(),
            columns,
            bias.is_some(),
            1.0,
            left,
            right,
            threads,
        );
        out.set_len(size);
    }
    out
}

/// The number of multiplications below which one thread is faster than two.
const MOST_ALONE: usize = 1 << 22;

#[inline(always)]
pub(crate) fn assert_inside(left: Matrix, right: Matrix) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    assert!(
        right.rows == inner,
        "matrix product of {rows}×{inner} and {}×{columns}",
        right.rows
    );
    if rows > 0 && inner > 0 && columns > 0 {
        let inside = left.last_index() < left.data.len() && right.last_index() < right.data.len();
        assert!(inside, "matrix outside its slice");
    }
}

/// # Safety
/// No size is 0, both inputs lie inside their slices, and row `i` of `out` may be written (with
/// `add`, also read) from `i·out_stride` on.
#[allow(unsafe_code, reason = "the library's entry takes pointers")]
unsafe fn multiply(
    out: *mut f32,
    out_stride: usize,
    add: bool,
    factor: f32,
    left: Matrix,
    right: Matrix,
    threads: Parallelism,
) {
    // SAFETY: the caller's promise.
    unsafe {
        gemm::gemm(
            left.rows,
            right.columns,
            left.columns,
            out,
            1,
            out_stride as isize,
            add,
            left.data.as_ptr().add(left.start),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr().add(right.start),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            factor,
            false,
            false,
            false,
            threads,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let mut out = [1.0; 4];
        product(
            &mut out,
            2,
            false,
            1.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2),
        );
        assert_eq!(out, [19.0, 22.0, 43.0, 50.0]);
        product(
            &mut out,
            2,
            true,
            2.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2).transposed(),
        );
        assert_eq!(out, [19.0 + 34.0, 22.0 + 46.0, 43.0 + 78.0, 50.0 + 106.0]);
        product(
            &mut out,
            2,
            false,
            1.0,
            Matrix::dense(&a, 2, 2).some_rows(1, 1),
            Matrix::dense(&b, 2, 2),
        );
        assert_eq!(out[..2], [3.0 * 5.0 + 4.0 * 7.0, 3.0 * 6.0 + 4.0 * 8.0]);

        // Rows of the output with gaps between them: the gaps keep their numbers.
        let mut apart = [9.0; 6];
        product(
            &mut apart,
            4,
            false,
            1.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2),
        );
        assert_eq!(apart, [19.0, 22.0, 9.0, 9.0, 43.0, 50.0]);
        product(
            &mut apart,
            4,
            false,
            1.0,
            Matrix::dense(&[], 2, 0),
            Matrix::dense(&[], 0, 2),
        );
        assert_eq!(apart, [0.0, 0.0, 9.0, 9.0, 0.0, 0.0]);

        let (a, b) = (Matrix::dense(&a, 2, 2), Matrix::dense(&b, 2, 2));
        assert_eq!(new_product(a, b, None), [19.0, 22.0, 43.0, 50.0]);
        assert_eq!(
            new_product(a, b, Some(&[1.0, -1.0])),
            [20.0, 21.0, 44.0, 49.0]
        );
        let nothing = Matrix::dense(&[], 2, 0);
        assert_eq!(
            new_product(nothing, Matrix::dense(&[], 0, 2), Some(&[1.0, 2.0])),
            [1.0, 2.0, 1.0, 2.0]
        );
        assert_eq!(
            new_product(nothing, Matrix::dense(&[], 0, 1), None),
            [0.0, 0.0]
        );
    }
}
