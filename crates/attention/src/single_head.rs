//! One head, exactly as the mechanism is taught.

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation::softmax},
};

use crate::ConfigError;

/// Single-head self-attention without a mask: `softmax(Q·Kᵀ/√d_k)·V` (Vaswani et al. 2017, section
/// 3.2.1).
///
/// `w_q`, `w_k`, `w_v` are the **parameters**: learned, stored, the same for every input. Q, K, V
/// are **activations**: computed anew from each `x` and then forgotten.
#[derive(Module, Debug)]
pub struct SingleHeadAttention {
    /// `W_Q [d_model, d_k]` projects a token to its query: the property it looks for.
    pub w_q: Linear,
    /// `W_K [d_model, d_k]` projects a token to its key: the property by which it is found.
    pub w_k: Linear,
    /// `W_V [d_model, d_k]` projects a token to its value: the vector it passes on when it is
    /// found.
    pub w_v: Linear,
}

impl SingleHeadAttention {
    /// A head on `device` that reads vectors of width `d_model` and writes vectors of width `d_k`.
    ///
    /// # Errors
    /// If `d_model` or `d_k` is 0.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use headlight_attention::SingleHeadAttention;
    ///
    /// let device = Device::flex();
    /// let head = SingleHeadAttention::try_init(8, 4, &device)?;
    /// let x = Tensor::<3>::ones([1, 5, 8], &device);
    /// assert_eq!(head.forward(x).dims(), [1, 5, 4]);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    pub fn try_init(d_model: usize, d_k: usize, device: &Device) -> Result<Self, ConfigError> {
        ConfigError::check_sizes(&[("d_model", d_model), ("d_k", d_k)])?;
        let projection = LinearConfig::new(d_model, d_k).with_bias(false);
        Ok(Self {
            w_q: projection.init(device),
            w_k: projection.init(device),
            w_v: projection.init(device),
        })
    }

    /// Computes self-attention: every token attends to every token.
    ///
    /// # Shapes
    /// - x: `[batch, seq, d_model]`
    /// - output: `[batch, seq, d_k]`
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::SingleHeadAttention;
    /// let device = Device::flex();
    /// let mut head = SingleHeadAttention::try_init(1, 1, &device)?;
    /// for projection in [&mut head.w_q, &mut head.w_k, &mut head.w_v] {
    ///     projection.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
    /// }
    /// // Q = K = V = [0, 1]: the scores are [[0, 0], [0, 1]], the weights [[½, ½], [1, e]/(1 + e)].
    /// let output = head.forward(Tensor::from_floats([[[0.0], [1.0]]], &device)).into_data().to_vec::<f32>().unwrap();
    /// assert!((output[0] - 0.5).abs() < 1e-6 && (output[1] - 0.731_058_6).abs() < 1e-6);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let q = self.w_q.forward(x.clone()); // [batch, seq, d_k]
        let k = self.w_k.forward(x.clone()); // [batch, seq, d_k]
        let v = self.w_v.forward(x); // [batch, seq, d_k]
        let [_, _, d_k] = q.dims();
        let scores = q.matmul(k.transpose()); // [batch, seq, seq]
        let scaled = scores.div_scalar((d_k as f64).sqrt()); // [batch, seq, seq]
        let weights = softmax(scaled, 2); // [batch, seq, seq], each row sums to 1
        weights.matmul(v) // [batch, seq, d_k]
    }
}
