//! The squared norm of a tensor, and of a sum of tensors.

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
    if crate::kernel::squared_norm_applies(&[&x]) {
        return crate::kernel::squared_norm(x);
    }
    x.square().sum()
}

/// Returns the sum of `parts`, first part first, and its [`squared_norm`].
///
/// On Flex the last part is added and the squares are summed in one pass, in place if the sum of the
/// parts before has no other owner. Both results have the same bits as two passes.
///
/// # Panics
/// If there is no part, or if the parts differ in shape.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::sum_with_squared_norm;
///
/// let at = |x: [f32; 2]| Tensor::<1>::from_floats(x, &Device::flex());
/// let (sum, squared_norm) = sum_with_squared_norm(vec![at([1.0, 0.0]), at([2.0, -4.0])]);
/// assert_eq!(sum.into_data().iter::<f32>().collect::<Vec<_>>(), [3.0, -4.0]);
/// assert_eq!(squared_norm.into_scalar::<f32>(), 25.0);
/// ```
#[must_use]
pub fn sum_with_squared_norm<const D: usize>(mut parts: Vec<Tensor<D>>) -> (Tensor<D>, Tensor<1>) {
    let last = parts.pop().expect("a part of a sum");
    assert!(
        parts.iter().all(|part| part.dims() == last.dims()),
        "a sum of {:?} and others of other shapes",
        last.dims()
    );
    let Some(before) = parts.into_iter().reduce(|sum, part| sum + part) else {
        return (last.clone(), squared_norm(last));
    };
    #[cfg(feature = "flex")]
    if crate::kernel::squared_norm_applies(&[&before, &last]) {
        return crate::kernel::sum_with_squared_norm(before, last);
    }
    let sum = before + last;
    (sum.clone(), squared_norm(sum))
}
