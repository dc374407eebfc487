//! Rotary position embedding: queries and keys rotate with their positions, so that their product
//! depends on the distance.

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use serde::{Deserialize, Serialize};

use crate::{RotaryScaling, positions::shared_or_own};

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
/// `f = base^(−2i/rotated)`, which a [`RotaryScaling`] may lower: `(a, b) → m·(a·cos θ − b·sin θ, a·sin
/// θ + b·cos θ)`, where `m` is 1 or the scaling's factor. The other components stay as they are.
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

    /// Lowers the frequencies. Lists of factors must have one for each pair.
    #[must_use]
    pub fn with_scaling(mut self, scaling: RotaryScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Rotates each vector by its position. Where angles depend on the length of the sequence, it ends
    /// at the largest position.
    ///
    /// # Shapes
    /// - x, output: `[batch, heads, seq, d_head]`
    /// - positions: `[1 or batch][seq]`
    ///
    /// # Panics
    /// If `d_head` is below `rotated`, or the number of positions is not the number of vectors.
    #[must_use]
    pub fn rotate(&self, x: Tensor<4>, positions: &[Vec<i64>]) -> Tensor<4> {
        let lengths: Vec<usize> = positions.iter().map(|row| length_of(row)).collect();
        self.rotate_within(x, positions, &lengths)
    }

    /// [`rotate`](Self::rotate) in sequences of `lengths` tokens, `[1 or batch]`.
    ///
    /// # Panics
    /// As [`rotate`](Self::rotate), or if the number of lengths fits no batch.
    #[must_use]
    pub fn rotate_within(
        &self,
        x: Tensor<4>,
        positions: &[Vec<i64>],
        lengths: &[usize],
    ) -> Tensor<4> {
        let [batch, heads, seq, d_head] = x.dims();
        let (rotated, pairs) = (self.rotated, self.rotated / 2);
        assert!(
            rotated <= d_head,
            "rotary of {rotated} components on heads of shape {:?}",
            x.dims()
        );
        assert!(
            positions.iter().all(|row| row.len() == seq)
                && [1, batch].contains(&positions.len())
                && [1, batch].contains(&lengths.len()),
            "positions of {} rows and {} lengths do not fit heads of shape {:?}",
            positions.len(),
            lengths.len(),
            x.dims()
        );
        if [batch, heads, seq].contains(&0) {
            return x;
        }
        let (cos, sin) = self.cos_and_sin(positions, lengths, &x);
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

    /// Cosines and sines of the angles, each `[1 or batch, 1, seq, pairs]`, times the scaling's factor,
    /// computed in f64 and rounded once.
    fn cos_and_sin(
        &self,
        positions: &[Vec<i64>],
        lengths: &[usize],
        like: &Tensor<4>,
    ) -> (Tensor<4>, Tensor<4>) {
        // Rows of one length that stand at the same positions share their angles.
        let alike = lengths.iter().all(|&length| length == lengths[0]);
        let rows = if alike {
            positions.len()
        } else {
            lengths.len()
        };
        let shape = [rows, 1, positions[0].len(), self.rotated / 2];
        let mut angles = Vec::new();
        for row in 0..rows {
            let &length = shared_or_own(lengths, row);
            let frequencies = self.scaling.frequencies(self.base, self.rotated, length);
            for &position in shared_or_own(positions, row) {
                angles.extend(frequencies.iter().map(|f| position as f64 * f));
            }
        }
        let factor = self.scaling.attention_factor();
        let tensor = |of: fn(f64) -> f64| -> Tensor<4> {
            let values: Vec<f64> = angles.iter().map(|&angle| factor * of(angle)).collect();
            let device: Device = like.device();
            Tensor::from_data(TensorData::new(values, shape), (&device, like.dtype()))
        };
        (tensor(f64::cos), tensor(f64::sin))
    }
}

/// The number of tokens of a sequence that ends at the largest of these positions.
fn length_of(positions: &[i64]) -> usize {
    let last = positions.iter().copied().max().unwrap_or(-1);
    usize::try_from(last + 1).unwrap_or(0)
}

fn turn(a: Tensor<4>, b: Tensor<4>, cos: Tensor<4>, sin: Tensor<4>) -> [Tensor<4>; 2] {
    [
        a.clone() * cos.clone() - b.clone() * sin.clone(),
        a * sin + b * cos,
    ]
}
