//! The squared norm of a tensor.

use burn::tensor::Tensor;

/// Computes `Σ x²` over all elements, as `[1]`.
///
/// On Flex it is one pass that keeps no squares.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::squared_norm;
///
/// let x = Tensor::<2>::from_floats([[3.0, 0.0], [0.0, -4.0]], &Device::flex());
/// assert_eq!(squared_norm(x).into_scalar::<f32>(), 25.0);
/// ```
#[must_use]
pub fn squared_norm<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    #[cfg(feature = "flex")]
    if crate::kernel::squared_norm_applies(&x) {
        return crate::kernel::squared_norm(x);
    }
    x.square().sum()
}
