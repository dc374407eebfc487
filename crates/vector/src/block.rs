//! Products that read only a part of their factors: no factor is packed, and the caller goes from
//! one block of rows to the next.

use pulp::{Simd, WithSimd};

use crate::{
    Matrix,
    matrix::{assert_holds, assert_inside},
};

/// The number of rows in a block. With 4 vectors of columns, their sums fill the registers of
/// AVX-512 and NEON; with 2 vectors, those of AVX2.
pub const BLOCK: usize = 6;

/// The numbers that a product is added to.
#[derive(Debug, Clone, Copy)]
pub enum Onto<'a> {
    /// Zeros: the numbers in `out` are not read.
    Zeros,
    /// The numbers in `out`.
    Out,
    /// This row, at each row of the product: a bias.
    Row(&'a [f32]),
}

impl Onto<'_> {
    /// The numbers behind the first columns of the product.
    #[inline(always)]
    pub(crate) fn skipping(self, column: usize) -> Self {
        match self {
            Self::Row(row) => Self::Row(&row[column..]),
            onto => onto,
        }
    }

    /// Writes one number of column `j`: a sum of products, added to where it starts from.
    ///
    /// # Safety
    /// `place` may be written, with [`Onto::Out`] also read.
    #[inline(always)]
    #[allow(
        unsafe_code,
        reason = "products write into memory that is not cleared before"
    )]
    pub(crate) unsafe fn write(self, place: *mut f32, j: usize, sum: f32) {
        // SAFETY: the caller's promise.
        unsafe {
            *place = match self {
                Self::Zeros => sum,
                Self::Out => *place + sum,
                Self::Row(row) => row[j] + sum,
            };
        }
    }
}

/// `out ← onto + factor·left·right` for a left factor of at most [`BLOCK`] rows; row `i` of `out`
/// begins at `i·out_stride`.
///
/// The rows of `right` are read where they lie. Their numbers lie side by side, a multiple of the
/// vector of this processor, as every multiple of [`WIDEST`](crate::WIDEST) is.
///
/// # Panics
/// If the sizes do not fit together or reach outside their slices.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "the innermost products take memory that is not initialised"
)]
pub fn block_product<S: Simd>(
    simd: S,
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
    // SAFETY: `rows` rows of `columns` numbers lie inside `out`, as asserted.
    unsafe {
        write_block_product(
            simd,
            out.as_mut_ptr(),
            out_stride,
            onto,
            factor,
            left,
            right,
        );
    }
}

/// [`block_product`] into memory that need not be initialised, unless the product is added to it.
///
/// # Safety
/// Row `i` of `out` may be written (with [`Onto::Out`], also read) from `i·out_stride` on, for each
/// row of `left` and as far as `right` has columns.
#[inline(always)]
#[allow(
    unsafe_code,
    reason = "products write into memory that is not cleared before"
)]
pub(crate) unsafe fn write_block_product<S: Simd>(
    simd: S,
    out: *mut f32,
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
    assert_inside(left, right);
    assert!(
        rows <= BLOCK && columns.is_multiple_of(S::F32_LANES) && right.column_stride == 1,
        "a block of {rows} rows and {columns} columns with stride {}",
        right.column_stride
    );
    if let Onto::Row(row) = onto {
        assert!(row.len() >= columns, "{columns} columns onto {}", row.len());
    }
    let block = Block {
        out,
        out_stride,
        onto,
        factor,
        left,
        right,
    };
    match rows {
        1 => simd.vectorize(Rows::<1>(block)),
        2 => simd.vectorize(Rows::<2>(block)),
        3 => simd.vectorize(Rows::<3>(block)),
        4 => simd.vectorize(Rows::<4>(block)),
        5 => simd.vectorize(Rows::<5>(block)),
        _ => simd.vectorize(Rows::<BLOCK>(block)),
    }
}

/// The arguments of [`write_block_product`], which has checked them.
struct Block<'a> {
    out: *mut f32,
    out_stride: usize,
    onto: Onto<'a>,
    factor: f32,
    left: Matrix<'a>,
    right: Matrix<'a>,
}

/// A block of `R` rows.
struct Rows<'a, const R: usize>(Block<'a>);

impl<const R: usize> WithSimd for Rows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let block = self.0;
        let vectors = block.right.columns / S::F32_LANES;
        let mut first = 0;
        if S::REGISTER_COUNT >= 32 {
            while first + 4 <= vectors {
                block.columns::<S, R, 4>(simd, first);
                first += 4;
            }
        }
        while first + 2 <= vectors {
            block.columns::<S, R, 2>(simd, first);
            first += 2;
        }
        if first < vectors {
            block.columns::<S, R, 1>(simd, first);
        }
    }
}

impl Block<'_> {
    /// `R` rows of `V` vectors of columns, from vector `first` on. All sums stay in registers.
    #[inline(always)]
    #[allow(
        unsafe_code,
        reason = "the innermost loop; `write_block_product` has checked every bound"
    )]
    fn columns<S: Simd, const R: usize, const V: usize>(&self, simd: S, first: usize) {
        let column = first * S::F32_LANES;
        let (left, right) = (self.left, self.right);
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        // SAFETY: `write_block_product` has checked that `R` rows of `left`, the columns of `right`
        // and of a row to start from lie inside their slices; its caller promises as much of `out`.
        // `column + V·lanes` is at most the number of columns.
        unsafe {
            let mut from_left = left.data.as_ptr().wrapping_add(left.start);
            let mut from_right = right.data.as_ptr().wrapping_add(right.start + column);
            for _ in 0..left.columns {
                let mut vectors = [simd.splat_f32s(0.0); V];
                for v in 0..V {
                    vectors[v] = from_right
                        .add(v * S::F32_LANES)
                        .cast::<S::f32s>()
                        .read_unaligned();
                }
                for r in 0..R {
                    let x = simd.splat_f32s(*from_left.add(r * left.row_stride));
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_e_f32s(x, vectors[v], sums[r][v]);
                    }
                }
                from_left = from_left.wrapping_add(left.column_stride);
                from_right = from_right.wrapping_add(right.row_stride);
            }
            let factor = simd.splat_f32s(self.factor);
            for r in 0..R {
                let row = self.out.add(r * self.out_stride + column);
                for v in 0..V {
                    let place = row.add(v * S::F32_LANES).cast::<S::f32s>();
                    let number = match self.onto {
                        Onto::Zeros => simd.mul_f32s(factor, sums[r][v]),
                        Onto::Out => {
                            simd.mul_add_e_f32s(factor, sums[r][v], place.read_unaligned())
                        }
                        Onto::Row(numbers) => {
                            let numbers = numbers.as_ptr().add(column + v * S::F32_LANES);
                            let numbers = numbers.cast::<S::f32s>().read_unaligned();
                            simd.mul_add_e_f32s(factor, sums[r][v], numbers)
                        }
                    };
                    place.write_unaligned(number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, WIDEST, for_tests::on_every_processor};

    #[derive(Clone, Copy)]
    struct EqualsLoops;

    impl Kernel for EqualsLoops {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let numbers: Vec<f32> = (0..4000).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
            for rows in 1..=BLOCK {
                for (inner, columns) in [(0, 16), (1, 16), (5, 48), (17, 64), (3, 112)] {
                    let left = Matrix {
                        row_stride: inner + 1,
                        ..Matrix::dense(&numbers, rows, inner)
                    };
                    let turned = Matrix::dense(&numbers, inner, rows).transposed();
                    let right = Matrix {
                        start: 7,
                        ..Matrix::dense(&numbers, inner, columns)
                    };
                    let starts = [
                        (left, Onto::Zeros),
                        (left, Onto::Out),
                        (turned, Onto::Out),
                        (turned, Onto::Row(&numbers[100..])),
                    ];
                    for (left, onto) in starts {
                        let stride = columns + WIDEST;
                        let mut out = vec![3.0; BLOCK * stride];
                        block_product(simd, &mut out, stride, onto, 0.5, left, right);
                        for (i, &number) in out.iter().enumerate() {
                            let (row, column) = (i / stride, i % stride);
                            let mut expected = 3.0;
                            if row < rows && column < columns {
                                let sum: f32 = (0..inner)
                                    .map(|p| left.at(row, p) * right.at(p, column))
                                    .sum();
                                let start = match onto {
                                    Onto::Zeros => 0.0,
                                    Onto::Out => 3.0,
                                    Onto::Row(row) => row[column],
                                };
                                expected = start + 0.5 * sum;
                            }
                            // Whole numbers and halves: every sum is exact.
                            assert_eq!(number, expected, "{rows}×{inner}×{columns}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_block_equals_loops_and_writes_nothing_else() {
        on_every_processor(EqualsLoops);
    }

    #[test]
    #[should_panic(expected = "outside its slice")]
    fn a_factor_outside_its_slice_is_refused() {
        let numbers = [1.0; 32];
        let left = Matrix::dense(&numbers, 1, 3);
        let right = Matrix::dense(&numbers, 3, 16);
        block_product(
            pulp::Scalar::new(),
            &mut [0.0; 16],
            16,
            Onto::Zeros,
            1.0,
            left,
            right,
        );
    }
}
