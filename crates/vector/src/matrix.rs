//! Products of small strided matrices.

use gemm::Parallelism;

/// A matrix inside a slice: element (i, j) is `data[start + i·row_stride + j·column_stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// Where it lies.
    pub data: &'a [f32],
    /// Where in it element (0, 0) is.
    pub start: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// From a row to the next.
    pub row_stride: usize,
    /// From a column to the next.
    pub column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    #[must_use]
    pub fn dense(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self { data, start: 0, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Rows as columns.
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
    #[must_use]
    pub fn some_rows(self, from: usize, count: usize) -> Self {
        Self { start: self.start + from * self.row_stride, rows: count, ..self }
    }

    /// Row `i`, if its elements lie next to each other.
    #[must_use]
    pub fn row(self, i: usize) -> Option<&'a [f32]> {
        let from = self.start + i * self.row_stride;
        (self.column_stride == 1).then(|| &self.data[from..from + self.columns])
    }

    fn last_index(&self) -> usize {
        self.start + (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
    }
}

/// `out ← factor·left·right`, or `out ← out + factor·left·right`; row `i` of `out` begins at `i·out_stride`.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[allow(unsafe_code, reason = "the library's entry takes pointers; every bound is checked before")]
pub fn product(out: &mut [f32], out_stride: usize, add: bool, factor: f32, left: Matrix, right: Matrix) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    assert!(right.rows == inner, "matrix product of {rows}×{inner} and {}×{columns}", right.rows);
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(
        out_stride >= columns && out.len() >= (rows - 1) * out_stride + columns,
        "matrix product outside its slice"
    );
    if inner == 0 {
        if !add {
            out.chunks_mut(out_stride).take(rows).for_each(|row| row[..columns].fill(0.0));
        }
        return;
    }
    assert!(left.last_index() < left.data.len() && right.last_index() < right.data.len(), "matrix outside its slice");
    // SAFETY: both inputs and the output lie inside their slices, as asserted; the output is borrowed mutably, so it
    // overlaps neither input.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
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
            Parallelism::None,
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
        product(&mut out, 2, false, 1.0, Matrix::dense(&a, 2, 2), Matrix::dense(&b, 2, 2));
        assert_eq!(out, [19.0, 22.0, 43.0, 50.0]);
        product(&mut out, 2, true, 2.0, Matrix::dense(&a, 2, 2), Matrix::dense(&b, 2, 2).transposed());
        assert_eq!(out, [19.0 + 34.0, 22.0 + 46.0, 43.0 + 78.0, 50.0 + 106.0]);
        product(&mut out, 2, false, 1.0, Matrix::dense(&a, 2, 2).some_rows(1, 1), Matrix::dense(&b, 2, 2));
        assert_eq!(out[..2], [3.0 * 5.0 + 4.0 * 7.0, 3.0 * 6.0 + 4.0 * 8.0]);

        // Rows of the output apart from each other: what lies between stays.
        let mut apart = [9.0; 6];
        product(&mut apart, 4, false, 1.0, Matrix::dense(&a, 2, 2), Matrix::dense(&b, 2, 2));
        assert_eq!(apart, [19.0, 22.0, 9.0, 9.0, 43.0, 50.0]);
        product(&mut apart, 4, false, 1.0, Matrix::dense(&[], 2, 0), Matrix::dense(&[], 0, 2));
        assert_eq!(apart, [0.0, 0.0, 9.0, 9.0, 0.0, 0.0]);
    }
}
