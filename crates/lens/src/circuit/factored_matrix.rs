//! A matrix of low rank, kept as two thin factors.

use faer::{Mat, MatRef, c64};

/// Rows of a product that are made at once.
const BLOCK: usize = 64;
/// The most rows that a share is taken over; of more, as many at even distances.
const MOST_ROWS: usize = 4096;

/// The matrix `left·right`, not multiplied out unless asked.
///
/// A head's circuit has rank `d_head` at most, however many tokens it is read on; all that is
/// computed here costs `d_head` times a row, not a row times a row.
///
/// ```
/// use faer::mat;
/// use headlight_lens::FactoredMatrix;
///
/// // (3, 4)ᵀ·(1, 2): rank 1, norm 5·√5, its one eigenvalue that is not 0 is 3·1 + 4·2.
/// let matrix = FactoredMatrix::new(mat![[3.0], [4.0]], mat![[1.0, 2.0]]);
/// assert_eq!(matrix.entry(1, 1), 8.0);
/// assert!((matrix.norm() - 125f64.sqrt()).abs() < 1e-12);
/// assert!((matrix.eigenvalues()[0].re - 11.0).abs() < 1e-12);
/// assert!((matrix.svd().values[0] - 125f64.sqrt()).abs() < 1e-12);
/// ```
#[derive(Debug, Clone)]
pub struct FactoredMatrix {
    left: Mat<f64>,
    right: Mat<f64>,
    /// The product of the norms of all that was multiplied into it.
    bound: f64,
}

/// A cell and what is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// The value.
    pub value: f64,
}

/// `left·diag(values)·rightᵀ`, the columns of `left` and of `right` orthonormal, the values
/// falling.
#[derive(Debug, Clone)]
pub struct Svd {
    /// `[rows, rank]`
    pub left: Mat<f64>,
    /// The singular values.
    pub values: Vec<f64>,
    /// `[columns, rank]`
    pub right: Mat<f64>,
}

impl FactoredMatrix {
    /// The product of `left [rows, inner]` and `right [inner, columns]`.
    ///
    /// # Panics
    /// If the inner sizes differ.
    #[must_use]
    pub fn new(left: Mat<f64>, right: Mat<f64>) -> Self {
        let (l, r) = ((left.nrows(), left.ncols()), (right.nrows(), right.ncols()));
        assert_eq!(l.1, r.0, "factors of shapes {l:?} and {r:?}");
        Self {
            bound: left.norm_l2() * right.norm_l2(),
            left,
            right,
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.left.nrows()
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.right.ncols()
    }

    /// `Mᵀ`
    #[must_use]
    pub fn transpose(&self) -> Self {
        Self {
            left: self.right.transpose().to_owned(),
            right: self.left.transpose().to_owned(),
            bound: self.bound,
        }
    }

    /// `before·M·after`
    #[must_use]
    pub fn between(&self, before: MatRef<'_, f64>, after: MatRef<'_, f64>) -> Self {
        Self {
            left: before * &self.left,
            right: &self.right * after,
            bound: before.norm_l2() * self.bound * after.norm_l2(),
        }
    }

    /// `M·other`, of the smaller inner size of the two.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let core = &self.right * &other.left;
        let bound = self.bound * other.bound;
        if core.nrows() <= core.ncols() {
            Self {
                left: self.left.clone(),
                right: core * &other.right,
                bound,
            }
        } else {
            Self {
                left: &self.left * core,
                right: other.right.clone(),
                bound,
            }
        }
    }

    /// The Frobenius norm `√Σ M²`: with `left = Q·R` that of `R·right`.
    #[must_use]
    pub fn norm(&self) -> f64 {
        (self.left.qr().thin_R() * &self.right).norm_l2()
    }

    /// The product of the Frobenius norms of all that was multiplied into it, which its own does
    /// not exceed. A matrix far smaller is 0 but for rounding.
    #[must_use]
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// The eigenvalues of `right·left`: those of `M`, but for zeros.
    ///
    /// # Panics
    /// If a factor holds numbers that are not finite.
    #[must_use]
    pub fn eigenvalues(&self) -> Vec<c64> {
        (&self.right * &self.left)
            .eigenvalues()
            .expect("the iteration converges on finite numbers")
    }

    /// The singular value decomposition: QR of both factors, then the decomposition of the small
    /// `R_left·R_rightᵀ`.
    ///
    /// # Panics
    /// If a factor holds numbers that are not finite.
    #[must_use]
    pub fn svd(&self) -> Svd {
        let (left, right) = (self.left.qr(), self.right.transpose().qr());
        let core = left.thin_R() * right.thin_R().transpose();
        let svd = core
            .thin_svd()
            .expect("the iteration converges on finite numbers");
        Svd {
            left: left.compute_thin_Q() * svd.U(),
            values: svd.S().column_vector().iter().copied().collect(),
            right: right.compute_thin_Q() * svd.V(),
        }
    }

    /// One cell.
    ///
    /// # Panics
    /// If there is no such cell.
    #[must_use]
    pub fn entry(&self, row: usize, column: usize) -> f64 {
        self.left.row(row) * self.right.col(column)
    }

    /// The product itself.
    #[must_use]
    pub fn multiplied(&self) -> Mat<f64> {
        &self.left * &self.right
    }

    /// Hands out each row in turn; a few are in memory at a time.
    pub fn for_each_row(&self, mut row: impl FnMut(usize, &[f64])) {
        for start in (0..self.rows()).step_by(BLOCK) {
            let count = BLOCK.min(self.rows() - start);
            // Transposed, so that a row lies in one piece.
            let block = self.right.transpose() * self.left.subrows(start, count).transpose();
            for i in 0..count {
                row(start + i, block.col_as_slice(i));
            }
        }
    }

    /// The `count` largest entries, the largest first.
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<Entry> {
        let mut largest: Vec<Entry> = Vec::new();
        self.for_each_row(|row, values| {
            for (column, &value) in values.iter().enumerate() {
                if largest.len() == count && largest.last().is_none_or(|least| value <= least.value)
                {
                    continue;
                }
                let place = largest.partition_point(|entry| entry.value >= value);
                largest.insert(place, Entry { row, column, value });
                largest.truncate(count);
            }
        });
        largest
    }

    /// The share of rows whose largest entry stands on the diagonal, alone. A matrix that says
    /// nothing about its diagonal has 1/columns. Of more than 4096 rows, as many are taken, at even
    /// distances.
    ///
    /// ```
    /// use faer::mat;
    /// use headlight_lens::FactoredMatrix;
    ///
    /// let identity = mat![[1.0, 0.0], [0.0, 1.0]];
    /// let share = |table| FactoredMatrix::new(identity.clone(), table).diagonal_is_largest();
    /// assert_eq!(share(mat![[2.0, 1.0], [1.0, 0.0]]), 0.5);
    /// assert_eq!(share(mat![[1.0, 1.0], [1.0, 1.0]]), 0.0);
    /// ```
    #[must_use]
    pub fn diagonal_is_largest(&self) -> f64 {
        let step = self.rows().div_ceil(MOST_ROWS).max(1);
        let chosen = Mat::from_fn(self.rows().div_ceil(step), self.left.ncols(), |i, j| {
            self.left[(i * step, j)]
        });
        let chosen = Self {
            left: chosen,
            right: self.right.clone(),
            bound: self.bound,
        };
        let mut count = 0;
        chosen.for_each_row(|i, values| {
            let own = i * step;
            let beaten = |(column, &value): (usize, &f64)| column == own || value < values[own];
            count += usize::from(values.iter().enumerate().all(beaten));
        });
        count as f64 / chosen.rows() as f64
    }
}
