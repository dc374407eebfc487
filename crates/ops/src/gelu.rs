//! The Gaussian error linear unit.

use burn::tensor::Tensor;

/// The two functions named GELU.
#[cfg(feature = "flex")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `x·Φ(x)`
    Exact,
    /// With the tanh approximation of Φ.
    Tanh,
}

/// `x·Φ(x)` with the distribution function Φ of the standard normal (Hendrycks & Gimpel 2016).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::gelu;
///
/// let y = gelu(Tensor::<3>::from_floats([[[-1.0, 0.0, 1.0]]], &Device::flex()));
/// let y = y.into_data().to_vec::<f32>().unwrap();
/// assert!((y[0] + 0.158_655).abs() < 1e-6 && y[1] == 0.0 && (y[2] - 0.841_345).abs() < 1e-6);
/// ```
#[must_use]
pub fn gelu(x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::gelu(&x, Form::Exact) {
        return y;
    }
    // Not Burn's own function: in 0.22.1 its gradient is that of the tanh approximation.
    let distribution = x
        .clone()
        .mul_scalar(std::f64::consts::FRAC_1_SQRT_2)
        .erf()
        .add_scalar(1.0)
        .mul_scalar(0.5);
    x * distribution
}

/// `x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2`, the approximation GPT-2 was trained with (Hendrycks
/// & Gimpel 2016, section 2); within 5·10⁻⁴ of [`gelu`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::gelu_tanh;
///
/// let y = gelu_tanh(Tensor::<3>::from_floats([[[-1.0, 0.0, 1.0]]], &Device::flex()));
/// let y = y.into_data().to_vec::<f32>().unwrap();
/// assert!((y[0] + 0.158_808).abs() < 1e-6 && y[1] == 0.0 && (y[2] - 0.841_192).abs() < 1e-6);
/// ```
#[must_use]
pub fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::gelu(&x, Form::Tanh) {
        return y;
    }
    let cubed = x.clone().powi_scalar(3).mul_scalar(0.044_715);
    let inner = (x.clone() + cubed).mul_scalar((2.0 / std::f64::consts::PI).sqrt());
    x * inner.tanh().add_scalar(1.0).mul_scalar(0.5)
}
