//! The weights of heads, as a model hands them out to be looked at.

use burn::{module::Param, tensor::Tensor};
use headlight_attention::MultiHeadAttention;

use crate::ProcessError;

/// The weights of one attention.
#[derive(Debug, Clone)]
pub struct AttentionWeights {
    /// The number of query heads.
    pub n_heads: usize,
    /// The number of key/value heads.
    pub n_kv_heads: usize,
    /// `W_Q [d_model, n_heads · d_head]`, a block of columns for each head.
    pub w_q: Tensor<2>,
    /// `W_K [d_context, n_kv_heads · d_head]`
    pub w_k: Tensor<2>,
    /// `W_V [d_context, n_kv_heads · d_value]`
    pub w_v: Tensor<2>,
    /// `W_O [n_heads · d_value, d_model]`, a block of rows for each head.
    pub w_o: Tensor<2>,
    /// `b_O [d_model]`, which is added beside the results of the heads.
    pub b_o: Option<Tensor<1>>,
}

impl From<&MultiHeadAttention> for AttentionWeights {
    fn from(attention: &MultiHeadAttention) -> Self {
        let [w_q, w_k, w_v, w_o] = [
            &attention.w_q,
            &attention.w_k,
            &attention.w_v,
            &attention.w_o,
        ]
        .map(|projection| projection.weight.val());
        let n_heads = attention.n_heads();
        let d_head = w_q.dims()[1] / n_heads;
        Self {
            n_heads,
            n_kv_heads: w_k.dims()[1] / d_head,
            w_q,
            w_k,
            w_v,
            w_o,
            b_o: attention.w_o.bias.as_ref().map(Param::val),
        }
    }
}

/// The matrices of a model, in the form in which circuits are read from them: what stands between
/// two matrices in the model, the gain of a norm say, is multiplied into one of them.
#[derive(Debug, Clone)]
pub struct CircuitWeights {
    /// `W_E [vocabulary, d_model]`
    pub w_e: Tensor<2>,
    /// `W_pos [n_ctx, d_model]`, if positions are added to the stream.
    pub w_pos: Option<Tensor<2>>,
    /// Every attention, first layer first.
    pub attention: Vec<AttentionWeights>,
    /// `W_U [d_model, vocabulary]`
    pub w_u: Tensor<2>,
    /// Whether a norm takes the mean over `d_model` off whatever is read from the stream.
    pub reads_no_mean: bool,
}

/// Why a model has no [`CircuitWeights`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CircuitWeightsError {
    /// Its norms cannot be multiplied into the matrices that read them.
    #[error(transparent)]
    Norms(#[from] ProcessError),
    /// It does not give them.
    #[error("{model} does not give the weights of its circuits")]
    NotGiven {
        /// [`Probed::name`](crate::Probed::name)
        model: String,
    },
}
