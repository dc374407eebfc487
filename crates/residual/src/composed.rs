//! Operations composed of plain tensor operations.

use burn::tensor::Tensor;

/// `x / √(mean of squares + ε) · gain` over the last axis (Zhang & Sennrich 2019).
pub(crate) fn rms_norm(x: Tensor<3>, gain: Tensor<1>, epsilon: f64) -> Tensor<3> {
    let scale = x.clone().square().mean_dim(2).add_scalar(epsilon).sqrt();
    x / scale * gain.unsqueeze()
}
