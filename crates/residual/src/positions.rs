//! The ways in which positions enter the model.

use burn::tensor::{Device, Tensor, TensorData};

/// The way in which a model learns the position of a token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Positions {
    /// A learned vector for each of `n_ctx` positions is added to the embedding.
    #[default]
    Learned,
    /// A fixed vector of sines and cosines is added to the embedding ([`sinusoids`]).
    Sinusoidal,
    /// Queries and keys rotate (Su et al. 2021). The two components of a pair are half a head
    /// apart.
    Rotary {
        /// The angle of pair `i` at position `p` is `p·base^(−2i/d_head)`.
        base: f64,
    },
    /// Scores decrease with distance (Press et al. 2022).
    Alibi,
    /// Only the causal mask depends on positions (Kazemnejad et al. 2023).
    None,
}

/// `[positions, d_model]`: component `2i` at position `p` is `sin(p / 10000^(2i/d_model))`,
/// component `2i + 1` the cosine (Vaswani et al. 2017, section 3.5).
///
/// ```
/// use burn::tensor::Device;
/// use headlight_residual::sinusoids;
///
/// let table = sinusoids(0..2, 4, &Device::flex()).into_data().to_vec::<f32>().unwrap();
/// assert_eq!(table[..4], [0.0, 1.0, 0.0, 1.0]);
/// let expected = [1f32.sin(), 1f32.cos(), 0.01f32.sin(), 0.01f32.cos()];
/// assert!(table[4..].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6));
/// ```
#[must_use]
pub fn sinusoids(positions: std::ops::Range<usize>, d_model: usize, device: &Device) -> Tensor<2> {
    let shape = [positions.len(), d_model];
    let value = |position: usize, component: usize| {
        let angle = position as f64 / 10_000f64.powf((component / 2 * 2) as f64 / d_model as f64);
        (if component.is_multiple_of(2) {
            angle.sin()
        } else {
            angle.cos()
        }) as f32
    };
    let values: Vec<f32> = positions
        .flat_map(|position| (0..d_model).map(move |component| value(position, component)))
        .collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
