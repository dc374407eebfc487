//! The feed-forward with GELU, as one operation.

use burn::{nn::Linear, tensor::Tensor};

use crate::{apply, gelu, gelu_tanh};

/// `gelu(x·W_in + b_in)·W_out + b_out` (Hendrycks & Gimpel 2016; Vaswani et al. 2017, section 3.3),
/// the same numbers as [`apply`], [`gelu`] and [`apply`] one after the other.
///
/// # Shapes
/// - x: `[batch, pos, d_model]`
/// - `w_in`: `[d_model, d_ff]`, `w_out`: `[d_ff, d_model]`
/// - output: `[batch, pos, d_model]`
///
/// # Panics
/// If the widths do not fit together.
///
/// ```
/// use burn::{module::Param, nn::LinearConfig, tensor::{Device, Tensor}};
/// use headlight_ops::gelu_feed_forward;
///
/// let device = Device::flex();
/// let with = |numbers: [[f32; 2]; 2]| {
///     let mut linear = LinearConfig::new(2, 2).with_bias(false).init(&device);
///     linear.weight = Param::from_tensor(Tensor::from_floats(numbers, &device));
///     linear
/// };
/// let (w_in, w_out) = (with([[1.0, -1.0], [0.0, 0.0]]), with([[1.0, 0.0], [1.0, 2.0]]));
/// let x = Tensor::<3>::from_floats([[[1.0, 5.0]]], &device);
/// let y = gelu_feed_forward(&w_in, &w_out, x).into_data().to_vec::<f32>().unwrap();
/// // gelu(1) = 0.841345 and gelu(−1) = −0.158655
/// assert!((y[0] - 0.682_689).abs() < 1e-6 && (y[1] + 0.317_311).abs() < 1e-6);
/// ```
#[must_use]
pub fn gelu_feed_forward(w_in: &Linear, w_out: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = kernel(w_in, w_out, &x, crate::gelu::Form::Exact) {
        return y;
    }
    apply(w_out, gelu(apply(w_in, x)))
}

/// [`gelu_feed_forward`] with [`gelu_tanh`].
///
/// # Panics
/// If the widths do not fit together.
#[must_use]
pub fn gelu_tanh_feed_forward(w_in: &Linear, w_out: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = kernel(w_in, w_out, &x, crate::gelu::Form::Tanh) {
        return y;
    }
    apply(w_out, gelu_tanh(apply(w_in, x)))
}

/// Both maps have a bias, or neither.
#[cfg(feature = "flex")]
fn kernel(
    w_in: &Linear,
    w_out: &Linear,
    x: &Tensor<3>,
    form: crate::gelu::Form,
) -> Option<Tensor<3>> {
    let (of_in, of_out) = (w_in.weight.val(), w_out.weight.val());
    let fits = x.dims()[2] == of_in.dims()[0] && of_in.dims()[1] == of_out.dims()[0];
    if !fits {
        return None;
    }
    let biases = match (&w_in.bias, &w_out.bias) {
        (Some(b_in), Some(b_out)) => Some([b_in.val(), b_out.val()]),
        (None, None) => None,
        _ => return None,
    };
    let biases = biases.as_ref().map(|[b_in, b_out]| [b_in, b_out]);
    crate::kernel::feed_forward(x, [&of_in, &of_out], biases, form)
}
