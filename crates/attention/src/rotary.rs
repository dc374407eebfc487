//! Rotary position embedding: queries and keys rotate with their positions, so that their product
//! depends on the distance.

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use serde::{Deserialize, Serialize};

use crate::RotaryScaling;

/// The components of a head that rotate as a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotaryLayout {
    /// Components `i` and `i + rotated/2` (GPT-NeoX, Llama in Hugging Face's layout).
    #[default]
    HalfSplit,
    /// Components `2i` and `2i + 1` (the paper, GPT-J, Llama as published).
    Interleaved,
}

impl Config for RotaryLayout {}

/// Rotary embedding (Su et al. 2021, section 3.2.2).
///
/// Pair `i` of the first `rotated` components turns by the angle `θ = position·f` with the frequency
/// `f = base^(−2i/rotated)`, which a [`RotaryScaling`] may lower: `(a, b) → (a·cos θ − b·sin θ, a·sin
/// θ + b·cos θ)`. The other components stay as they are.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{Rotary, RotaryLayout};
///
/// let rotary = Rotary::new(RotaryLayout::Interleaved, 10_000.0, 2);
/// let x = Tensor::<4>::from_floats([[[[1.0, 0.0]]]], &Device::flex());
/// let turned = rotary.rotate(x, &[vec![1]]).into_data().to_vec::<f32>().unwrap();
/// assert!((turned[0] - 1f32.cos()).abs() < 1e-6 && (turned[1] - 1f32.sin()).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
pub struct Rotary {
    #[module(skip)]
    layout: RotaryLayout,
    base: f64,
    rotated: usize,
    #[module(skip)]
    scaling: RotaryScaling,
}

impl Rotary {
    /// # Panics
    /// If `rotated` is odd.
    #[must_use]
    pub fn new(layout: RotaryLayout, base: f64, rotated: usize) -> Self {
        assert!(
            rotated.is_multiple_of(2),
            "rotary components {rotated} do not form pairs"
        );
        Self {
            layout,
            base,
            rotated,
            scaling: RotaryScaling::None,
        }
    }

    /// Lowers the frequencies.
    #[must_use]
    pub fn with_scaling(mut self, scaling: RotaryScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Rotates each vector by its position.
    ///
    /// # Shapes
    /// - x, output: `[batch, heads, seq, d_head]`
    /// - positions: `[1 or batch][seq]`
    ///
    /// # Panics
    /// If `d_head` is below `rotated`, or the number of positions is not the number of vectors.
    #[must_use]
    pub fn rotate(&self, x: Tensor<4>, positions: &[Vec<i64>]) -> Tensor<4> {
        let [batch, heads, seq, d_head] = x.dims();
        let (rotated, pairs) = (self.rotated, self.rotated / 2);
        assert!(
            rotated <= d_head,
            "rotary of {rotated} components on heads of shape {:?}",
            x.dims()
        );
        assert!(
            positions.iter().all(|row| row.len() == seq) && [1, batch].contains(&positions.len()),
            "positions of {} rows do not fit heads of shape {:?}",
            positions.len(),
            x.dims()
        );
        if [batch, heads, seq].contains(&0) {
            return x;
        }
        let (cos, sin) = self.cos_and_sin(positions, &x);
        let turning = x.clone().narrow(3, 0, rotated);
        let turned = match self.layout {
            RotaryLayout::HalfSplit => {
                let (a, b) = (
                    turning.clone().narrow(3, 0, pairs),
                    turning.narrow(3, pairs, pairs),
                );
                Tensor::cat(turn(a, b, cos, sin).into(), 3)
            }
            RotaryLayout::Interleaved => {
                let pair = turning.reshape([batch, heads, seq, pairs, 2]);
                let (a, b) = (
                    pair.clone().narrow(4, 0, 1).squeeze_dim(4), // [batch, heads, seq, pairs]
                    pair.narrow(4, 1, 1).squeeze_dim(4),         // [batch, heads, seq, pairs]
                );
                Tensor::stack::<5>(turn(a, b, cos, sin).into(), 4) // [batch, heads, seq, pairs, 2]
                    .reshape([batch, heads, seq, rotated])
            }
        };
        if rotated == d_head {
            return turned;
        }
        Tensor::cat(vec![turned, x.narrow(3, rotated, d_head - rotated)], 3)
    }

    /// Cosines and sines of the angles, each `[1 or batch, 1, seq, pairs]`, computed in f64 and
    /// rounded once.
    fn cos_and_sin(&self, positions: &[Vec<i64>], like: &Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let pairs = self.rotated / 2;
        let shape = [positions.len(), 1, positions[0].len(), pairs];
        let frequency = |pair: usize| {
            let exponent = -2.0 * pair as f64 / self.rotated as f64;
            self.scaling.apply(self.base.powf(exponent))
        };
        let frequencies: Vec<f64> = (0..pairs).map(frequency).collect();
        let mut angles = Vec::new();
        for &position in positions.iter().flatten() {
            angles.extend(frequencies.iter().map(|f| position as f64 * f));
        }
        let tensor = |of: fn(f64) -> f64| -> Tensor<4> {
            let values: Vec<f64> = angles.iter().map(|&angle| of(angle)).collect();
            let device: Device = like.device();
            Tensor::from_data(TensorData::new(values, shape), (&device, like.dtype()))
        };
        (tensor(f64::cos), tensor(f64::sin))
    }
}

fn turn(a: Tensor<4>, b: Tensor<4>, cos: Tensor<4>, sin: Tensor<4>) -> [Tensor<4>; 2] {
    [
        a.clone() * cos.clone() - b.clone() * sin.clone(),
        a * sin + b * cos,
    ]
}
