//! Phi-3 as `transformers` stores it: a Llama in fewer matrices, of whose heads a part may rotate.

use headlight_attention::RotaryScaling;
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    correspondence::Correspondence,
    family::Family,
    keys::Keys,
    llama::LLAMA,
    llama_keys::{self, Defaults, refuse_if_on, rotary_of},
    llama_tensors::{Storage, entries_of},
    rotary_keys,
};
use crate::DecoderConfig;

pub const PHI3: Family = Family {
    model_type: "phi3",
    class: "Phi3ForCausalLM",
    read_config,
    write_config,
    entries,
    ..LLAMA
};

fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let defaults = Defaults {
        n_ctx: 4096,
        norm_epsilon: 1e-5,
        rotary: rotary_keys::Defaults {
            part: Some(1.0),
            original_n_ctx: Some(4096),
            ..rotary_keys::Defaults::LLAMA
        },
        ..Defaults::LLAMA
    };
    // Published files say this, though there is no such bias.
    refuse_if_on(keys, "attention_bias")?;
    let config = llama_keys::read(keys, defaults)?;
    if !can_have(&rotary_of(&config).scaling) {
        let reason = "must be default or longrope";
        return Err(keys.refused("rope_scaling", &json!("other"), reason));
    }
    Ok(DecoderConfig {
        window: keys.size("sliding_window")?,
        ..config
    })
}

fn write_config(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::sizes(config);
    let mut rotary = rotary_of(config);
    if !can_have(&rotary.scaling) {
        rotary.scaling = RotaryScaling::None;
    }
    if let RotaryScaling::LongRope { original_n_ctx, .. } = rotary.scaling {
        keys.insert(rotary_keys::ORIGINAL.to_owned(), json!(original_n_ctx));
    }
    let names = ["rope_theta", "partial_rotary_factor"];
    rotary_keys::write_of_part(&mut keys, &rotary, config.d_head(), names);
    keys.insert("sliding_window".to_owned(), json!(config.window));
    keys
}

/// Whether angles may be scaled so.
fn can_have(scaling: &RotaryScaling) -> bool {
    matches!(
        scaling,
        RotaryScaling::None | RotaryScaling::LongRope { .. }
    )
}

fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let storage = Storage {
        fused: true,
        ..Storage::LLAMA
    };
    entries_of(config, storage)
}
