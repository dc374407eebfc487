//! Attention with linear biases: scores decrease with distance.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};

use crate::Positions;

/// Subtracts `slope_h·|q − k|` from the scores of head `h` (Press et al. 2022, section 3).
///
/// With `n` heads, a power of two, the slopes are `2^(−8/n), 2^(−16/n), …, 2^(−8)`. Otherwise they
/// are those of the next lower power of two, followed by every other one of the next higher, as in
/// the authors' code.
///
/// ```
/// use headlight_attention::Alibi;
///
/// assert_eq!(Alibi::new(2).slopes(), [0.0625, 0.00390625]);
/// assert_eq!(Alibi::new(3).slopes(), [0.0625, 0.00390625, 0.25]);
/// ```
#[derive(Module, Debug)]
pub struct Alibi {
    n_heads: usize,
}

impl Alibi {
    /// Slopes for `n_heads` query heads.
    #[must_use]
    pub fn new(n_heads: usize) -> Self {
        Self { n_heads }
    }

    /// Each head's slope.
    #[must_use]
    pub fn slopes(&self) -> Vec<f64> {
        let of_power = |n: usize| (1..=n).map(move |head| 2f64.powf(-8.0 * head as f64 / n as f64));
        let Some(log) = self.n_heads.checked_ilog2() else {
            return Vec::new();
        };
        let lower = 1_usize << log;
        of_power(lower)
            .chain(of_power(2 * lower).step_by(2))
            .take(self.n_heads)
            .collect()
    }

    /// The bias `−slope_h·|q − k|`, `[1 or batch, heads, queries, keys]`.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use headlight_attention::{Alibi, Positions};
    /// let bias = Alibi::new(1).bias(&Positions::aligned_at_end(1, 3), &Device::flex());
    /// assert_eq!(bias.into_data().to_vec::<f32>().unwrap(), [-2.0 / 256.0, -1.0 / 256.0, 0.0]);
    /// ```
    #[must_use]
    pub fn bias(&self, positions: &Positions, device: &Device) -> Tensor<4> {
        let (queries, keys) = positions.len();
        let slopes = self.slopes();
        let mut bias = Vec::with_capacity(positions.rows() * slopes.len() * queries * keys);
        for row in 0..positions.rows() {
            for slope in &slopes {
                for query in 0..queries {
                    bias.extend((0..keys).map(|key| {
                        let distance = positions.distance(row, query, key).unwrap_or(0);
                        (-slope * distance.unsigned_abs() as f64) as f32
                    }));
                }
            }
        }
        Tensor::from_data(
            TensorData::new(bias, [positions.rows(), slopes.len(), queries, keys]),
            device,
        )
    }
}
