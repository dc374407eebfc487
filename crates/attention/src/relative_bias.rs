//! A learned number for each head and distance.

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, TensorData},
};

use crate::Positions;

/// Adds `table[h, clamp(q − k, −max, max) + max]` to the score of head `h` (clipped distances as in
/// Shaw et al. 2018, section 3.2; one number per head as in Raffel et al. 2020, section 2.1). It
/// starts at 0.
///
/// ```
/// use burn::{module::Param, tensor::{Device, Tensor}};
/// use headlight_attention::{Positions, RelativeBias};
///
/// let device = Device::flex();
/// let mut relative = RelativeBias::new(1, 1, &device);
/// relative.table = Param::from_tensor(Tensor::from_floats([[10.0, 20.0, 30.0]], &device)); // distances −1, 0, 1
/// let bias = relative.bias(&Positions::aligned_at_end(2, 3)).into_data().to_vec::<f32>().unwrap();
/// assert_eq!(bias, [30.0, 20.0, 10.0, 30.0, 30.0, 20.0]); // queries at 1 and 2, keys at 0, 1, 2
/// ```
#[derive(Module, Debug)]
pub struct RelativeBias {
    /// `[heads, 2·max_distance + 1]`, from the furthest future to the furthest past.
    pub table: Param<Tensor<2>>,
    max_distance: usize,
}

impl RelativeBias {
    /// A table of zeros for `n_heads` query heads. Distances beyond `max_distance` share one
    /// number.
    #[must_use]
    pub fn new(n_heads: usize, max_distance: usize, device: &Device) -> Self {
        let table = Param::from_tensor(Tensor::zeros([n_heads, 2 * max_distance + 1], device));
        Self {
            table,
            max_distance,
        }
    }

    /// The bias on the scores, `[1 or batch, heads, queries, keys]`. The table gets gradients.
    #[must_use]
    pub fn bias(&self, positions: &Positions) -> Tensor<4> {
        let table = self.table.val();
        let [heads, _] = table.dims();
        let ((queries, keys), rows) = (positions.len(), positions.rows());
        if positions.is_empty() {
            return Tensor::zeros([rows, heads, queries, keys], &table.device());
        }
        let most = self.max_distance as i64;
        let mut columns = Vec::with_capacity(rows * queries * keys);
        for row in 0..rows {
            for query in 0..queries {
                columns.extend((0..keys).map(|key| {
                    let distance = positions.distance(row, query, key).unwrap_or(0);
                    distance.clamp(-most, most) + most
                }));
            }
        }
        let columns = Tensor::<1, Int>::from_data(
            TensorData::new(columns, [rows * queries * keys]),
            &table.device(),
        );
        table
            .select(1, columns)
            .reshape([heads, rows, queries, keys])
            .swap_dims(0, 1)
    }
}
