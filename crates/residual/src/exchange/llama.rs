//! Llama as `transformers` stores it.

use serde_json::{Value, json};

use super::{
    ExchangeError,
    correspondence::{Correspondence, Layout},
    folder::name_in_layer,
    keys::Keys,
};
use crate::{Decoder, DecoderConfig, FeedForwardKind, NormKind, NormPlacement, Positions};

/// `config.json`, or an error that names the part of the model that a Llama lacks.
pub fn config_of(model: &Decoder) -> Result<Value, String> {
    let config = model.config();
    let obstacles = [
        (config.norm != NormKind::RmsNorm, "its norm is not RMS norm"),
        (
            config.norm_placement != NormPlacement::Pre,
            "its norms stand after the sum",
        ),
        (config.window.is_some(), "it has a window"),
        (
            config.attention.scale.is_some(),
            "its scores are scaled by a number of its own",
        ),
        (config.attention.softcap.is_some(), "its scores are capped"),
        (model.b_u.is_some(), "its unembedding has a bias"),
    ];
    if let Some((_, obstacle)) = obstacles.iter().find(|(is_there, _)| *is_there) {
        return Err((*obstacle).to_owned());
    }
    let Positions::Rotary { base } = config.positions else {
        return Err("its positions are not rotary".to_owned());
    };
    let Some((d_ff, FeedForwardKind::SwiGlu)) = config.feed_forward else {
        return Err("its feed-forward is not gated".to_owned());
    };
    Ok(json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.n_ctx,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads(),
        "head_dim": config.d_head(),
        "intermediate_size": d_ff,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_epsilon,
        // Versions of transformers before 5 read the first key, versions since then the second.
        "rope_theta": base,
        "rope_parameters": { "rope_type": "default", "rope_theta": base },
        "attention_bias": config.attention_bias,
        "mlp_bias": config.feed_forward_bias,
        "tie_word_embeddings": config.tied_embedding,
        "bos_token_id": null,
        "eos_token_id": null,
    }))
}

pub fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let activation = keys.text("hidden_act")?.unwrap_or("silu");
    if activation != "silu" {
        return Err(keys.refused("hidden_act", &json!(activation), "must be silu"));
    }
    Ok(DecoderConfig {
        vocabulary: keys.required_size("vocab_size")?,
        n_ctx: keys.size("max_position_embeddings")?.unwrap_or(2048),
        d_model: keys.required_size("hidden_size")?,
        n_layers: keys.required_size("num_hidden_layers")?,
        n_heads: keys.required_size("num_attention_heads")?,
        n_kv_heads: keys.size("num_key_value_heads")?,
        d_head: keys.size("head_dim")?,
        attention_bias: keys.flag("attention_bias", false)?,
        feed_forward: Some((
            keys.required_size("intermediate_size")?,
            FeedForwardKind::SwiGlu,
        )),
        feed_forward_bias: keys.flag("mlp_bias", false)?,
        norm: NormKind::RmsNorm,
        norm_epsilon: keys.number("rms_norm_eps")?.unwrap_or(1e-6),
        positions: Positions::Rotary {
            base: rotary_base(keys)?,
        },
        tied_embedding: keys.flag("tie_word_embeddings", false)?,
        ..DecoderConfig::default()
    })
}

/// Where the version that wrote the file has put it; angles that are scaled besides are refused.
fn rotary_base(keys: &mut Keys<'_>) -> Result<f64, ExchangeError> {
    check_all_rotated(keys)?;
    let mut base = keys.number("rope_theta")?;
    for (key, within) in [
        ("rope_parameters", "rope_parameters."),
        ("rope_scaling", "rope_scaling."),
    ] {
        let Some(object) = keys.object(key)? else {
            continue;
        };
        let mut rope = Keys::within(within, object);
        for key in ["rope_type", "type"] {
            let kind = rope.text(key)?.unwrap_or("default");
            if kind != "default" {
                return Err(rope.refused(key, &json!(kind), "must be default"));
            }
        }
        check_all_rotated(&mut rope)?;
        let own = rope.number("rope_theta")?;
        if let (Some(own), Some(base)) = (own, base)
            && own != base
        {
            let reason = format!("must be what it is elsewhere in the file, {base}");
            return Err(rope.refused("rope_theta", &json!(own), &reason));
        }
        base = base.or(own);
        rope.check_all_read()?;
    }
    Ok(base.unwrap_or(10_000.0))
}

/// Every component of a head rotates.
fn check_all_rotated(keys: &mut Keys<'_>) -> Result<(), ExchangeError> {
    match keys.number("partial_rotary_factor")? {
        Some(part) if part != 1.0 => {
            Err(keys.refused("partial_rotary_factor", &json!(part), "must be 1"))
        }
        _ => Ok(()),
    }
}

/// The angle of each pair of components at position 1, of each layer.
pub fn shape_of_buffer(name: &str, config: &DecoderConfig) -> Option<Vec<usize>> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    let in_layer = name_in_layer(name, "layers", config.n_layers)?;
    (in_layer == "self_attn.rotary_emb.inv_freq").then(|| vec![config.d_head() / 2])
}

/// The matrices of a Llama are stored `[out, in]`.
pub fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let mut entries = vec![
        Correspondence::new("model.embed_tokens.weight", "w_e", Layout::Same),
        Correspondence::new("model.norm.weight", "ln_final.gain", Layout::Same),
    ];
    if !config.tied_embedding {
        entries.push(Correspondence::new(
            "lm_head.weight",
            "w_u",
            Layout::Transposed,
        ));
    }
    for layer in 0..config.n_layers {
        let mut named = |theirs: &str, ours: &str, layout| {
            let theirs = format!("model.layers.{layer}.{theirs}");
            entries.push(Correspondence::new(
                theirs,
                format!("blocks.{layer}.{ours}"),
                layout,
            ));
        };
        named("input_layernorm.weight", "ln1.gain", Layout::Same);
        named("post_attention_layernorm.weight", "ln2.gain", Layout::Same);
        for (theirs, ours, has_bias) in [
            ("self_attn.q_proj", "attn.w_q", config.attention_bias),
            ("self_attn.k_proj", "attn.w_k", config.attention_bias),
            ("self_attn.v_proj", "attn.w_v", config.attention_bias),
            ("self_attn.o_proj", "attn.w_o", config.attention_bias),
            ("mlp.gate_proj", "mlp.w_gate", config.feed_forward_bias),
            ("mlp.up_proj", "mlp.w_in", config.feed_forward_bias),
            ("mlp.down_proj", "mlp.w_out", config.feed_forward_bias),
        ] {
            named(
                &format!("{theirs}.weight"),
                &format!("{ours}.weight"),
                Layout::Transposed,
            );
            if has_bias {
                named(
                    &format!("{theirs}.bias"),
                    &format!("{ours}.bias"),
                    Layout::Same,
                );
            }
        }
    }
    entries
}
