//! Layer norm.

use burn::tensor::Tensor;

/// `(x − mean) / √(variance + ε) · gain + bias` over the last axis (Ba et al. 2016, section 3).
///
/// # Shapes
/// - x, output: `[batch, pos, width]`
/// - gain, bias: `[width]`
///
/// # Panics
/// If gain or bias is not as wide as `x`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::layer_norm;
///
/// let device = Device::flex();
/// let x = Tensor::<3>::from_floats([[[1.0, 3.0]]], &device); // mean 2, variance 1
/// let (gain, bias) = (Tensor::from_floats([10.0, 10.0], &device), Tensor::from_floats([0.5, 0.5], &device));
/// let y = layer_norm(x, gain, bias, 0.0).into_data().to_vec::<f32>().unwrap();
/// assert_eq!(y, [-9.5, 10.5]);
/// ```
#[must_use]
pub fn layer_norm(x: Tensor<3>, gain: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<3> {
    let width = x.dims()[2];
    assert!(
        gain.dims() == [width] && bias.dims() == [width],
        "layer norm of x {:?} with gain {:?} and bias {:?}",
        x.dims(),
        gain.dims(),
        bias.dims()
    );
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::layer_norm(&x, &gain, &bias, epsilon) {
        return y;
    }
    let centred = x.clone() - x.mean_dim(2);
    let scale = centred
        .clone()
        .square()
        .mean_dim(2)
        .add_scalar(epsilon)
        .sqrt();
    (centred / scale) * gain.unsqueeze() + bias.unsqueeze()
}
