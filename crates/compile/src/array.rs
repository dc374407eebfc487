//! Arrays of numbers with a shape.

/// A matrix or a vector, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Rows and columns, or one length.
    pub shape: Vec<usize>,
    /// As many numbers as the shape has places.
    pub values: Vec<f32>,
}

impl Array {
    /// All numbers 0.
    #[must_use]
    pub fn zeros(shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            values: vec![0.0; shape.iter().product()],
        }
    }

    /// The number at `row` and `column` of a matrix.
    ///
    /// # Panics
    /// If there is no such place.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> f32 {
        let [rows, columns] = self.shape[..] else {
            panic!("{:?} is no matrix", self.shape)
        };
        assert!(
            row < rows && column < columns,
            "[{row}, {column}] of {:?}",
            self.shape
        );
        self.values[row * columns + column]
    }

    /// Adds to the number at `row` and `column` of a matrix.
    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        let columns = self.shape[1];
        self.values[row * columns + column] += value as f32;
    }
}
