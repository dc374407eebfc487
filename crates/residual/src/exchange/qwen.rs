//! Qwen 2 and 3 as `transformers` stores them.

use headlight_attention::{Biases, QkNorm};
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    family::Family,
    keys::Keys,
    llama::LLAMA,
    llama_keys::{self, Defaults},
    window_keys,
};
use crate::DecoderConfig;

/// Queries, keys and values have biases, and the first layers may be without the window.
pub const QWEN2: Family = Family {
    model_type: "qwen2",
    class: "Qwen2ForCausalLM",
    read_config: read_qwen2,
    write_config: write_qwen2,
    ..LLAMA
};

/// A norm over the components of each query and each key.
pub const QWEN3: Family = Family {
    model_type: "qwen3",
    class: "Qwen3ForCausalLM",
    read_config: read_qwen3,
    write_config: write_qwen3,
    ..LLAMA
};

fn read_qwen2(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = DecoderConfig {
        attention_bias: Biases::QUERY_KEY_VALUE,
        ..llama_keys::read(keys, defaults(None))?
    };
    with_windows(keys, config)
}

fn read_qwen3(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = DecoderConfig {
        attention_bias: if keys.flag("attention_bias", false)? {
            Biases::ALL
        } else {
            Biases::NONE
        },
        qk_norm: QkNorm::EachHead,
        ..llama_keys::read(keys, defaults(Some(128)))?
    };
    with_windows(keys, config)
}

fn defaults(d_head: Option<usize>) -> Defaults {
    Defaults {
        n_ctx: 32_768,
        n_kv_heads: Some(32),
        d_head,
        ..Defaults::LLAMA
    }
}

fn with_windows(
    keys: &mut Keys<'_>,
    config: DecoderConfig,
) -> Result<DecoderConfig, ExchangeError> {
    let is_on = keys.flag("use_sliding_window", false)?;
    let window = keys.size_or("sliding_window", Some(4096))?;
    let window = window.filter(|_| is_on);
    let first = keys.count("max_window_layers")?.unwrap_or(28);
    let (window, full_layers) =
        window_keys::read(keys, window, config.n_layers, |layer| layer < first)?;
    Ok(DecoderConfig {
        window,
        full_layers,
        ..config
    })
}

fn write_qwen2(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::write(config);
    window_keys::write(&mut keys, config);
    keys.insert(
        "use_sliding_window".to_owned(),
        json!(config.window.is_some()),
    );
    // Versions of transformers before 4.53 know no list of layers, only how many come first.
    let first = (0..config.n_layers).take_while(|&layer| config.window_of(layer).is_none());
    keys.insert("max_window_layers".to_owned(), json!(first.count()));
    keys
}

fn write_qwen3(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = write_qwen2(config);
    let has_bias = config.attention_bias != Biases::NONE;
    keys.insert("attention_bias".to_owned(), json!(has_bias));
    keys
}
