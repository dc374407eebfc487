//! QK-norm: queries and keys are normalised before their product.

use burn::{
    config::Config,
    nn::{RmsNorm, RmsNormConfig},
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

/// Over which components an RMS norm with a learned gain normalises queries and keys, before they
/// rotate and before their product (QK-norm, Henry et al. 2020).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QkNorm {
    /// Over none: queries and keys stay as they are.
    #[default]
    None,
    /// Over the components of each head, which share a gain `[d_head]` (Qwen 3, Gemma 3).
    EachHead,
    /// Over the components of all heads together, with a gain `[n_heads · d_head]` (`OLMo` 2).
    AllHeads,
}

impl Config for QkNorm {}

impl QkNorm {
    /// The norm of `n_heads` heads of width `d_head`, with gain 1.
    pub(crate) fn init(
        self,
        n_heads: usize,
        d_head: usize,
        epsilon: f64,
        device: &Device,
    ) -> Option<RmsNorm> {
        let width = match self {
            Self::None => return None,
            Self::EachHead => d_head,
            Self::AllHeads => n_heads * d_head,
        };
        Some(RmsNormConfig::new(width).with_epsilon(epsilon).init(device))
    }

    /// What [`apply`](Self::apply) multiplies each component of queries or keys with: the gain over the
    /// root mean square.
    pub(crate) fn factors(self, norm: &RmsNorm, heads: Tensor<4>) -> Tensor<4> {
        let [_, _, _, d_head] = heads.dims();
        let mut squares = heads.square().mean_dim(3); // [batch, heads, seq, 1]
        if self == Self::AllHeads {
            squares = squares.mean_dim(1); // [batch, 1, seq, 1]
        }
        let scale = squares.add_scalar(norm.epsilon).sqrt();
        let gain = norm.gamma.val();
        let gains = gain.dims()[0] / d_head; // 1, or one for each head
        gain.reshape([1, gains, 1, d_head]) / scale
    }

    /// Queries or keys `[batch, heads, seq, d_head]`, normalised.
    pub(crate) fn apply(self, norm: Option<&RmsNorm>, heads: Tensor<4>) -> Tensor<4> {
        let Some(norm) = norm else {
            return heads;
        };
        if self == Self::EachHead {
            return norm.forward(heads);
        }
        let [batch, n_heads, seq, d_head] = heads.dims();
        let together = heads
            .swap_dims(1, 2) // [batch, seq, heads, d_head]
            .reshape([batch, seq, n_heads * d_head]); // [batch, seq, heads · d_head]
        norm.forward(together)
            .reshape([batch, seq, n_heads, d_head]) // [batch, seq, heads, d_head]
            .swap_dims(1, 2) // [batch, heads, seq, d_head]
    }
}
