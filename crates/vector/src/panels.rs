//! The right factor of a product in panels: the innermost loop reads each from begin to end.

use std::{borrow::Cow, cell::Cell};

use pulp::Simd;

use crate::{
    BLOCK, Kernel, Matrix, Onto, WIDEST, block::write_block_product, block_product, dot,
    matrix::assert_holds, transpose, vectorised,
};

/// Rows of a panel: the length of a step in which the sums of products are added up.
pub const DEPTH: usize = 256;

/// Columns of a panel where vectors are widest.
const WIDEST_PANEL: usize = 4 * WIDEST;

/// Rows of the left factor for which a panel is read once: they stay in the second-level cache.
const ROWS: usize = 16 * BLOCK;

/// Columns whose panels are laid out together: they stay in the second-level cache, too.
const COLUMNS: usize = 512;

/// Numbers in a line of the cache.
const LINE: usize = 16;

/// A right factor in panels: as many columns as a block of sums has in registers, and up to 256
/// rows, one after the other.
#[derive(Debug, Clone)]
pub struct Panels<'a> {
    numbers: Cow<'a, [f32]>,
    layout: Layout,
}

/// How panels lie in a slice.
#[derive(Debug, Clone, Copy)]
struct Layout {
    start: usize,
    rows: usize,
    columns: usize,
    /// Columns with those that fill up whole vectors.
    padded: usize,
    /// Columns of a panel; the last one may have fewer.
    width: usize,
    /// Whether the matrix is one panel already: it is read as it lies.
    is_matrix: bool,
}

impl Layout {
    /// The panels of `matrix`: itself, or the `room` that they were laid out in.
    fn of<'a>(self, matrix: Matrix<'a>, room: Cow<'a, [f32]>) -> Panels<'a> {
        let numbers = if self.is_matrix {
            Cow::Borrowed(matrix.data)
        } else {
            room
        };
        let layout = self;
        Panels { numbers, layout }
    }
}

impl<'a> Panels<'a> {
    /// Lays a matrix out. Where it is one panel, it is read as it lies.
    ///
    /// # Panics
    /// If the matrix reaches outside its slice.
    #[must_use]
    pub fn new(matrix: Matrix<'a>) -> Self {
        let mut room = Vec::new();
        let layout = vectorised(LayOut {
            matrix,
            room: &mut room,
        });
        layout.of(matrix, Cow::Owned(room))
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.layout.columns
    }

    /// The panel of the rows from `row` and the columns from `column` on.
    #[inline(always)]
    fn panel(&self, row: usize, column: usize) -> Matrix<'_> {
        let layout = self.layout;
        let rows = DEPTH.min(layout.rows - row);
        let columns = layout.width.min(layout.padded - column);
        Matrix {
            start: layout.start + row * layout.padded + rows * column,
            ..Matrix::dense(&self.numbers, rows, columns)
        }
    }
}

struct LayOut<'a> {
    matrix: Matrix<'a>,
    /// Memory for the panels; it grows if it has to.
    room: &'a mut Vec<f32>,
}

impl Kernel for LayOut<'_> {
    type Output = Layout;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Layout {
        let Self { matrix, room } = self;
        let width = panel_width::<S>();
        let padded = matrix.columns.next_multiple_of(S::F32_LANES);
        let rows_in_line = matrix.column_stride == 1 && matrix.row_stride == padded;
        let is_matrix = rows_in_line && matrix.columns == padded && padded <= width;
        let layout = Layout {
            start: matrix.start,
            rows: matrix.rows,
            columns: matrix.columns,
            padded,
            width,
            is_matrix,
        };
        if is_matrix {
            return layout;
        }
        let size = matrix.rows * padded;
        if room.len() < size + LINE {
            *room = vec![0.0; size + LINE];
        }
        // Panels begin where a line of the cache begins.
        let start = room
            .as_ptr()
            .align_offset(LINE * size_of::<f32>())
            .min(LINE);
        let mut rest = &mut room[start..];
        for row in steps(matrix.rows) {
            let rows = matrix.some_rows(row, DEPTH.min(matrix.rows - row));
            for column in (0..matrix.columns).step_by(width) {
                let part = rows.some_columns(column, width.min(matrix.columns - column));
                let columns = width.min(padded - column);
                let (panel, after) = rest.split_at_mut(part.rows * columns);
                lay_out(simd, part, panel, columns);
                rest = after;
            }
        }
        Layout { start, ..layout }
    }
}

/// The first rows of the steps in which a sum is added up. An empty sum has a step, too: it is
/// written.
fn steps(depth: usize) -> impl Iterator<Item = usize> {
    (0..depth.max(1)).step_by(DEPTH)
}

/// Columns of a panel: the registers hold the sums of a block of so many.
fn panel_width<S: Simd>() -> usize {
    let vectors = if S::REGISTER_COUNT >= 32 { 4 } else { 2 };
    vectors * S::F32_LANES
}

/// Writes the rows of `matrix` into `panel`, `width` apart. What stands between them stays.
#[inline(always)]
fn lay_out<S: Simd>(simd: S, matrix: Matrix, panel: &mut [f32], width: usize) {
    if matrix.column_stride != 1 {
        transpose(simd, matrix.transposed(), panel, width);
        return;
    }
    for (i, out) in panel.chunks_exact_mut(width).enumerate() {
        let from = matrix.start + i * matrix.row_stride;
        let row = &matrix.data[from..from + matrix.columns];
        // Vectors rather than a call for so few numbers.
        let (vectors, rest) = row.as_chunks::<WIDEST>();
        let (out, rest_out) = out[..matrix.columns].as_chunks_mut::<WIDEST>();
        for (out, vector) in out.iter_mut().zip(vectors) {
            *out = *vector;
        }
        rest_out.copy_from_slice(rest);
    }
}

/// `out ← onto + factor·left·right`; row `i` of `out` begins at `i·out_stride`.
///
/// Each number is a sum in the order of the columns of `left`, in steps of 256. It depends on no
/// other row and no other column: any part of a product has the bits of the whole.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "the innermost products take memory that is not initialised"
)]
pub fn panel_product<S: Simd>(
    simd: S,
    out: &mut [f32],
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: &Panels,
) {
    let Layout {
        rows: inner,
        columns,
        ..
    } = right.layout;
    let rows = left.rows;
    assert!(
        left.columns == inner,
        "matrix product of {rows}×{} and {inner}×{columns}",
        left.columns
    );
    if rows == 0 || columns == 0 {
        return;
    }
    assert_holds(out, out_stride, rows, columns);
    for from in steps(inner) {
        let left = left.some_columns(from, DEPTH.min(inner - from));
        let onto = if from == 0 { onto } else { Onto::Out };
        // SAFETY: `out` has as many rows and columns, as asserted.
        unsafe {
            write_step(
                simd,
                out.as_mut_ptr(),
                out_stride,
                onto,
                factor,
                left,
                right,
                from,
            );
        };
    }
}

/// The same numbers as [`panel_product`], into memory that need not be initialised, unless the
/// product is added to it. The panels of some columns and one step are laid out at a time.
///
/// # Safety
/// Row `i` of `out` may be written (with [`Onto::Out`], also read) from `i·out_stride` on, for each
/// row of `left` and as far as `right` has columns. `left` has as many columns as `right` rows.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
pub(crate) unsafe fn write_product<S: Simd>(
    simd: S,
    out: *mut f32,
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    if left.rows == 1 && left.column_stride == 1 && right.row_stride == 1 {
        // SAFETY: the caller's promise.
        unsafe { write_dots(simd, out, onto, factor, left, right) };
        return;
    }
    if left.rows <= FEW_ROWS && right.column_stride == 1 {
        // SAFETY: the caller's promise.
        unsafe { write_in_place(simd, out, out_stride, onto, factor, left, right) };
        return;
    }
    let mut room = ROOM.take();
    for first in (0..right.columns).step_by(COLUMNS) {
        let columns = right.some_columns(first, COLUMNS.min(right.columns - first));
        let onto = onto.skipping(first);
        for from in steps(right.rows) {
            let matrix = columns.some_rows(from, DEPTH.min(right.rows - from));
            let room = &mut room;
            let layout = LayOut { matrix, room }.run(simd);
            let panels = layout.of(matrix, Cow::Borrowed(room));
            let left = left.some_columns(from, matrix.rows);
            let onto = if from == 0 { onto } else { Onto::Out };
            // SAFETY: the caller's promise.
            unsafe {
                write_step(
                    simd,
                    out.add(first),
                    out_stride,
                    onto,
                    factor,
                    left,
                    &panels,
                    0,
                );
            };
        }
    }
    ROOM.set(room);
}

thread_local! {
    /// The panels of a product, at most 512 KiB: the next product of the thread uses the same
    /// memory, which lies in the cache.
    static ROOM: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// A step of the sums: the rows of panels from `from` on.
///
/// # Safety
/// As [`write_block_product`], for all rows of `left` and the columns of `right`.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
#[allow(clippy::too_many_arguments, reason = "a product and a row")]
unsafe fn write_step<S: Simd>(
    simd: S,
    out: *mut f32,
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: &Panels,
    from: usize,
) {
    let Layout { columns, width, .. } = right.layout;
    for first in (0..left.rows).step_by(ROWS) {
        let left = left.some_rows(first, ROWS.min(left.rows - first));
        for column in (0..columns).step_by(width) {
            let panel = right.panel(from, column);
            let columns = width.min(columns - column);
            let onto = onto.skipping(column);
            // SAFETY: the caller's promise.
            unsafe {
                let out = out.add(first * out_stride + column);
                write_columns(simd, out, out_stride, columns, onto, factor, left, panel);
            }
        }
    }
}

/// The product of few rows with a matrix whose rows are read where they lie, apart from columns that
/// fill no vector.
///
/// # Safety
/// As [`write_product`].
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
unsafe fn write_in_place<S: Simd>(
    simd: S,
    out: *mut f32,
    out_stride: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    let width = panel_width::<S>();
    for column in (0..right.columns).step_by(width) {
        let columns = width.min(right.columns - column);
        let onto = onto.skipping(column);
        for from in steps(right.rows) {
            let inner = DEPTH.min(right.rows - from);
            let part = right.some_rows(from, inner).some_columns(column, columns);
            let padded = columns.next_multiple_of(S::F32_LANES);
            let mut room = Vec::new();
            let panel = if columns == padded {
                part
            } else {
                room.resize(inner * padded, 0.0);
                lay_out(simd, part, &mut room, padded);
                Matrix::dense(&room, inner, padded)
            };
            let left = left.some_columns(from, inner);
            let onto = if from == 0 { onto } else { Onto::Out };
            // SAFETY: the caller's promise.
            unsafe {
                let out = out.add(column);
                write_columns(simd, out, out_stride, columns, onto, factor, left, panel);
            }
        }
    }
}

/// One row times a matrix that lies turned, as the unembedding of a tied model. To lay it out would
/// take longer than the product, so that these sums have another order.
///
/// # Safety
/// As [`write_product`].
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
unsafe fn write_dots<S: Simd>(
    simd: S,
    out: *mut f32,
    onto: Onto,
    factor: f32,
    left: Matrix,
    right: Matrix,
) {
    let row = &left.data[left.start..][..left.columns];
    for j in 0..right.columns {
        let column = &right.data[right.start + j * right.column_stride..][..right.rows];
        let product = factor * dot(simd, row, column);
        // SAFETY: the caller's promise.
        unsafe {
            let place = out.add(j);
            onto.write(place, j, product);
        }
    }
}

/// With so many rows or fewer, a right factor is read where it lies.
const FEW_ROWS: usize = 2 * BLOCK;

/// The product of all rows of `left` and of a panel, of which the first `columns` are wanted.
///
/// # Safety
/// As [`write_block_product`], for these columns.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
#[allow(
    clippy::too_many_arguments,
    reason = "a product and a number of columns"
)]
unsafe fn write_columns<S: Simd>(
    simd: S,
    out: *mut f32,
    out_stride: usize,
    columns: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    panel: Matrix,
) {
    let mut row = 0;
    while row < left.rows {
        let left = left.some_rows(row, rows_of_next_block(left.rows - row));
        // SAFETY: the caller's promise.
        unsafe {
            let out = out.add(row * out_stride);
            if columns == panel.columns {
                write_block_product(simd, out, out_stride, onto, factor, left, panel);
            } else {
                write_some(simd, out, out_stride, columns, onto, factor, left, panel);
            }
        }
        row += left.rows;
    }
}

/// A block of one or two rows would wait for its panel: the last eight and seven rows are shared
/// out evenly.
fn rows_of_next_block(rest: usize) -> usize {
    match rest {
        7 | 8 => 4,
        rest => rest.min(BLOCK),
    }
}

/// [`write_block_product`] of the first `columns` of a panel with more.
///
/// # Safety
/// As [`write_block_product`], for these columns.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
#[allow(
    clippy::too_many_arguments,
    reason = "a product and a number of columns"
)]
unsafe fn write_some<S: Simd>(
    simd: S,
    out: *mut f32,
    out_stride: usize,
    columns: usize,
    onto: Onto,
    factor: f32,
    left: Matrix,
    panel: Matrix,
) {
    let mut sums = [0.0; BLOCK * WIDEST_PANEL];
    block_product(
        simd,
        &mut sums,
        WIDEST_PANEL,
        Onto::Zeros,
        factor,
        left,
        panel,
    );
    for (i, sums) in sums.chunks_exact(WIDEST_PANEL).take(left.rows).enumerate() {
        for (j, &sum) in sums[..columns].iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let place = out.add(i * out_stride + j);
                onto.write(place, j, sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::on_every_processor;

    #[derive(Clone, Copy)]
    struct EqualsLoops;

    impl Kernel for EqualsLoops {
        type Output = ();

        #[inline(always)]
        #[allow(unsafe_code, reason = "the function under test takes a pointer")]
        fn run<S: Simd>(self, simd: S) {
            let numbers: Vec<f32> = (0..60_000).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
            for (rows, inner, columns) in [
                (1, 1, 1),
                (14, 300, 130),
                (100, 5, 64),
                (3, 512, 65),
                (2, 0, 3),
            ] {
                let left = Matrix::dense(&numbers, rows, inner);
                let dense = Matrix::dense(&numbers[1..], inner, columns);
                let turned = Matrix::dense(&numbers[1..], columns, inner).transposed();
                for right in [dense, turned] {
                    let stride = columns + 1;
                    let mut expected = vec![2.0; rows * stride];
                    for row in 0..rows {
                        for column in 0..columns {
                            let sum = (0..inner).map(|p| left.at(row, p) * right.at(p, column));
                            // Whole numbers and halves: every sum is exact.
                            expected[row * stride + column] += 0.5 * sum.sum::<f32>();
                        }
                    }
                    let (matrix, mut room) = (right, Vec::new());
                    let layout = LayOut {
                        matrix,
                        room: &mut room,
                    }
                    .run(simd);
                    let panels = layout.of(matrix, Cow::Owned(room));
                    let (mut first, mut second) =
                        (vec![2.0; rows * stride], vec![2.0; rows * stride]);
                    panel_product(simd, &mut first, stride, Onto::Out, 0.5, left, &panels);
                    assert_eq!(first, expected, "{rows}×{inner}×{columns}");
                    // SAFETY: there are as many rows.
                    unsafe {
                        let out = second.as_mut_ptr();
                        write_product(simd, out, stride, Onto::Out, 0.5, left, right);
                    }
                    assert_eq!(second, expected, "{rows}×{inner}×{columns}");
                }
            }
        }
    }

    #[test]
    fn products_equal_loops_and_write_nothing_else() {
        on_every_processor(EqualsLoops);
    }
}
