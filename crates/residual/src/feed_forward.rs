//! The feed-forward: a map of each position alone through a wide middle layer.

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use headlight_ops::{apply, gelu_feed_forward, gelu_tanh_feed_forward, swiglu};

use crate::{Activation, Interest, MlpSite, Probe, Site, probe::visit};

/// The kind of a [`FeedForward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForwardKind {
    /// [`PlainFeedForward`] with this activation.
    Plain(Activation),
    /// [`GatedFeedForward`] with this activation of the gate.
    Gated(Activation),
}

impl FeedForwardKind {
    /// Whether a third matrix gates the middle layer.
    #[must_use]
    pub fn is_gated(self) -> bool {
        matches!(self, Self::Gated(_))
    }
}

/// A feed-forward, plain or gated.
#[derive(Module, Debug)]
pub enum FeedForward {
    /// A feed-forward of two matrices.
    Plain(PlainFeedForward),
    /// A feed-forward of three matrices.
    Gated(GatedFeedForward),
}

/// `f(x) = activation(x·W_in + b_in)·W_out + b_out` (Vaswani et al. 2017, section 3.3).
#[derive(Module, Debug)]
pub struct PlainFeedForward {
    /// `W_in [d_model, d_ff]`
    pub w_in: Linear,
    /// `W_out [d_ff, d_model]`
    pub w_out: Linear,
    #[module(skip)]
    pub(crate) activation: Activation,
}

/// `f(x) = (activation(x·W_gate) ⊙ x·W_in)·W_out` (Shazeer 2020, section 2): with silu it is
/// `SwiGLU`, with GELU `GeGLU`, with `ReLU` `ReGLU`.
#[derive(Module, Debug)]
pub struct GatedFeedForward {
    /// `W_gate [d_model, d_ff]`
    pub w_gate: Linear,
    /// `W_in [d_model, d_ff]`
    pub w_in: Linear,
    /// `W_out [d_ff, d_model]`
    pub w_out: Linear,
    #[module(skip)]
    pub(crate) activation: Activation,
}

impl FeedForward {
    /// A feed-forward of width `d_ff`.
    #[must_use]
    pub fn new(
        d_model: usize,
        d_ff: usize,
        kind: FeedForwardKind,
        bias: bool,
        device: &Device,
    ) -> Self {
        let linear = |input, output| {
            LinearConfig::new(input, output)
                .with_bias(bias)
                .init(device)
        };
        let (w_in, w_out) = (linear(d_model, d_ff), linear(d_ff, d_model));
        match kind {
            FeedForwardKind::Gated(activation) => Self::Gated(GatedFeedForward {
                w_gate: linear(d_model, d_ff),
                w_in,
                w_out,
                activation,
            }),
            FeedForwardKind::Plain(activation) => Self::Plain(PlainFeedForward {
                w_in,
                w_out,
                activation,
            }),
        }
    }

    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        let site = |site| Site::Mlp(layer, site);
        let is_watched = [MlpSite::Pre, MlpSite::Post]
            .into_iter()
            .any(|inner| probe.interest(site(inner)) != Interest::Skip);
        if let (false, Self::Plain(mlp)) = (is_watched, self) {
            // The same numbers, without the middle layer.
            match mlp.activation {
                Activation::Gelu => return gelu_feed_forward(&mlp.w_in, &mlp.w_out, x),
                Activation::GeluTanh => return gelu_tanh_feed_forward(&mlp.w_in, &mlp.w_out, x),
                Activation::Relu | Activation::Silu => {}
            }
        }
        let post = match self {
            Self::Plain(mlp) => {
                let pre = visit(probe, site(MlpSite::Pre), apply(&mlp.w_in, x));
                mlp.activation.apply(pre)
            }
            Self::Gated(mlp) => {
                let gate = visit(probe, site(MlpSite::Pre), apply(&mlp.w_gate, x.clone()));
                let up = visit(probe, site(MlpSite::PreLinear), apply(&mlp.w_in, x));
                match mlp.activation {
                    Activation::Silu => swiglu(gate, up),
                    activation => activation.apply(gate) * up,
                }
            }
        };
        apply(self.w_out(), visit(probe, site(MlpSite::Post), post))
    }

    /// The matrices that read the stream.
    pub(crate) fn readers_mut(&mut self) -> Vec<&mut Linear> {
        match self {
            Self::Plain(mlp) => vec![&mut mlp.w_in],
            Self::Gated(mlp) => vec![&mut mlp.w_gate, &mut mlp.w_in],
        }
    }

    /// The matrix that writes to the stream.
    #[must_use]
    pub fn w_out(&self) -> &Linear {
        match self {
            Self::Plain(mlp) => &mlp.w_out,
            Self::Gated(mlp) => &mlp.w_out,
        }
    }

    pub(crate) fn w_out_mut(&mut self) -> &mut Linear {
        match self {
            Self::Plain(mlp) => &mut mlp.w_out,
            Self::Gated(mlp) => &mut mlp.w_out,
        }
    }
}
