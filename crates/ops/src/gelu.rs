//! The Gaussian error linear unit.

use burn::tensor::Tensor;

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
    if let Some(y) = crate::kernel::gelu(&x) {
        return y;
    }
    // Not Burn's own: in 0.22.1 its gradient is that of the tanh approximation.
    let distribution = x.clone().mul_scalar(std::f64::consts::FRAC_1_SQRT_2).erf().add_scalar(1.0).mul_scalar(0.5);
    x * distribution
}
