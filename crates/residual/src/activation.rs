//! The activation functions of a feed-forward: everything that is known of one stands here.

use burn::tensor::{
    Tensor,
    activation::{relu, silu},
};
use headlight_ops::{gelu, gelu_tanh};
use strum::VariantArray;

/// The activation function of a feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Activation {
    /// `max(0, x)`
    Relu,
    /// `x·Φ(x)` (Hendrycks & Gimpel 2016)
    Gelu,
    /// GELU's approximation `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`, as in GPT-2
    GeluTanh,
    /// `x/(1 + e^(−x))` (Elfwing et al. 2018), as in Llama
    Silu,
}

impl Activation {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The function, number by number.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_ff]`
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use headlight_residual::Activation;
    ///
    /// let x = Tensor::<3>::from_floats([[[-1.0, 2.0]]], &Device::flex());
    /// let y = Activation::Relu.apply(x).into_data().iter::<f32>().collect::<Vec<_>>();
    /// assert_eq!(y, [0.0, 2.0]);
    /// ```
    #[must_use]
    pub fn apply(self, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Relu => relu(x),
            Self::Gelu => gelu(x),
            Self::GeluTanh => gelu_tanh(x),
            Self::Silu => silu(x),
        }
    }

    /// Its names in `config.json` of Hugging Face; the first is the one that is written.
    #[must_use]
    pub fn huggingface_names(self) -> &'static [&'static str] {
        match self {
            Self::Relu => &["relu"],
            Self::Gelu => &["gelu"],
            Self::GeluTanh => &["gelu_new", "gelu_pytorch_tanh", "gelu_fast"],
            Self::Silu => &["silu", "swish"],
        }
    }

    /// The name under which it is written.
    #[must_use]
    pub fn huggingface_name(self) -> &'static str {
        self.huggingface_names()
            .first()
            .copied()
            .unwrap_or_default()
    }

    /// Its name in `TransformerLens`' `act_fn`.
    #[must_use]
    pub fn transformer_lens_name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_new",
            Self::Silu => "silu",
        }
    }

    /// The function that `config.json` calls `name`.
    ///
    /// ```
    /// use headlight_residual::Activation;
    ///
    /// assert_eq!(Activation::from_huggingface("gelu_new"), Some(Activation::GeluTanh));
    /// assert_eq!(Activation::from_huggingface("tanh"), None);
    /// ```
    #[must_use]
    pub fn from_huggingface(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|activation| activation.huggingface_names().contains(&name))
    }
}
