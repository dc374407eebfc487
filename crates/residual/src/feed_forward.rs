//! The feed-forward: each position on its own, wide in the middle.

use burn::{
    module::{Module, Param},
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation},
};

use headlight_ops::linear;

use crate::{MlpSite, Probe, Site, probe::visit};

/// The function between the two matrices of a feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `max(0, x)`
    Relu,
    /// `x·Φ(x)` (Hendrycks & Gimpel 2016)
    Gelu,
}

/// `f(x) = activation(x·W_in + b_in)·W_out + b_out` (Vaswani et al. 2017, section 3.3).
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `W_in [d_model, d_ff]`
    pub w_in: Linear,
    /// `W_out [d_ff, d_model]`
    pub w_out: Linear,
    #[module(skip)]
    activation: Activation,
}

impl FeedForward {
    /// A feed-forward of width `d_ff`.
    #[must_use]
    pub fn new(d_model: usize, d_ff: usize, activation: Activation, device: &Device) -> Self {
        Self {
            w_in: LinearConfig::new(d_model, d_ff).init(device),
            w_out: LinearConfig::new(d_ff, d_model).init(device),
            activation,
        }
    }

    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe>(&self, x: Tensor<3>, layer: usize, probe: &mut P) -> Tensor<3> {
        let pre = visit(
            probe,
            Site::Mlp(layer, MlpSite::Pre),
            linear(x, self.w_in.weight.val(), self.w_in.bias.as_ref().map(Param::val)),
        );
        let post = match self.activation {
            Activation::Relu => activation::relu(pre),
            Activation::Gelu => headlight_ops::gelu(pre),
        };
        let post = visit(probe, Site::Mlp(layer, MlpSite::Post), post);
        linear(post, self.w_out.weight.val(), self.w_out.bias.as_ref().map(Param::val))
    }
}
