//! GPT-NeoX, the family of Pythia, as `transformers` stores it.

use headlight_attention::Biases;
use serde_json::{Map, Value, json};

use super::{
    ExchangeError,
    correspondence::{Correspondence, Layout},
    family::Family,
    folder::name_in_layer,
    keys::Keys,
    llama_keys::{gate_of, rotary_of},
    rotary_keys,
};
use crate::{Activation, BlockOrder, DecoderConfig, FeedForwardKind, Positions};

pub const GPT_NEOX: Family = Family {
    model_type: "gpt_neox",
    class: "GPTNeoXForCausalLM",
    read_config,
    write_config,
    entries,
    shape_of_buffer,
    prefix: "gpt_neox.",
    head: "embed_out.weight",
    // In memory of transformers 5; in files it keeps the old name.
    other_head: Some("lm_head.weight"),
};

fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let activation = keys.activation("hidden_act", Activation::Gelu)?;
    let is_parallel = keys.flag("use_parallel_residual", true)?;
    let config = DecoderConfig {
        vocabulary: keys.required_size("vocab_size")?,
        n_ctx: keys.size("max_position_embeddings")?.unwrap_or(2048),
        d_model: keys.required_size("hidden_size")?,
        n_layers: keys.required_size("num_hidden_layers")?,
        n_heads: keys.required_size("num_attention_heads")?,
        attention_bias: if keys.flag("attention_bias", true)? {
            Biases::ALL
        } else {
            Biases::NONE
        },
        block_order: if is_parallel {
            BlockOrder::Parallel
        } else {
            BlockOrder::Sequential
        },
        feed_forward: Some((
            keys.required_size("intermediate_size")?,
            FeedForwardKind::Plain(activation),
        )),
        norm_epsilon: keys.number("layer_norm_eps")?.unwrap_or(1e-5),
        tied_embedding: keys.flag("tie_word_embeddings", false)?,
        ..DecoderConfig::default()
    };
    // Versions of transformers before 5 have names of their own.
    let part = keys.number("rotary_pct")?.unwrap_or(0.25);
    let base = keys.number("rotary_emb_base")?;
    if let (Some(base), Some(other)) = (base, keys.number("rope_theta")?)
        && base != other
    {
        let reason = format!("must be rope_theta, {other}");
        return Err(keys.refused("rotary_emb_base", &json!(base), &reason));
    }
    let defaults = rotary_keys::Defaults {
        base: base.unwrap_or(rotary_keys::Defaults::LLAMA.base),
        part: Some(part),
        ..rotary_keys::Defaults::LLAMA
    };
    let rotary = rotary_keys::read(keys, defaults, config.d_head(), config.n_ctx)?;
    Ok(DecoderConfig {
        positions: Positions::Rotary(rotary),
        ..config
    })
}

fn write_config(config: &DecoderConfig) -> Map<String, Value> {
    let (d_ff, activation) = gate_of(config);
    let is_parallel = config.block_order == BlockOrder::Parallel;
    let keys = [
        ("vocab_size", json!(config.vocabulary)),
        ("max_position_embeddings", json!(config.n_ctx)),
        ("hidden_size", json!(config.d_model)),
        ("num_hidden_layers", json!(config.n_layers)),
        ("num_attention_heads", json!(config.n_heads)),
        ("intermediate_size", json!(d_ff)),
        ("hidden_act", json!(activation)),
        ("layer_norm_eps", json!(config.norm_epsilon)),
        (
            "attention_bias",
            json!(config.attention_bias != Biases::NONE),
        ),
        ("use_parallel_residual", json!(is_parallel)),
        ("tie_word_embeddings", json!(config.tied_embedding)),
        ("attention_dropout", json!(0.0)),
        ("hidden_dropout", json!(0.0)),
    ];
    let mut keys: Map<String, Value> = keys
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect();
    let names = ["rotary_emb_base", "rotary_pct"];
    rotary_keys::write_of_part(&mut keys, &rotary_of(config), config.d_head(), names);
    keys
}

/// The causal mask, the number that stood for −∞, and the angles, of each layer.
fn shape_of_buffer(name: &str, config: &DecoderConfig) -> Option<Vec<usize>> {
    let name = name.strip_prefix("gpt_neox.").unwrap_or(name);
    match name_in_layer(name, "layers", config.n_layers)? {
        "attention.bias" => Some(vec![1, 1, config.n_ctx, config.n_ctx]),
        "attention.masked_bias" => Some(Vec::new()),
        "attention.rotary_emb.inv_freq" => {
            let rotated = rotary_of(config).rotated.unwrap_or(config.d_head());
            Some(vec![rotated / 2])
        }
        _ => None,
    }
}

/// Matrices are stored `[out, in]`. One holds those of queries, keys and values, head by head.
pub fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let (d_model, d_ff) = (
        config.d_model,
        config.feed_forward.map_or(0, |(d_ff, _)| d_ff),
    );
    let new = |theirs: String, ours: String, layout| Correspondence::new(theirs, ours, layout);
    let norm = |theirs: &str, ours: &str| {
        [("weight", "gain"), ("bias", "bias")].map(|(their_kind, our_kind)| {
            let (theirs, ours) = (
                format!("{theirs}.{their_kind}"),
                format!("{ours}.{our_kind}"),
            );
            new(theirs, ours, Layout::Same)
        })
    };
    let mut entries = vec![new(
        "gpt_neox.embed_in.weight".to_owned(),
        "w_e".to_owned(),
        Layout::Same,
    )];
    entries.extend(norm("gpt_neox.final_layer_norm", "ln_final"));
    if !config.tied_embedding {
        let head = GPT_NEOX.head.to_owned();
        entries.push(new(head, "w_u".to_owned(), Layout::Transposed));
    }
    for layer in 0..config.n_layers {
        let (theirs, ours) = (
            format!("gpt_neox.layers.{layer}"),
            format!("blocks.{layer}"),
        );
        entries.extend(norm(
            &format!("{theirs}.input_layernorm"),
            &format!("{ours}.ln1"),
        ));
        let second = format!("{theirs}.post_attention_layernorm");
        entries.extend(norm(&second, &format!("{ours}.ln2")));
        let has_bias = config.attention_bias.query;
        for (matrix, matrices, width, has_bias) in [
            (
                "attention.query_key_value",
                &["attn.w_q", "attn.w_k", "attn.w_v"][..],
                3 * d_model,
                has_bias,
            ),
            ("attention.dense", &["attn.w_o"], d_model, has_bias),
            ("mlp.dense_h_to_4h", &["mlp.w_in"], d_ff, true),
            ("mlp.dense_4h_to_h", &["mlp.w_out"], d_model, true),
        ] {
            let of_kind = |kind: &str, layout| Correspondence {
                theirs: format!("{theirs}.{matrix}.{kind}"),
                ours: matrices
                    .iter()
                    .map(|matrix| format!("{ours}.{matrix}.{kind}"))
                    .collect(),
                layout,
                interleaved: if matrices.len() > 1 {
                    config.n_heads
                } else {
                    1
                },
                zeros: None,
            };
            entries.push(of_kind("weight", Layout::Transposed));
            if has_bias {
                entries.push(of_kind("bias", Layout::Same).or_zeros(&[width]));
            }
        }
    }
    entries
}
