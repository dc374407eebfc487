//! The keys of `config.json` that all families have whose tensors are named as Llama's.

use serde_json::{Map, Value, json};

use super::{ExchangeError, keys::Keys, rotary_keys};
use crate::{Activation, DecoderConfig, FeedForwardKind, NormKind, Positions, RotaryPositions};

/// What a family means where its file says nothing.
pub struct Defaults {
    pub n_ctx: usize,
    /// `None`: as many as heads.
    pub n_kv_heads: Option<usize>,
    /// `None`: `d_model / n_heads`.
    pub d_head: Option<usize>,
    pub norm_epsilon: f64,
    pub tied_embedding: bool,
    /// The key of the activation of the gate, and the activation.
    pub activation: (&'static str, Activation),
    pub rotary: rotary_keys::Defaults,
}

impl Defaults {
    pub const LLAMA: Self = Self {
        n_ctx: 2048,
        n_kv_heads: None,
        d_head: None,
        norm_epsilon: 1e-6,
        tied_embedding: false,
        activation: ("hidden_act", Activation::Silu),
        rotary: rotary_keys::Defaults::LLAMA,
    };
}

/// A decoder with RMS norms, rotary positions and a gated feed-forward, without biases.
pub fn read(keys: &mut Keys<'_>, defaults: Defaults) -> Result<DecoderConfig, ExchangeError> {
    let (key, default) = defaults.activation;
    let activation = keys.activation(key, default)?;
    let n_ctx = keys
        .size("max_position_embeddings")?
        .unwrap_or(defaults.n_ctx);
    let d_model = keys.required_size("hidden_size")?;
    let n_heads = keys.required_size("num_attention_heads")?;
    let d_head = keys.size_or("head_dim", defaults.d_head)?;
    let config = DecoderConfig {
        vocabulary: keys.required_size("vocab_size")?,
        n_ctx,
        d_model,
        n_layers: keys.required_size("num_hidden_layers")?,
        n_heads,
        n_kv_heads: keys.size_or("num_key_value_heads", defaults.n_kv_heads)?,
        d_head: d_head.filter(|d_head| d_head * n_heads != d_model),
        feed_forward: Some((
            keys.required_size("intermediate_size")?,
            FeedForwardKind::Gated(activation),
        )),
        feed_forward_bias: false,
        norm: NormKind::RmsNorm,
        norm_epsilon: keys
            .number("rms_norm_eps")?
            .unwrap_or(defaults.norm_epsilon),
        tied_embedding: keys.flag("tie_word_embeddings", defaults.tied_embedding)?,
        ..DecoderConfig::default()
    };
    let rotary = rotary_keys::read(keys, defaults.rotary, config.d_head(), n_ctx)?;
    Ok(DecoderConfig {
        positions: Positions::Rotary(rotary),
        ..config
    })
}

/// The same keys. A part that such a decoder cannot have is written as if it had another.
pub fn write(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = sizes(config);
    rotary_keys::write(&mut keys, &rotary_of(config));
    keys
}

/// The keys but those of the rotation.
pub fn sizes(config: &DecoderConfig) -> Map<String, Value> {
    let (d_ff, activation) = gate_of(config);
    let keys = [
        ("vocab_size", json!(config.vocabulary)),
        ("max_position_embeddings", json!(config.n_ctx)),
        ("hidden_size", json!(config.d_model)),
        ("num_hidden_layers", json!(config.n_layers)),
        ("num_attention_heads", json!(config.n_heads)),
        ("num_key_value_heads", json!(config.n_kv_heads())),
        ("head_dim", json!(config.d_head())),
        ("intermediate_size", json!(d_ff)),
        ("hidden_act", json!(activation)),
        ("rms_norm_eps", json!(config.norm_epsilon)),
        ("tie_word_embeddings", json!(config.tied_embedding)),
    ];
    let owned = keys.map(|(key, value)| (key.to_owned(), value));
    owned.into_iter().collect()
}

/// The rotation; that of the paper in a decoder that does not rotate.
pub fn rotary_of(config: &DecoderConfig) -> RotaryPositions {
    match &config.positions {
        Positions::Rotary(rotary) => rotary.clone(),
        _ => RotaryPositions::default(),
    }
}

/// The width of the feed-forward and the name of its activation.
pub fn gate_of(config: &DecoderConfig) -> (usize, &'static str) {
    let (d_ff, activation) = match config.feed_forward {
        Some((d_ff, FeedForwardKind::Gated(activation) | FeedForwardKind::Plain(activation))) => {
            (d_ff, activation)
        }
        None => (4 * config.d_model, Activation::Silu),
    };
    (d_ff, activation.huggingface_name())
}

/// Whether a flag must be off.
pub fn refuse_if_on(keys: &mut Keys<'_>, key: &'static str) -> Result<(), ExchangeError> {
    if keys.flag(key, false)? {
        return Err(keys.refused(key, &json!(true), "must be false"));
    }
    Ok(())
}
