//! The ways in which positions enter the model.

use burn::tensor::{Device, Tensor, TensorData};
use headlight_attention::RotaryScaling;

/// The way in which a model learns the position of a token.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Positions {
    /// A learned vector for each of `n_ctx` positions is added to the embedding.
    #[default]
    Learned,
    /// A fixed vector of sines and cosines is added to the embedding ([`sinusoids`]).
    Sinusoidal,
    /// Queries and keys rotate (Su et al. 2021).
    Rotary(RotaryPositions),
    /// Scores decrease with distance (Press et al. 2022).
    Alibi,
    /// Only the causal mask depends on positions (Kazemnejad et al. 2023).
    None,
}

impl Positions {
    /// All components of queries and keys rotate, in the angles of this base.
    #[must_use]
    pub fn rotary(base: f64) -> Self {
        Self::Rotary(RotaryPositions {
            base,
            ..RotaryPositions::default()
        })
    }
}

/// How queries and keys rotate. The two components of a pair are `rotated/2` apart.
#[derive(Debug, Clone, PartialEq)]
pub struct RotaryPositions {
    /// The angle of pair `i` at position `p` is `p·base^(−2i/rotated)`.
    pub base: f64,
    /// The number of components of a head that rotate, from the first on; `None`: all.
    pub rotated: Option<usize>,
    /// How the angles are lowered.
    pub scaling: RotaryScaling,
    /// The base of the layers that look through a window, whose angles are not lowered (Gemma 3);
    /// `None`: all layers rotate alike.
    pub base_in_window: Option<f64>,
}

impl Default for RotaryPositions {
    /// All components rotate, in the angles of the paper's base, 10,000.
    fn default() -> Self {
        Self {
            base: 10_000.0,
            rotated: None,
            scaling: RotaryScaling::None,
            base_in_window: None,
        }
    }
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
