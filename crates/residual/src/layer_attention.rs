//! The attention of a layer as parts of the stream pass it: with its scales held, it is linear.

use burn::{module::Param, nn::Linear, tensor::Tensor};
use headlight_attention::{Heads, MultiHeadAttention, Positions};

use crate::Norm;

/// The self-attention of a layer and the norms around it, whose queries and keys stand at positions
/// 0, 1, 2, ….
///
/// A norm and QK-norm divide by a number that depends on the whole stream. With these numbers held,
/// each query and each key is the sum of what the parts of the stream become: [`Norm::shares`], then
/// a matrix, then [`qk_norm_factors`](Self::qk_norm_factors), then [`turned`](Self::turned).
#[derive(Debug, Clone)]
pub struct LayerAttention {
    /// The norm before attention, if it reads a normalised copy of the stream.
    pub ln1: Option<Norm>,
    /// The attention.
    pub attention: MultiHeadAttention,
    /// The norm between the results of the heads and the stream, if there is one.
    pub ln1_post: Option<Norm>,
}

/// `W_Q`, `W_K` and `W_V [d_model, width]` of one query head, with the key/value head that it reads,
/// and their biases `[width]`.
#[derive(Debug, Clone)]
pub struct ReadingMatrices {
    /// Of queries.
    pub query: (Tensor<2>, Option<Tensor<1>>),
    /// Of keys.
    pub key: (Tensor<2>, Option<Tensor<1>>),
    /// Of values.
    pub value: (Tensor<2>, Option<Tensor<1>>),
}

impl LayerAttention {
    /// The key/value head that a query head reads: `⌊head·n_kv_heads/n_heads⌋`.
    #[must_use]
    pub fn kv_head(&self, head: usize) -> usize {
        head * self.attention.n_kv_heads() / self.attention.n_heads()
    }

    /// The width of a query and of a key.
    #[must_use]
    pub fn d_head(&self) -> usize {
        let [_, width] = self.attention.w_q.weight.dims();
        width / self.attention.n_heads()
    }

    /// The factor on `Q·Kᵀ`.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.attention.options().scale_for(self.d_head())
    }

    /// The matrices that one head reads the stream with.
    #[must_use]
    pub fn matrices_of(&self, head: usize) -> ReadingMatrices {
        let (kv_head, n_kv_heads) = (self.kv_head(head), self.attention.n_kv_heads());
        let part = |projection: &Linear, head: usize, heads: usize| {
            let [_, width] = projection.weight.dims();
            let width = width / heads;
            let bias = projection.bias.as_ref().map(Param::val);
            (
                projection.weight.val().narrow(1, head * width, width),
                bias.map(|bias| bias.narrow(0, head * width, width)),
            )
        };
        let attention = &self.attention;
        ReadingMatrices {
            query: part(&attention.w_q, head, attention.n_heads()),
            key: part(&attention.w_k, kv_head, n_kv_heads),
            value: part(&attention.w_v, kv_head, n_kv_heads),
        }
    }

    /// `W_O [d_value, d_model]` of one head.
    #[must_use]
    pub fn w_o_of(&self, head: usize) -> Tensor<2> {
        let w_o = self.attention.w_o.weight.val();
        let [width, _] = w_o.dims();
        let d_value = width / self.attention.n_heads();
        w_o.narrow(0, head * d_value, d_value)
    }

    /// What QK-norm multiplies the components of one head's queries and of its keys with, if it is
    /// on: the gain over the root mean square.
    ///
    /// # Shapes
    /// - q: `[batch, pos, n_heads, d_head]`, k: `[batch, pos, n_kv_heads, d_head]`, as projected
    /// - factors: `[batch, 1, pos, d_head]` each
    #[must_use]
    pub fn qk_norm_factors(
        &self,
        head: usize,
        q: Tensor<4>,
        k: Tensor<4>,
    ) -> Option<[Tensor<4>; 2]> {
        let [q, k] = [q, k].map(|heads| heads.swap_dims(1, 2)); // [batch, heads, pos, d_head]
        let [q, k] = self
            .attention
            .qk_norm_factors(&Heads { q, v: k.clone(), k })?;
        Some([q.narrow(1, head, 1), k.narrow(1, self.kv_head(head), 1)])
    }

    /// Queries or keys turned as rotary positions turn them; under other schemes, as they are.
    ///
    /// # Shapes
    /// - x, output: `[batch, any number, pos, d_head]`
    #[must_use]
    pub fn turned(&self, x: Tensor<4>) -> Tensor<4> {
        let Some(scheme) = &self.attention.position else {
            return x;
        };
        let [_, _, length, _] = x.dims();
        scheme.rotate(x, &[(0..length as i64).collect()])
    }

    /// What the positions add to the scores of one head, if they add anything: `ALiBi` or a relative
    /// bias.
    ///
    /// # Shapes
    /// - output: `[query, key]`
    #[must_use]
    pub fn position_bias(&self, head: usize, length: usize) -> Option<Tensor<2>> {
        let scheme = self.attention.position.as_ref()?;
        let positions = Positions::aligned_at_end(length, length);
        let bias = scheme.bias(&positions, &self.attention.w_q.weight.device())?; // [1, heads, query, key]
        Some(bias.narrow(1, head, 1).reshape([length, length]))
    }
}
