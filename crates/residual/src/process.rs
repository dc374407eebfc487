//! Other weights for the same function. Each step removes an arbitrary choice from a model's
//! weights, so that the rest can be interpreted (as `TransformerLens` does before analysis).

use burn::{module::Param, nn::Linear, tensor::Tensor};
use headlight_attention::Biases;

use crate::{Decoder, Norm, NormKind, NormPlacement};

/// The reason why weights could not be processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    /// The norms write to the stream instead of reading it.
    #[error(
        "the norms of a post-norm model replace the stream and cannot be folded into what reads it"
    )]
    PostNorm,
    /// Norms stand between the parts and the stream.
    #[error(
        "the norms after the parts of this model write to the stream and cannot be folded into what reads it"
    )]
    OutputNorm,
    /// A part of the model reads the mean of the stream.
    #[error("only a pre-norm model with layer norm does not see the mean of its stream")]
    MeanIsRead,
}

impl Decoder {
    /// Folds each norm's gain and bias into the matrices that read its output: `(x·gain + bias)·W +
    /// b = x·(gain·W) + (bias·W + b)`. Norms then have gain 1 and bias 0. Where a projection gets a
    /// new bias, all projections of its kind get one. A tied unembedding becomes a separate matrix,
    /// and a factor on embeddings becomes part of `W_E`. The logits stay the same.
    ///
    /// # Errors
    /// If the model is post-norm, or norms what its parts add.
    ///
    /// ```
    /// # use burn::tensor::{Device, Int, Tensor, Tolerance};
    /// # use headlight_residual::DecoderConfig;
    /// let model = DecoderConfig::default().try_init(0, &Device::flex())?;
    /// let folded = model.clone().fold_norms()?;
    /// let tokens = Tensor::<2, Int>::from_ints([[1, 2, 3]], &Device::flex());
    /// folded.forward(tokens.clone()).into_data().assert_approx_eq::<f32>(&model.forward(tokens).into_data(), Tolerance::absolute(1e-6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold_norms(mut self) -> Result<Self, ProcessError> {
        if self.config.norm_placement == NormPlacement::Post {
            return Err(ProcessError::PostNorm);
        }
        if self.config.norm_placement.normalizes_outputs() && self.config.norm != NormKind::None {
            return Err(ProcessError::OutputNorm);
        }
        for block in &mut self.blocks {
            let attention = &mut block.attn;
            let has_bias = matches!(block.ln1, Some(Norm::Layer(_)));
            fold(
                block.ln1.as_mut(),
                vec![&mut attention.w_q, &mut attention.w_k, &mut attention.w_v],
            );
            if has_bias {
                attention.w_o.bias = Some(bias_of(&attention.w_o));
            }
            if let Some(mlp) = &mut block.mlp {
                let has_bias = matches!(block.ln2, Some(Norm::Layer(_)));
                fold(block.ln2.as_mut(), mlp.readers_mut());
                if has_bias {
                    let w_out = mlp.w_out_mut();
                    w_out.bias = Some(bias_of(w_out));
                }
            }
        }
        self = self.untie();
        if let Some(scale) = self.config.embedding_scale.take() {
            self.w_e = self.w_e.map(|w_e| w_e.mul_scalar(scale));
        }
        if let Some(w_u) = self.w_u.take() {
            let mut unembedding = Linear {
                weight: w_u,
                bias: self.b_u.take(),
            };
            fold(self.ln_final.as_mut(), vec![&mut unembedding]);
            (self.w_u, self.b_u) = (Some(unembedding.weight), unembedding.bias);
        }
        if self.config.norm == NormKind::LayerNorm {
            self.config.attention_bias = Biases::ALL;
            self.config.feed_forward_bias = true;
        }
        Ok(self)
    }

    /// Subtracts the mean over `d_model` from every matrix that writes to the stream. Layer norm
    /// subtracts this mean before any part reads the stream. A tied unembedding becomes a separate
    /// matrix. The logits stay the same.
    ///
    /// # Errors
    /// If the model is not pre-norm with layer norm.
    pub fn centre_writing(mut self) -> Result<Self, ProcessError> {
        if self.config.norm != NormKind::LayerNorm
            || self.config.norm_placement != NormPlacement::Pre
        {
            return Err(ProcessError::MeanIsRead);
        }
        self = self.untie();
        self.w_e = self.w_e.map(|matrix| centre(matrix, 1));
        self.w_pos = self
            .w_pos
            .map(|w_pos| w_pos.map(|matrix| centre(matrix, 1)));
        for block in &mut self.blocks {
            centre_output(&mut block.attn.w_o);
            if let Some(mlp) = &mut block.mlp {
                centre_output(mlp.w_out_mut());
            }
        }
        Ok(self)
    }

    /// Subtracts the mean over the vocabulary from the unembedding. All logits of a position shift
    /// by one number, which changes no probability. A tied unembedding becomes a separate matrix.
    #[must_use]
    pub fn centre_unembedding(mut self) -> Self {
        self = self.untie();
        self.w_u = self.w_u.map(|w_u| w_u.map(|matrix| centre(matrix, 1)));
        self.b_u = self
            .b_u
            .map(|b_u| b_u.map(|bias| bias.clone() - bias.mean()));
        self
    }

    /// Folds the biases of values into the bias of `W_O`: `b_O ← b_O + Σ_h b_V[h]·W_O[h]`. A
    /// pattern's weights sum to 1, so each head adds its value bias for every pattern. The logits
    /// stay the same.
    #[must_use]
    pub fn fold_value_biases(mut self) -> Self {
        let (n_heads, n_kv_heads) = (self.config.n_heads, self.config.n_kv_heads());
        for attention in self.blocks.iter_mut().map(|block| &mut block.attn) {
            let Some(bias) = attention.w_v.bias.take() else {
                continue;
            };
            // Every query head reads the values of its group.
            let per_head = bias.val().reshape([n_kv_heads, 1, self.config.d_head()]);
            let per_head =
                per_head.expand([n_kv_heads, n_heads / n_kv_heads, self.config.d_head()]);
            let added = per_head
                .reshape([1, n_heads * self.config.d_head()])
                .matmul(attention.w_o.weight.val());
            attention.w_o.bias =
                Some(bias_of(&attention.w_o).map(|bias| bias + added.squeeze_dim(0)));
            attention.w_v.bias = Some(bias.map(|bias| bias.zeros_like()));
        }
        self
    }

    /// Makes the unembedding a separate matrix.
    fn untie(mut self) -> Self {
        self.w_u = Some(
            self.w_u
                .unwrap_or_else(|| Param::from_tensor(self.w_e.val().transpose())),
        );
        self.config.tied_embedding = false;
        self
    }
}

/// Folds the norm's gain and bias into the matrices that read its output.
fn fold(norm: Option<&mut Norm>, readers: Vec<&mut Linear>) {
    let Some(norm) = norm else { return };
    let (gain, bias) = match norm {
        Norm::Layer(norm) => (&mut norm.gain, Some(&mut norm.bias)),
        Norm::Rms(norm) => (&mut norm.gain, None),
    };
    for linear in readers {
        if let Some(bias) = &bias {
            let added = bias
                .val()
                .unsqueeze::<2>()
                .matmul(linear.weight.val())
                .squeeze_dim(0);
            linear.bias = Some(bias_of(linear).map(|bias| bias + added));
        }
        let column = gain.val().unsqueeze_dim::<2>(1);
        linear.weight = linear.weight.clone().map(|weight| weight * column);
    }
    *gain = gain.clone().map(|gain| gain.ones_like());
    if let Some(bias) = bias {
        *bias = bias.clone().map(|bias| bias.zeros_like());
    }
}

/// The bias of a matrix; zeros if the matrix has no bias.
fn bias_of(linear: &Linear) -> Param<Tensor<1>> {
    let [_, width] = linear.weight.dims();
    linear
        .bias
        .clone()
        .unwrap_or_else(|| Param::from_tensor(Tensor::zeros([width], &linear.weight.device())))
}

/// Subtracts the mean over an axis.
fn centre(matrix: Tensor<2>, axis: usize) -> Tensor<2> {
    matrix.clone() - matrix.mean_dim(axis)
}

fn centre_output(linear: &mut Linear) {
    linear.weight = linear.weight.clone().map(|weight| centre(weight, 1));
    linear.bias = linear
        .bias
        .clone()
        .map(|bias| bias.map(|bias| bias.clone() - bias.mean()));
}
