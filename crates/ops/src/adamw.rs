//! One step of AdamW.

use burn::tensor::Tensor;

/// The numbers of a step of AdamW (Loshchilov & Hutter 2019, algorithm 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWStep {
    /// η, the learning rate of this step.
    pub learning_rate: f64,
    /// c: the gradient is c times the given one. Clipping by a norm sets it.
    pub gradient_scale: f64,
    /// Decay of the running mean of gradients.
    pub beta_1: f64,
    /// Decay of the running mean of squared gradients.
    pub beta_2: f64,
    /// Guards against division by zero.
    pub epsilon: f64,
    /// λ: the parameter shrinks by `η·λ` of itself.
    pub weight_decay: f64,
    /// The number of this step, from 1.
    pub time: i32,
}

/// With `g` the given gradient times c: `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `θ ← θ − η·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε) − η·λ·θ`.
/// Returns (θ, m, v).
///
/// On Flex it is one pass over the four tensors, in place for each tensor that has no other owner.
///
/// # Panics
/// If the tensors differ in shape.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::{AdamWStep, adamw};
///
/// let step = AdamWStep {
///     learning_rate: 0.1,
///     gradient_scale: 0.5,
///     beta_1: 0.9,
///     beta_2: 0.99,
///     epsilon: 0.0,
///     weight_decay: 0.0,
///     time: 1,
/// };
/// let at = |x: f32| Tensor::<1>::from_floats([x], &Device::flex());
/// let (parameter, m, v) = adamw(at(1.0), at(-8.0), at(0.0), at(0.0), &step);
/// // The first step is η in the direction against the gradient, for any size of it.
/// assert!((parameter.into_scalar::<f32>() - 1.1).abs() < 1e-6);
/// assert!((m.into_scalar::<f32>() + 0.4).abs() < 1e-6 && (v.into_scalar::<f32>() - 0.16).abs() < 1e-6);
/// ```
#[must_use]
pub fn adamw<const D: usize>(
    parameter: Tensor<D>,
    gradient: Tensor<D>,
    m: Tensor<D>,
    v: Tensor<D>,
    step: &AdamWStep,
) -> (Tensor<D>, Tensor<D>, Tensor<D>) {
    assert!(
        [&gradient, &m, &v]
            .iter()
            .all(|tensor| tensor.dims() == parameter.dims()),
        "AdamW of a parameter {:?} with a gradient {:?}",
        parameter.dims(),
        gradient.dims()
    );
    #[cfg(feature = "flex")]
    if crate::kernel::adamw_applies(&[&parameter, &gradient, &m, &v]) {
        return crate::kernel::adamw(parameter, gradient, m, v, step);
    }
    let &AdamWStep {
        learning_rate,
        gradient_scale,
        beta_1,
        beta_2,
        epsilon,
        weight_decay,
        time,
    } = step;
    let gradient = gradient.mul_scalar(gradient_scale);
    let m = m.mul_scalar(beta_1) + gradient.clone().mul_scalar(1.0 - beta_1);
    let v = v.mul_scalar(beta_2) + gradient.square().mul_scalar(1.0 - beta_2);
    let corrected_m = m.clone().mul_scalar(1.0 / (1.0 - beta_1.powi(time)));
    let corrected_v = v.clone().mul_scalar(1.0 / (1.0 - beta_2.powi(time)));
    let change = corrected_m / corrected_v.sqrt().add_scalar(epsilon);
    let parameter =
        parameter.mul_scalar(1.0 - learning_rate * weight_decay) - change.mul_scalar(learning_rate);
    (parameter, m, v)
}
