//! The loss of next-token prediction.

use burn::tensor::{Int, Tensor, activation::log_softmax};

/// `Σ_i weight_i · (−ln softmax(logits_i)[target_i])`, in nats: the summed loss over weighted
/// positions.
///
/// A position of weight 0 adds no loss and gets no gradient. For the mean, divide by the sum of the
/// weights.
///
/// # Shapes
/// - logits: `[rows, positions, vocabulary]`
/// - targets, weights: `[rows, positions]`
/// - output: `[1]`
///
/// # Panics
/// If the shapes do not belong together. A target outside the vocabulary panics on the kernel's
/// path.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use headlight_ops::cross_entropy;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_floats([[[0.0, 0.0], [9.0, -9.0]]], &device);
/// let targets = Tensor::<2, Int>::from_ints([[1, 1]], &device);
/// let weights = Tensor::<2>::from_floats([[1.0, 0.0]], &device); // the second position does not count
/// let loss = cross_entropy(logits, targets, weights).into_scalar::<f32>();
/// assert!((loss - 2f32.ln()).abs() < 1e-6);
/// ```
#[must_use]
pub fn cross_entropy(logits: Tensor<3>, targets: Tensor<2, Int>, weights: Tensor<2>) -> Tensor<1> {
    let [rows, positions, _] = logits.dims();
    assert!(
        targets.dims() == [rows, positions] && weights.dims() == [rows, positions],
        "logits {:?}, targets {:?} and weights {:?} do not fit",
        logits.dims(),
        targets.dims(),
        weights.dims()
    );
    #[cfg(feature = "flex")]
    if let Some(loss) = crate::kernel::cross_entropy(&logits, &targets, &weights) {
        return loss;
    }
    let of_target = log_softmax(logits, 2)
        .gather(2, targets.unsqueeze_dim(2))
        .squeeze_dim::<2>(2);
    (of_target * weights).sum().neg()
}
