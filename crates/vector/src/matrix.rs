//! Products of small strided matrices.

use std::ops::Range;

use pulp::Simd;
use rayon::prelude::*;

use crate::{BLOCK, Kernel, Onto, WIDEST, panels::write_product, vectorised};

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

/// `out ← onto + factor·left·right`; row `i` of `out` begins at `i·out_stride`. Large products use
/// all threads of the current pool.
///
/// Each number is a sum in the order of the columns of `left`, in steps of 256. It depends on no
/// other row and no other column: any part of a product has the bits of the whole. The one exception
/// is a single row times a matrix whose columns lie in one piece each.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[allow(unsafe_code, reason = "parts of the product are written side by side")]
pub fn product(
    out: &mut [f32],
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    let (rows, columns) = (left.rows, right.columns);
    if rows == 0 || columns == 0 {
        return;
    }
    assert_holds(out, out_stride, rows, columns);
    // SAFETY: the slice holds `rows` rows of `columns` numbers, as asserted.
    unsafe { write_in_parts(out.as_mut_ptr(), out_stride, onto, factor, left, right) }
}

/// `left·right + bias` as new rows, one after the other, as [`product`] computes them.
///
/// The memory of the rows is written once and not cleared before.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[must_use]
#[allow(unsafe_code, reason = "the memory of the rows is not cleared before")]
pub fn new_product(left: Matrix, right: Matrix, bias: Option<&[f32]>) -> Vec<f32> {
    let (rows, columns) = (left.rows, right.columns);
    let onto = match bias {
        Some(bias) => Onto::Row(bias),
        None => Onto::Zeros,
    };
    let mut out = Vec::with_capacity(rows * columns);
    // SAFETY: `out` has room for all rows, and no number is read before it is written. Then all are.
    unsafe {
        write_in_parts(out.as_mut_ptr(), columns, onto, 1.0, left, right);
        out.set_len(rows * columns);
    }
    out
}

/// The number of multiplications below which one thread is faster than two.
const MOST_ALONE: usize = 1 << 22;

/// A product in parts that threads take in turn.
///
/// # Safety
/// Row `i` of `out` may be written (with [`Onto::Out`], also read) from `i·out_stride` on, for each
/// row of `left` and as far as `right` has columns.
#[allow(unsafe_code, reason = "parts of the product are written side by side")]
unsafe fn write_in_parts(
    out: *mut f32,
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    assert_inside(left, right);
    let (rows, columns) = (left.rows, right.columns);
    if let Onto::Row(row) = onto {
        assert!(row.len() == columns, "{columns} columns onto {}", row.len());
    }
    if rows == 0 || columns == 0 {
        return;
    }
    let out = Place(out);
    let write = |part: Part| {
        let Part { row, column } = part;
        vectorised(PartOfProduct {
            // SAFETY: the caller's promise; parts do not overlap.
            out: unsafe { out.at(row.start * out_stride + column.start) },
            out_stride,
            onto: onto.skipping(column.start),
            factor,
            left: left.some_rows(row.start, row.len()),
            right: right.some_columns(column.start, column.len()),
        });
    };
    let threads = rayon::current_num_threads();
    let pays = threads > 1 && rows * columns * left.columns >= MOST_ALONE;
    let parts = parts(left, right, if pays { threads } else { 1 });
    if pays {
        parts.into_par_iter().for_each(write);
    } else {
        parts.into_iter().for_each(write);
    }
}

/// Rows and columns of a product.
struct Part {
    row: Range<usize>,
    column: Range<usize>,
}

/// Rows of a part for which its panels are worth being laid out.
const ROWS_OF_THREAD: usize = 64;

/// A part for each thread, of whole vectors. Every part lays its panels out itself, so that threads
/// share rows only where there are many, panels need not be turned, and columns cannot be shared
/// evenly.
fn parts(left: Matrix, right: Matrix, threads: usize) -> Vec<Part> {
    let (rows, columns) = (left.rows, right.columns);
    let vectors = columns.div_ceil(WIDEST);
    let shares_rows = right.column_stride == 1
        && rows >= threads * ROWS_OF_THREAD
        && !vectors.is_multiple_of(threads);
    let of_columns = if shares_rows { 1 } else { threads.min(vectors) };
    let columns_in_part = vectors.div_ceil(of_columns) * WIDEST;
    let of_rows = threads.div_ceil(of_columns);
    let rows_in_part = rows.div_ceil(of_rows).next_multiple_of(BLOCK);
    let mut parts = Vec::new();
    for row in (0..rows).step_by(rows_in_part) {
        for column in (0..columns).step_by(columns_in_part) {
            parts.push(Part {
                row: row..(row + rows_in_part).min(rows),
                column: column..(column + columns_in_part).min(columns),
            });
        }
    }
    parts
}

/// A place that several threads write beside.
#[derive(Clone, Copy)]
struct Place(*mut f32);

// SAFETY: `write_in_parts` lets no two threads write the same numbers.
#[allow(unsafe_code, reason = "parts of the product are written side by side")]
unsafe impl Send for Place {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "parts of the product are written side by side")]
unsafe impl Sync for Place {}

impl Place {
    /// # Safety
    /// The place lies in the same memory.
    #[allow(unsafe_code, reason = "parts of the product are written side by side")]
    unsafe fn at(self, distance: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(distance) }
    }
}

struct PartOfProduct<'a> {
    out: *mut f32,
    out_stride: usize,
    onto: Onto<'a>,
    factor: f32,
    left: Matrix<'a>,
    right: Matrix<'a>,
}

impl Kernel for PartOfProduct<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(unsafe_code, reason = "the memory of the rows is not cleared before")]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            out,
            out_stride,
            onto,
            factor,
            left,
            right,
        } = self;
        // SAFETY: `write_in_parts` makes parts of memory that its caller may write.
        unsafe { write_product(simd, out, out_stride, onto, factor, left, right) }
    }
}

/// Panics unless `out` holds as many rows, of which row `i` begins at `i·out_stride`, and columns.
#[inline(always)]
pub(crate) fn assert_holds(out: &[f32], out_stride: usize, rows: usize, columns: usize) {
    assert!(
        out_stride >= columns && out.len() >= (rows - 1) * out_stride + columns,
        "matrix product outside its slice"
    );
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of product has the bits of a sum in steps of 256, whatever the number of rows.
    #[test]
    fn a_row_has_the_same_bits_in_every_product() {
        let numbers: Vec<f32> = (0..70_000)
            .map(|i| ((i * 7919) % 10_007) as f32 / 10_007.0 - 0.5)
            .collect();
        for (inner, columns) in [(1, 1), (64, 64), (300, 65), (513, 130), (7, 16)] {
            let dense = Matrix::dense(&numbers, inner, columns);
            let turned: Vec<f32> = (0..columns * inner)
                .map(|i| dense.at(i % inner, i / inner))
                .collect();
            let turned = Matrix::dense(&turned, columns, inner).transposed();
            let bias = &numbers[1000..1000 + columns];
            let left = Matrix::dense(&numbers[2000..], 100, inner);
            let whole = new_product(left, dense, Some(bias));
            for (i, number) in whole.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let mut expected = bias[column];
                for from in (0..inner).step_by(256) {
                    let sum = (from..inner.min(from + 256)).fold(0.0_f32, |sum, p| {
                        left.at(row, p).mul_add(dense.at(p, column), sum)
                    });
                    expected += sum;
                }
                assert!(
                    (number - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                    "{number} {expected}"
                );
                let has_fma = cfg!(target_arch = "aarch64")
                    || cfg!(target_arch = "x86_64") && std::is_x86_feature_detected!("fma");
                if has_fma {
                    assert_eq!(*number, expected, "{inner}×{columns}: ({row}, {column})");
                }
            }
            for right in [dense, turned] {
                for (first, rows) in [(0, 1), (3, 12), (40, 13), (0, 100)] {
                    let part = new_product(left.some_rows(first, rows), right, Some(bias));
                    let expected = &whole[first * columns..][..rows * columns];
                    if rows == 1 && right.row_stride == 1 {
                        for (number, expected) in part.iter().zip(expected) {
                            assert!((number - expected).abs() <= 1e-5 * expected.abs().max(1.0));
                        }
                        continue;
                    }
                    assert_eq!(part, expected);
                    let mut out: Vec<f32> = (0..rows * (columns + 3)).map(|i| i as f32).collect();
                    let onto = Onto::Row(bias);
                    let left = left.some_rows(first, rows);
                    product(&mut out, columns + 3, onto, 1.0, left, right);
                    for (i, number) in out.iter().enumerate() {
                        let (row, column) = (i / (columns + 3), i % (columns + 3));
                        let expected = if column < columns {
                            whole[(first + row) * columns + column]
                        } else {
                            i as f32
                        };
                        assert_eq!(*number, expected);
                    }
                }
            }
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(3)
            .build()
            .unwrap();
        let left = Matrix::dense(&numbers, 100, 600);
        let right = Matrix::dense(&numbers, 600, 110);
        let few = Matrix::dense(&numbers, 3, 20);
        let wide: Vec<f32> = numbers.iter().cycle().copied().take(20 * 80_000).collect();
        let wide = Matrix::dense(&wide, 20, 80_000);
        let alone = (new_product(left, right, None), new_product(few, wide, None));
        let together =
            pool.install(|| (new_product(left, right, None), new_product(few, wide, None)));
        assert_eq!(alone, together);
    }

    #[test]
    fn products_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let mut out = [1.0; 4];
        product(
            &mut out,
            2,
            Onto::Zeros,
            1.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2),
        );
        assert_eq!(out, [19.0, 22.0, 43.0, 50.0]);
        product(
            &mut out,
            2,
            Onto::Out,
            2.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2).transposed(),
        );
        assert_eq!(out, [19.0 + 34.0, 22.0 + 46.0, 43.0 + 78.0, 50.0 + 106.0]);
        product(
            &mut out,
            2,
            Onto::Zeros,
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
            Onto::Zeros,
            1.0,
            Matrix::dense(&a, 2, 2),
            Matrix::dense(&b, 2, 2),
        );
        assert_eq!(apart, [19.0, 22.0, 9.0, 9.0, 43.0, 50.0]);
        product(
            &mut apart,
            4,
            Onto::Zeros,
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
