//! The gated unit of Llama's feed-forward.

use burn::tensor::{Tensor, activation::sigmoid};

/// `SiLU(gate)·up` with `SiLU(x) = x/(1 + e^{−x})` (Shazeer 2020, section 2).
///
/// # Shapes
/// - gate, up, output: `[batch, pos, d_ff]`
///
/// # Panics
/// If `gate` and `up` have not the same shape.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::swiglu;
///
/// let device = Device::flex();
/// let gate = Tensor::<3>::from_floats([[[0.0, 1.0]]], &device);
/// let y = swiglu(gate, Tensor::from_floats([[[5.0, 2.0]]], &device)).into_data().to_vec::<f32>().unwrap();
/// assert!(y[0] == 0.0 && (y[1] - 2.0 * 0.731_059).abs() < 1e-6);
/// ```
#[must_use]
pub fn swiglu(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    assert!(
        gate.dims() == up.dims(),
        "a gate {:?} for {:?}",
        gate.dims(),
        up.dims()
    );
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::swiglu(&gate, &up) {
        return y;
    }
    sigmoid(gate.clone()) * gate * up
}
