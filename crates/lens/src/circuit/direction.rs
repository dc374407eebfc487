//! What a circuit does, direction by direction.

use faer::Mat;
use serde::Serialize;

use super::FactoredMatrix;

/// One direction of a table over tokens: tokens on one side go with tokens on the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// The singular value.
    pub value: f64,
    /// Its share in the sum of squares of the whole table.
    pub share: f64,
    /// Both ends: rows and columns that go together with plus, and those that do with minus.
    pub ends: [End; 2],
}

/// One end of a direction: the rows and the columns furthest out, with their places on it; the
/// furthest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// Rows.
    pub rows: Vec<(usize, f64)>,
    /// Columns.
    pub columns: Vec<(usize, f64)>,
}

/// The `count` directions of the largest singular values, each with up to `tokens` rows and columns
/// at each end. A row and a column at the same end raise each other's entry.
///
/// ```
/// use faer::mat;
/// use headlight_lens::{FactoredMatrix, directions};
///
/// let table = FactoredMatrix::new(mat![[0.6], [-0.8]], mat![[0.0, 5.0]]);
/// let direction = &directions(&table, 1, 1)[0];
/// assert!((direction.value - 5.0).abs() < 1e-12 && (direction.share - 1.0).abs() < 1e-12);
/// let ends = direction.ends.each_ref().map(|end| (end.rows[0].0, end.columns.first().map(|column| column.0)));
/// assert!(ends.contains(&(0, Some(1))) && ends.contains(&(1, None)));
/// ```
#[must_use]
pub fn directions(table: &FactoredMatrix, count: usize, tokens: usize) -> Vec<Direction> {
    let svd = table.svd();
    let squares: f64 = svd.values.iter().map(|value| value * value).sum();
    let end = |direction: usize, sign: f64| End {
        rows: furthest(&svd.left, direction, sign, tokens),
        columns: furthest(&svd.right, direction, sign, tokens),
    };
    let of = |(direction, &value): (usize, &f64)| Direction {
        value,
        share: value * value / squares,
        ends: [end(direction, 1.0), end(direction, -1.0)],
    };
    svd.values
        .iter()
        .enumerate()
        .take(count)
        .filter(|(_, value)| **value > 0.0)
        .map(of)
        .collect()
}

/// The `count` entries of a column that lie furthest out on one side.
fn furthest(matrix: &Mat<f64>, column: usize, sign: f64, count: usize) -> Vec<(usize, f64)> {
    let places = matrix
        .col(column)
        .iter()
        .map(|place| place * sign)
        .enumerate();
    let mut places: Vec<(usize, f64)> = places.filter(|(_, place)| *place > 0.0).collect();
    places.sort_by(|a, b| b.1.total_cmp(&a.1));
    places.truncate(count);
    places
}
