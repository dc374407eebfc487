//! GPT-2 as `transformers` stores it.

use headlight_attention::{AttentionOptions, Biases};
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    correspondence::{Correspondence, Layout},
    family::Family,
    folder::name_in_layer,
    keys::Keys,
    llama_keys::gate_of,
};
use crate::{Activation, DecoderConfig, FeedForwardKind};

pub const GPT2: Family = Family {
    model_type: "gpt2",
    class: "GPT2LMHeadModel",
    read_config,
    write_config,
    entries,
    shape_of_buffer,
    prefix: "transformer.",
    head: "lm_head.weight",
    other_head: None,
};

fn write_config(config: &DecoderConfig) -> Map<String, Value> {
    let (d_ff, activation) = gate_of(config);
    let is_scaled = config.attention.scale != Some(1.0);
    let keys = [
        ("vocab_size", json!(config.vocabulary)),
        ("n_positions", json!(config.n_ctx)),
        ("n_embd", json!(config.d_model)),
        ("n_layer", json!(config.n_layers)),
        ("n_head", json!(config.n_heads)),
        ("n_inner", json!(d_ff)),
        ("activation_function", json!(activation)),
        ("layer_norm_epsilon", json!(config.norm_epsilon)),
        ("scale_attn_weights", json!(is_scaled)),
        ("tie_word_embeddings", json!(config.tied_embedding)),
        ("embd_pdrop", json!(0.0)),
        ("attn_pdrop", json!(0.0)),
        ("resid_pdrop", json!(0.0)),
    ];
    let owned = keys.map(|(key, value)| (key.to_owned(), value));
    owned.into_iter().collect()
}

fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let activation = keys.activation("activation_function", Activation::GeluTanh)?;
    let d_model = keys.required_size("n_embd")?;
    let n_ctx = keys.required_size("n_positions")?;
    // Beside it in the files that were published first.
    if let Some(other) = keys.size("n_ctx")?.filter(|&other| other != n_ctx) {
        let reason = format!("must be n_positions, {n_ctx}");
        return Err(keys.refused("n_ctx", &json!(other), &reason));
    }
    Ok(DecoderConfig {
        vocabulary: keys.required_size("vocab_size")?,
        n_ctx,
        d_model,
        n_layers: keys.required_size("n_layer")?,
        n_heads: keys.required_size("n_head")?,
        attention_bias: Biases::ALL,
        feed_forward: Some((
            keys.size("n_inner")?.unwrap_or(4 * d_model),
            FeedForwardKind::Plain(activation),
        )),
        norm_epsilon: keys.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        tied_embedding: keys.flag("tie_word_embeddings", true)?,
        attention: AttentionOptions {
            scale: (!keys.flag("scale_attn_weights", true)?).then_some(1.0),
            ..AttentionOptions::default()
        },
        ..DecoderConfig::default()
    })
}

/// The causal mask and the number that stood for −∞, of each layer.
fn shape_of_buffer(name: &str, config: &DecoderConfig) -> Option<Vec<usize>> {
    let name = name.strip_prefix("transformer.").unwrap_or(name);
    match name_in_layer(name, "h", config.n_layers)? {
        "attn.bias" => Some(vec![1, 1, config.n_ctx, config.n_ctx]),
        "attn.masked_bias" => Some(Vec::new()),
        _ => None,
    }
}

/// The matrices of a GPT-2 are stored `[in, out]`, as here. One matrix holds those of queries, keys
/// and values side by side.
pub fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let (d_model, d_ff) = (
        config.d_model,
        config.feed_forward.map_or(0, |(d_ff, _)| d_ff),
    );
    let same = |theirs: String, ours: &str| Correspondence::new(theirs, ours, Layout::Same);
    let mut entries = vec![
        same("transformer.wte.weight".to_owned(), "w_e"),
        same("transformer.wpe.weight".to_owned(), "w_pos"),
        same("transformer.ln_f.weight".to_owned(), "ln_final.gain"),
        same("transformer.ln_f.bias".to_owned(), "ln_final.bias"),
    ];
    if !config.tied_embedding {
        entries.push(Correspondence::new(
            "lm_head.weight",
            "w_u",
            Layout::Transposed,
        ));
    }
    for layer in 0..config.n_layers {
        let named = |theirs: &str, ours: &str| {
            same(
                format!("transformer.h.{layer}.{theirs}"),
                &format!("blocks.{layer}.{ours}"),
            )
        };
        for (theirs, ours) in [("ln_1", "ln1"), ("ln_2", "ln2")] {
            entries.push(named(&format!("{theirs}.weight"), &format!("{ours}.gain")));
            entries.push(named(&format!("{theirs}.bias"), &format!("{ours}.bias")));
        }
        for (kind, zeros) in [
            ("weight", vec![d_model, 3 * d_model]),
            ("bias", vec![3 * d_model]),
        ] {
            entries.push(Correspondence {
                theirs: format!("transformer.h.{layer}.attn.c_attn.{kind}"),
                ours: ["w_q", "w_k", "w_v"]
                    .map(|matrix| format!("blocks.{layer}.attn.{matrix}.{kind}"))
                    .into(),
                interleaved: 1,
                layout: Layout::Same,
                zeros: Some(zeros),
            });
        }
        for (theirs, ours, width) in [
            ("attn.c_proj", "attn.w_o", d_model),
            ("mlp.c_fc", "mlp.w_in", d_ff),
            ("mlp.c_proj", "mlp.w_out", d_model),
        ] {
            entries.push(named(
                &format!("{theirs}.weight"),
                &format!("{ours}.weight"),
            ));
            entries
                .push(named(&format!("{theirs}.bias"), &format!("{ours}.bias")).or_zeros(&[width]));
        }
    }
    entries
}
