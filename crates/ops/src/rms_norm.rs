//! Root mean square norm.

use burn::tensor::Tensor;

/// `x / √(mean(x²) + ε) · gain` over the last axis (Zhang & Sennrich 2019, section 3).
///
/// # Shapes
/// - x, output: `[batch, pos, width]`
/// - gain: `[width]`
///
/// # Panics
/// If the gain is not as wide as `x`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::rms_norm;
///
/// let device = Device::flex();
/// let x = Tensor::<3>::from_floats([[[1.0, 7.0]]], &device); // mean of the squares 25
/// let y = rms_norm(x, Tensor::from_floats([1.0, 10.0], &device), 0.0).into_data().to_vec::<f32>().unwrap();
/// assert_eq!(y, [0.2, 14.0]);
/// ```
#[must_use]
pub fn rms_norm(x: Tensor<3>, gain: Tensor<1>, epsilon: f64) -> Tensor<3> {
    let width = x.dims()[2];
    assert!(
        gain.dims() == [width],
        "RMS norm of x {:?} with gain {:?}",
        x.dims(),
        gain.dims()
    );
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::rms_norm(&x, &gain, epsilon) {
        return y;
    }
    let scale = x.clone().square().mean_dim(2).add_scalar(epsilon).sqrt();
    (x / scale) * gain.unsqueeze()
}
