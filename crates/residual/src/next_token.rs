//! What logits are worth when the next token is known: loss and accuracy.

use burn::tensor::{Int, Tensor};

/// `−Σ ln softmax(logits)[target]` over the targets that count, in nats. Divide by their number for
/// the mean.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
/// - targets, counts: `[rows, positions]`, counts 1 or 0
/// - output: `[1]`
///
/// # Panics
/// If the shapes do not belong together.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::{summed_loss, token_tensor};
///
/// let device = Device::flex();
/// // Four equal logits: each target costs ln 4. The last one does not count.
/// let logits = Tensor::<3>::zeros([1, 3, 4], &device);
/// let counts = Tensor::<2>::from_floats([[1.0, 1.0, 0.0]], &device);
/// let loss = summed_loss(logits, token_tensor(&[[0, 3, 1]], &device), counts);
/// assert!((loss.into_scalar::<f32>() - 2.0 * 4f32.ln()).abs() < 1e-6);
/// ```
#[must_use]
pub fn summed_loss(logits: Tensor<3>, targets: Tensor<2, Int>, counts: Tensor<2>) -> Tensor<1> {
    headlight_ops::cross_entropy(logits, targets, counts)
}

/// 1 where the likeliest token is the target, else 0; of equally likely tokens the first is taken.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
/// - targets, output: `[rows, positions]`
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::{is_right, token_tensor};
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_floats([[[0.0, 2.0], [5.0, 5.0], [5.0, 5.0]]], &device);
/// let right = is_right(logits, token_tensor(&[[1, 0, 1]], &device));
/// assert_eq!(right.into_data().to_vec::<f32>().unwrap(), [1.0, 1.0, 0.0]);
/// ```
#[must_use]
pub fn is_right(logits: Tensor<3>, targets: Tensor<2, Int>) -> Tensor<2> {
    let likeliest = logits.argmax(2).squeeze_dim::<2>(2);
    likeliest.equal(targets).float()
}
