//! An activation of any site, kept after the forward pass.

use burn::tensor::{Tensor, TensorData};

/// A tensor with the number of axes of its site.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_residual::KeptTensor;
///
/// let kept = KeptTensor::from(Tensor::<3>::from_floats([[[1.0], [3.0]], [[5.0], [7.0]]], &Device::flex()));
/// assert_eq!(kept.dims(), [2, 2, 1]);
/// let mean: Tensor<3> = kept.mean_over([0, 1]).tensor();
/// assert_eq!(mean.dims(), [1, 1, 1]);
/// assert_eq!(mean.into_scalar::<f32>(), 4.0);
/// ```
#[derive(Debug, Clone)]
pub struct KeptTensor {
    flat: Tensor<1>,
    dims: Vec<usize>,
}

impl<const D: usize> From<Tensor<D>> for KeptTensor {
    fn from(tensor: Tensor<D>) -> Self {
        let dims = tensor.dims();
        Self {
            flat: tensor.reshape([dims.iter().product::<usize>()]),
            dims: dims.to_vec(),
        }
    }
}

impl KeptTensor {
    /// Its shape.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Its size in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.flat.dims()[0] * self.flat.dtype().size()
    }

    /// The tensor.
    ///
    /// # Panics
    /// If `D` is not its number of axes.
    #[must_use]
    pub fn tensor<const D: usize>(&self) -> Tensor<D> {
        self.clone().into_tensor()
    }

    /// Moves the tensor out, so that its numbers can be read without a copy.
    ///
    /// # Panics
    /// If `D` is not its number of axes.
    #[must_use]
    pub fn into_tensor<const D: usize>(self) -> Tensor<D> {
        let dims: [usize; D] =
            self.dims.as_slice().try_into().unwrap_or_else(|_| {
                panic!("an activation of shape {:?} has not {D} axes", self.dims)
            });
        self.flat.reshape(dims)
    }

    /// Some of its first axis, the rows of a batch.
    ///
    /// # Panics
    /// If there are not as many.
    #[must_use]
    pub fn rows(&self, first: usize, count: usize) -> Self {
        let size: usize = self.dims[1..].iter().product();
        let mut dims = self.dims.clone();
        dims[0] = count;
        let flat = self
            .flat
            .clone()
            .slice(first * size..(first + count) * size);
        Self { flat, dims }
    }

    /// The rows of its batch, so many times one after the other.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use headlight_residual::KeptTensor;
    ///
    /// let kept = KeptTensor::from(Tensor::<2>::from_floats([[1.0], [2.0], [3.0]], &Device::flex()));
    /// let twice: Tensor<2> = kept.rows(1, 2).rows_times(2).tensor();
    /// assert_eq!(twice.into_data().to_vec::<f32>().unwrap(), [2.0, 3.0, 2.0, 3.0]);
    /// ```
    #[must_use]
    pub fn rows_times(&self, times: usize) -> Self {
        let mut dims = self.dims.clone();
        dims[0] *= times;
        let flat = self.flat.clone().repeat_dim(0, times);
        Self { flat, dims }
    }

    /// The rows of its batch in pairs, each in the place of the other: 1, 0, 3, 2, …
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use headlight_residual::KeptTensor;
    ///
    /// let kept = KeptTensor::from(Tensor::<2>::from_floats([[1.0], [2.0], [3.0], [4.0]], &Device::flex()));
    /// let swapped: Tensor<2> = kept.pairs_swapped().tensor();
    /// assert_eq!(swapped.into_data().to_vec::<f32>().unwrap(), [2.0, 1.0, 4.0, 3.0]);
    /// ```
    ///
    /// # Panics
    /// If the number of rows is odd.
    #[must_use]
    pub fn pairs_swapped(&self) -> Self {
        let rows = self.dims[0];
        assert!(rows.is_multiple_of(2), "{rows} rows are no pairs");
        let of_row: usize = self.dims[1..].iter().product();
        let pairs: Tensor<3> = self.flat.clone().reshape([rows / 2, 2, of_row]);
        Self {
            flat: pairs.flip([1]).reshape([rows * of_row]),
            dims: self.dims.clone(),
        }
    }

    /// Its numbers, row by row.
    #[must_use]
    pub fn into_data(self) -> TensorData {
        self.flat.into_data()
    }

    /// The mean over some axes, which become 1 long.
    ///
    /// # Panics
    /// If there is no such axis.
    #[must_use]
    pub fn mean_over<const N: usize>(&self, axes: [usize; N]) -> Self {
        axes.into_iter().fold(self.clone(), |activation, axis| {
            let [before, rest] = [&activation.dims[..axis], &activation.dims[axis + 1..]];
            let shape = [
                before.iter().product(),
                activation.dims[axis],
                rest.iter().product::<usize>(),
            ];
            let mean: Tensor<3> = activation.flat.reshape(shape).mean_dim(1);
            let mut dims = activation.dims.clone();
            dims[axis] = 1;
            Self {
                flat: mean.reshape([shape[0] * shape[2]]),
                dims,
            }
        })
    }
}
