//! Token ids as a tensor.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Token ids as a model takes them, `[rows, length]`: one row for each sequence.
///
/// # Panics
/// If the rows are not equally long; the message names both lengths.
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::token_tensor;
///
/// let batch = token_tensor(&[[3, 1, 4], [1, 5, 9]], &Device::flex());
/// assert_eq!(batch.dims(), [2, 3]);
/// assert_eq!(batch.into_data().iter::<i64>().collect::<Vec<_>>(), [3, 1, 4, 1, 5, 9]);
/// ```
#[must_use]
pub fn token_tensor<R: AsRef<[u32]>>(rows: &[R], device: &Device) -> Tensor<2, Int> {
    let length = rows.first().map_or(0, |row| row.as_ref().len());
    let mut ids = Vec::with_capacity(rows.len() * length);
    for row in rows {
        let row = row.as_ref();
        assert!(
            row.len() == length,
            "sequences of {length} and of {} tokens make no batch",
            row.len()
        );
        ids.extend(row.iter().map(|&token| token as i32));
    }
    Tensor::from_data(TensorData::new(ids, [rows.len(), length]), device)
}
