//! The keys of a model in a GGUF file, which begin with the name of its architecture.

use std::collections::BTreeMap;

use headlight_attention::{Biases, RotaryScaling};

use super::metadata::Metadata;
use crate::{
    Activation, DecoderConfig, FeedForwardKind, NormKind, Positions, RotaryPositions,
    exchange::{ExchangeError, stored_tensor::StoredTensor},
};

const EMBEDDING: &str = "token_embd.weight";
const HEAD: &str = "output.weight";
/// Where a file names no base.
const BASE: f64 = 10_000.0;

/// Keys and tensors of one architecture.
pub struct ModelKeys<'a> {
    pub architecture: &'static str,
    pub metadata: &'a Metadata,
    pub tensors: &'a BTreeMap<String, StoredTensor>,
}

impl ModelKeys<'_> {
    /// The whole name of a key.
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    pub fn size(&self, key: &str) -> Result<Option<usize>, ExchangeError> {
        self.metadata.size(&self.key(key))
    }

    pub fn count(&self, key: &str) -> Result<Option<usize>, ExchangeError> {
        self.metadata.count(&self.key(key))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>, ExchangeError> {
        self.metadata.number(&self.key(key))
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ExchangeError> {
        self.metadata.flag(&self.key(key))
    }

    pub fn required_size(&self, key: &str) -> Result<usize, ExchangeError> {
        self.metadata.required_size(&self.key(key))
    }

    pub fn required_number(&self, key: &str) -> Result<f64, ExchangeError> {
        let number = self.number(key)?;
        number.ok_or_else(|| self.refused(key, "is missing"))
    }

    pub fn refused(&self, key: &str, reason: &str) -> ExchangeError {
        self.metadata.refused(&self.key(key), reason)
    }

    /// Sizes of the vocabulary, the stream, the heads and the layers, and the biases that the first
    /// layer has.
    pub fn sizes(&self) -> Result<DecoderConfig, ExchangeError> {
        let embedding = self.tensors.get(EMBEDDING);
        let embedding = embedding.ok_or_else(|| ExchangeError::Missing(EMBEDDING.to_owned()))?;
        let vocabulary = embedding.shape[0];
        if let Some(size) = self.size("vocab_size")?
            && size != vocabulary
        {
            let reason = format!("must be the rows of {EMBEDDING}, {vocabulary}");
            return Err(self.refused("vocab_size", &reason));
        }
        let config = DecoderConfig {
            vocabulary,
            n_ctx: self.required_size("context_length")?,
            d_model: self.required_size("embedding_length")?,
            n_layers: self.required_size("block_count")?,
            n_heads: self.required_size("attention.head_count")?,
            n_kv_heads: self.size("attention.head_count_kv")?,
            d_head: self.size("attention.key_length")?,
            attention_bias: self.attention_biases(),
            feed_forward_bias: self.has_bias("ffn_up"),
            tied_embedding: !self.tensors.contains_key(HEAD),
            ..DecoderConfig::default()
        };
        if let Some(size) = self.size("attention.value_length")?
            && size != config.d_head()
        {
            let reason = format!("must be the width of a head, {}", config.d_head());
            return Err(self.refused("attention.value_length", &reason));
        }
        Ok(config)
    }

    /// A decoder with RMS norms, rotary positions and a gated feed-forward, whose heads rotate whole.
    pub fn like_llama(&self) -> Result<DecoderConfig, ExchangeError> {
        let config = self.like_llama_rotating_in_part()?;
        match config.positions {
            Positions::Rotary(RotaryPositions {
                rotated: Some(_), ..
            }) => {
                let reason = format!("must be the width of a head, {}", config.d_head());
                Err(self.refused("rope.dimension_count", &reason))
            }
            _ => Ok(config),
        }
    }

    /// [`like_llama`](Self::like_llama) with heads of which a part may rotate.
    pub fn like_llama_rotating_in_part(&self) -> Result<DecoderConfig, ExchangeError> {
        let config = self.sizes()?;
        Ok(DecoderConfig {
            feed_forward: Some((
                self.required_size("feed_forward_length")?,
                FeedForwardKind::Gated(Activation::Silu),
            )),
            norm: NormKind::RmsNorm,
            norm_epsilon: self.required_number("attention.layer_norm_rms_epsilon")?,
            positions: Positions::Rotary(self.rotary(config.d_head())?),
            ..config
        })
    }

    pub fn rotary(&self, d_head: usize) -> Result<RotaryPositions, ExchangeError> {
        let scaling = self.metadata.text(&self.key("rope.scaling.type"))?;
        let factor = self.number("rope.scaling.factor")?;
        let scaling = match (scaling, factor) {
            (None | Some("none"), _) => RotaryScaling::None,
            (Some("linear"), Some(factor)) => RotaryScaling::Linear { factor },
            (Some("yarn"), Some(factor)) => self.yarn(factor)?,
            _ => {
                let reason = "must be none, or linear or yarn with a rope.scaling.factor";
                return Err(self.refused("rope.scaling.type", reason));
            }
        };
        let rotated = self.size("rope.dimension_count")?;
        if rotated.is_some_and(|rotated| rotated > d_head) {
            let reason = format!("must be at most the width of a head, {d_head}");
            return Err(self.refused("rope.dimension_count", &reason));
        }
        Ok(RotaryPositions {
            base: self.number("rope.freq_base")?.unwrap_or(BASE),
            rotated: rotated.filter(|&rotated| rotated < d_head),
            scaling,
            base_in_window: None,
        })
    }

    /// The converter (class `TextModel`) writes down the numbers of `config.json`, but neither
    /// `truncate` nor `mscale`.
    fn yarn(&self, factor: f64) -> Result<RotaryScaling, ExchangeError> {
        let number = |key: &str, published: f64| {
            let number = self.number(&format!("rope.scaling.{key}"))?;
            Ok::<f64, ExchangeError>(number.unwrap_or(published))
        };
        Ok(RotaryScaling::Yarn {
            factor,
            original_n_ctx: self.required_size("rope.scaling.original_context_length")?,
            fast_turns: number("yarn_beta_fast", RotaryScaling::FAST_TURNS)?,
            slow_turns: number("yarn_beta_slow", RotaryScaling::SLOW_TURNS)?,
            whole_pairs: true,
            attention_factor: self.number("rope.scaling.yarn_attn_factor")?,
        })
    }

    /// Of which tensors the first layer has biases. A layer that differs is refused by its tensor.
    fn attention_biases(&self) -> Biases {
        let in_one = self.has_bias("attn_qkv");
        Biases {
            query: in_one || self.has_bias("attn_q"),
            key: in_one || self.has_bias("attn_k"),
            value: in_one || self.has_bias("attn_v"),
            output: self.has_bias("attn_output"),
        }
    }

    fn has_bias(&self, part: &str) -> bool {
        self.tensors.contains_key(&format!("blk.0.{part}.bias"))
    }
}
