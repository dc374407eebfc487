//! Llama and Mistral as `transformers` stores them.

use headlight_attention::Biases;
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    family::Family,
    keys::Keys,
    llama_keys::{self, Defaults},
    llama_tensors,
};
use crate::DecoderConfig;

pub const LLAMA: Family = Family {
    model_type: "llama",
    class: "LlamaForCausalLM",
    read_config: read_llama,
    write_config: write_llama,
    entries: llama_tensors::entries,
    shape_of_buffer: llama_tensors::shape_of_buffer,
    prefix: llama_tensors::PREFIX,
    head: llama_tensors::HEAD,
    other_head: None,
};

/// A Llama whose layers look through a window.
pub const MISTRAL: Family = Family {
    model_type: "mistral",
    class: "MistralForCausalLM",
    read_config: read_mistral,
    write_config: write_mistral,
    ..LLAMA
};

fn read_llama(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    Ok(DecoderConfig {
        attention_bias: if keys.flag("attention_bias", false)? {
            Biases::ALL
        } else {
            Biases::NONE
        },
        feed_forward_bias: keys.flag("mlp_bias", false)?,
        ..llama_keys::read(keys, Defaults::LLAMA)?
    })
}

fn write_llama(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::write(config);
    let has_bias = config.attention_bias != Biases::NONE;
    keys.insert("attention_bias".to_owned(), json!(has_bias));
    keys.insert("mlp_bias".to_owned(), json!(config.feed_forward_bias));
    keys
}

fn read_mistral(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let defaults = Defaults {
        n_ctx: 4096 * 32,
        n_kv_heads: Some(8),
        ..Defaults::LLAMA
    };
    Ok(DecoderConfig {
        window: keys.size_or("sliding_window", Some(4096))?,
        ..llama_keys::read(keys, defaults)?
    })
}

fn write_mistral(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::write(config);
    keys.insert("sliding_window".to_owned(), json!(config.window));
    keys
}
