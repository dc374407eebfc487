//! The linear map of a weight matrix.

use burn::{
    module::Param,
    nn::Linear,
    tensor::{Tensor, module},
};

/// Computes `x·W + b` at each position. All positions of all sequences form one matrix product.
///
/// # Shapes
/// - x: `[batch, pos, width_in]`
/// - weight: `[width_in, width_out]`; bias: `[width_out]`
/// - output: `[batch, pos, width_out]`
///
/// # Panics
/// If the widths do not fit together.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_ops::linear;
///
/// let device = Device::flex();
/// let x = Tensor::<3>::from_floats([[[1.0, 2.0]]], &device);
/// let weight = Tensor::<2>::from_floats([[3.0, 4.0, 5.0], [10.0, 20.0, 30.0]], &device);
/// let y = linear(x, weight, Some(Tensor::from_floats([0.5, 0.0, 0.0], &device)));
/// assert_eq!(y.into_data().to_vec::<f32>().unwrap(), [23.5, 44.0, 65.0]);
/// ```
#[must_use]
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<3> {
    let [width_in, width_out] = weight.dims();
    assert!(
        x.dims()[2] == width_in && bias.as_ref().is_none_or(|bias| bias.dims() == [width_out]),
        "x {:?} times a weight [{width_in}, {width_out}] plus a bias {:?}",
        x.dims(),
        bias.map(|bias| bias.dims())
    );
    #[cfg(feature = "flex")]
    if let Some(y) = crate::kernel::linear(&x, &weight, bias.as_ref()) {
        return y;
    }
    module::linear(x, weight, bias)
}

/// [`linear`] with the weight and bias of a module.
#[must_use]
pub fn apply(projection: &Linear, x: Tensor<3>) -> Tensor<3> {
    linear(
        x,
        projection.weight.val(),
        projection.bias.as_ref().map(Param::val),
    )
}
