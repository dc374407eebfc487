//! `OLMo` 2 as `transformers` stores it: norms after the parts, and over all queries and all keys.

use headlight_attention::{Biases, QkNorm};
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    family::Family,
    keys::Keys,
    llama::LLAMA,
    llama_keys::{self, Defaults},
};
use crate::{DecoderConfig, NormPlacement};

pub const OLMO2: Family = Family {
    model_type: "olmo2",
    class: "Olmo2ForCausalLM",
    read_config,
    write_config,
    ..LLAMA
};

fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let defaults = Defaults {
        norm_epsilon: 1e-5,
        ..Defaults::LLAMA
    };
    Ok(DecoderConfig {
        attention_bias: if keys.flag("attention_bias", false)? {
            Biases::ALL
        } else {
            Biases::NONE
        },
        qk_norm: QkNorm::AllHeads,
        norm_placement: NormPlacement::Output,
        ..llama_keys::read(keys, defaults)?
    })
}

fn write_config(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::write(config);
    let has_bias = config.attention_bias != Biases::NONE;
    keys.insert("attention_bias".to_owned(), json!(has_bias));
    keys
}
