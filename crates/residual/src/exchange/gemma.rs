//! Gemma 2 and 3 as `transformers` stores them: norms on either side of each part, whose gains are
//! stored less 1, embeddings times √`d_model`, and layers with a window among others.

use headlight_attention::{AttentionOptions, Biases, QkNorm, RotaryScaling};
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    correspondence::{Correspondence, Layout},
    family::Family,
    keys::Keys,
    llama::LLAMA,
    llama_keys::{self, Defaults},
    llama_tensors::{Storage, entries_of},
    rotary_keys, window_keys,
};
use crate::{Activation, DecoderConfig, NormPlacement, Positions, RotaryPositions};

pub const GEMMA2: Family = Family {
    model_type: "gemma2",
    class: "Gemma2ForCausalLM",
    read_config: read_gemma2,
    write_config: write_gemma2,
    entries,
    ..LLAMA
};

/// The text model.
pub const GEMMA3: Family = Family {
    model_type: "gemma3_text",
    class: "Gemma3ForCausalLM",
    read_config: read_gemma3,
    write_config: write_gemma3,
    entries,
    ..LLAMA
};

/// The bases of Gemma 3 where the file names none: of layers without and with the window.
const BASE: f64 = 1_000_000.0;
const BASE_IN_WINDOW: f64 = 10_000.0;

fn read_gemma2(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = read_shared(
        keys,
        8192,
        rotary_keys::Defaults::LLAMA,
        (Some(50.0), Some(30.0)),
    )?;
    with_windows(keys, config, 2)
}

fn read_gemma3(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let rotary = rotary_keys::Defaults {
        base: BASE,
        // `rope_parameters` has an object for each kind of layer.
        places: &[("rope_scaling", "rope_scaling.")],
        ..rotary_keys::Defaults::LLAMA
    };
    let config = DecoderConfig {
        qk_norm: QkNorm::EachHead,
        ..read_shared(keys, 131_072, rotary, (None, None))?
    };
    let pattern = keys.size("sliding_window_pattern")?;
    let pattern = keys.size("_sliding_window_pattern")?.or(pattern);
    let config = with_windows(keys, config, pattern.unwrap_or(6))?;

    let mut rotary = llama_keys::rotary_of(&config);
    let mut base_in_window = keys.number("rope_local_base_freq")?;
    if let Some(of_kinds) = keys.object("rope_parameters")? {
        let mut of_kinds = Keys::within("rope_parameters.", of_kinds);
        if let Some(full) = of_kinds.object("full_attention")? {
            let full = Keys::within("rope_parameters.full_attention.", full);
            let (own, scaling) = rotary_keys::read_of_kind(full, config.n_ctx)?;
            rotary.base = own.unwrap_or(rotary.base);
            if rotary.scaling == RotaryScaling::None {
                rotary.scaling = scaling;
            }
        }
        if let Some(windowed) = of_kinds.object("sliding_attention")? {
            let windowed = Keys::within("rope_parameters.sliding_attention.", windowed);
            let (own, scaling) = rotary_keys::read_of_kind(windowed, config.n_ctx)?;
            base_in_window = own.or(base_in_window);
            if scaling != RotaryScaling::None {
                let key = "rope_parameters.sliding_attention";
                return Err(keys.refused(key, &json!("scaled"), "must be default"));
            }
        }
        of_kinds.check_all_read()?;
    }
    let base_in_window = base_in_window.unwrap_or(BASE_IN_WINDOW);
    let rotates_alike = base_in_window == rotary.base && rotary.scaling == RotaryScaling::None;
    Ok(DecoderConfig {
        positions: Positions::Rotary(RotaryPositions {
            base_in_window: (!rotates_alike).then_some(base_in_window),
            ..rotary
        }),
        ..config
    })
}

/// What both have; `softcaps` are those of scores and logits where the file says nothing.
fn read_shared(
    keys: &mut Keys<'_>,
    n_ctx: usize,
    rotary: rotary_keys::Defaults,
    softcaps: (Option<f64>, Option<f64>),
) -> Result<DecoderConfig, ExchangeError> {
    let defaults = Defaults {
        n_ctx,
        n_kv_heads: Some(4),
        d_head: Some(256),
        tied_embedding: true,
        activation: ("hidden_activation", Activation::GeluTanh),
        rotary,
        ..Defaults::LLAMA
    };
    let config = llama_keys::read(keys, defaults)?;
    // Published files name the activation under this key too; `hidden_activation` is in force.
    keys.text("hidden_act")?;
    let scalar = keys.number("query_pre_attn_scalar")?.unwrap_or(256.0);
    let scale = scalar.powf(-0.5);
    Ok(DecoderConfig {
        attention_bias: if keys.flag("attention_bias", false)? {
            Biases::ALL
        } else {
            Biases::NONE
        },
        norm_placement: NormPlacement::PreAndOutput,
        embedding_scale: Some((config.d_model as f64).sqrt()),
        attention: AttentionOptions {
            scale: (scalar != config.d_head() as f64).then_some(scale),
            softcap: keys.number_or("attn_logit_softcapping", softcaps.0)?,
        },
        logit_softcap: keys.number_or("final_logit_softcapping", softcaps.1)?,
        ..config
    })
}

/// Every layer has the window but each `pattern`-th.
fn with_windows(
    keys: &mut Keys<'_>,
    config: DecoderConfig,
    pattern: usize,
) -> Result<DecoderConfig, ExchangeError> {
    let window = keys.size_or("sliding_window", Some(4096))?;
    let is_full = |layer: usize| (layer + 1).is_multiple_of(pattern);
    let (window, full_layers) = window_keys::read(keys, window, config.n_layers, is_full)?;
    Ok(DecoderConfig {
        window,
        full_layers,
        ..config
    })
}

fn write_gemma2(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::write(config);
    write_shared(&mut keys, config);
    keys
}

fn write_gemma3(config: &DecoderConfig) -> Map<String, Value> {
    let mut keys = llama_keys::sizes(config);
    write_shared(&mut keys, config);
    let rotary = llama_keys::rotary_of(config);
    let base_in_window = rotary.base_in_window.unwrap_or(rotary.base);
    let of_kinds = json!({
        "full_attention": rotary_keys::of_kind(rotary.base, &rotary.scaling),
        "sliding_attention": rotary_keys::of_kind(base_in_window, &RotaryScaling::None),
    });
    keys.insert("rope_parameters".to_owned(), of_kinds);
    // Versions of transformers before 5 read these keys.
    keys.insert("rope_theta".to_owned(), json!(rotary.base));
    keys.insert("rope_local_base_freq".to_owned(), json!(base_in_window));
    if rotary.scaling != RotaryScaling::None {
        let scaling = rotary_keys::of_kind(rotary.base, &rotary.scaling);
        keys.insert("rope_scaling".to_owned(), Value::Object(scaling));
    }
    keys
}

fn write_shared(keys: &mut Map<String, Value>, config: &DecoderConfig) {
    window_keys::write(keys, config);
    let scale = config.attention.scale_for(config.d_head());
    let (_, activation) = llama_keys::gate_of(config);
    for (key, value) in [
        ("hidden_activation", json!(activation)),
        (
            "attention_bias",
            json!(config.attention_bias != Biases::NONE),
        ),
        // transformers takes whole numbers only.
        (
            "query_pre_attn_scalar",
            json!(scale.powi(-2).round().max(1.0) as u64),
        ),
        ("attn_logit_softcapping", json!(config.attention.softcap)),
        ("final_logit_softcapping", json!(config.logit_softcap)),
    ] {
        keys.insert(key.to_owned(), value);
    }
}

fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let storage = Storage {
        gain: Layout::LessOne,
        ..Storage::LLAMA
    };
    entries_of(config, storage)
}
