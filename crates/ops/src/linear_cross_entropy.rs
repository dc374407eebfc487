//! The loss of next-token prediction from what the unembedding reads.

use burn::tensor::{Int, Tensor};

use crate::{cross_entropy, linear};

/// `Σ_i weight_i · (−ln softmax(x_i·W + b)[target_i])`, in nats: [`cross_entropy`] of [`linear`].
///
/// The logits of a large vocabulary are never all in memory. The kernel computes them for blocks of
/// positions and keeps the two gradients instead (Hsu et al. 2024, "Liger Kernel", section
/// `FusedLinearCrossEntropy`). A position of weight 0 has no logits at all.
///
/// # Shapes
/// - x: `[rows, positions, width]`
/// - weight: `[width, vocabulary]`; bias: `[vocabulary]`
/// - targets, weights: `[rows, positions]`
/// - output: `[1]`
///
/// # Panics
/// As [`linear`] and [`cross_entropy`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use headlight_ops::linear_cross_entropy;
///
/// let device = Device::flex();
/// // The logits are [0, ln 3]: the first token has probability 1/4.
/// let x = Tensor::<3>::from_floats([[[2.0]]], &device);
/// let weight = Tensor::<2>::from_floats([[0.0, 3f32.ln() / 2.0]], &device);
/// let targets = Tensor::<2, Int>::from_ints([[0]], &device);
/// let loss = linear_cross_entropy(x, weight, None, targets, Tensor::ones([1, 1], &device));
/// assert!((loss.into_scalar::<f32>() - 4f32.ln()).abs() < 1e-6);
/// ```
#[must_use]
pub fn linear_cross_entropy(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    targets: Tensor<2, Int>,
    weights: Tensor<2>,
) -> Tensor<1> {
    #[cfg(feature = "flex")]
    if let Some(loss) =
        crate::kernel::linear_cross_entropy(&x, &weight, bias.as_ref(), &targets, &weights)
    {
        return loss;
    }
    cross_entropy(linear(x, weight, bias), targets, weights)
}
