//! Operations composed of plain tensor operations.

use burn::tensor::{Tensor, activation};

/// `x / √(mean of squares + ε) · gain` over the last axis (Zhang & Sennrich 2019).
pub(crate) fn rms_norm(x: Tensor<3>, gain: Tensor<1>, epsilon: f64) -> Tensor<3> {
    let scale = x.clone().square().mean_dim(2).add_scalar(epsilon).sqrt();
    x / scale * gain.unsqueeze()
}

/// `silu(gate)·x` (Shazeer 2020).
pub(crate) fn swiglu(gate: Tensor<3>, x: Tensor<3>) -> Tensor<3> {
    activation::silu(gate) * x
}

/// `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))` (Hendrycks & Gimpel 2016, section 2).
pub(crate) fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let inner = (x.clone().square().mul_scalar(0.044_715).add_scalar(1.0) * x.clone()).mul_scalar(root);
    x.mul_scalar(0.5) * inner.tanh().add_scalar(1.0)
}
