//! GPT-2 as `transformers` stores it.

use headlight_attention::AttentionOptions;
use serde_json::{Value, json};

use super::{
    ExchangeError,
    correspondence::{Correspondence, Layout},
    folder::name_in_layer,
    keys::Keys,
};
use crate::{
    Activation, Decoder, DecoderConfig, FeedForwardKind, NormKind, NormPlacement, Positions,
};

/// `config.json`, or an error that names the part of the model that a GPT-2 lacks.
pub fn config_of(model: &Decoder) -> Result<Value, String> {
    let config = model.config();
    let Some((d_ff, FeedForwardKind::Plain(activation))) = config.feed_forward else {
        let what = if config.feed_forward.is_none() {
            "it has no feed-forward"
        } else {
            "its feed-forward is gated"
        };
        return Err(what.to_owned());
    };
    let scaled = match config.attention.scale {
        None => true,
        Some(1.0) => false,
        Some(scale) => return Err(format!("its scores are scaled by {scale}")),
    };
    let obstacles = [
        (
            config.norm != NormKind::LayerNorm,
            "its norm is not layer norm",
        ),
        (
            config.norm_placement != NormPlacement::Pre,
            "its norms stand after the sum",
        ),
        (
            config.positions != Positions::Learned,
            "its positions are not learned",
        ),
        (
            config.n_kv_heads() != config.n_heads,
            "its heads share keys and values",
        ),
        (
            config.d_head() * config.n_heads != config.d_model,
            "its heads do not tile d_model",
        ),
        (config.window.is_some(), "it has a window"),
        (config.attention.softcap.is_some(), "its scores are capped"),
        (model.b_u.is_some(), "its unembedding has a bias"),
    ];
    if let Some((_, obstacle)) = obstacles.iter().find(|(is_there, _)| *is_there) {
        return Err((*obstacle).to_owned());
    }
    let Some(name) = activation.huggingface_names().first() else {
        return Err(format!("transformers has no activation {activation:?}"));
    };
    Ok(json!({
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "dtype": "float32",
        "vocab_size": config.vocabulary,
        "n_positions": config.n_ctx,
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": d_ff,
        "activation_function": name,
        "layer_norm_epsilon": config.norm_epsilon,
        "scale_attn_weights": scaled,
        "tie_word_embeddings": config.tied_embedding,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "bos_token_id": null,
        "eos_token_id": null,
    }))
}

pub fn read_config(keys: &mut Keys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let name = keys.text("activation_function")?.unwrap_or("gelu_new");
    let names: Vec<&str> = Activation::ALL
        .iter()
        .flat_map(|activation| activation.huggingface_names())
        .copied()
        .collect();
    let activation = Activation::from_huggingface(name).ok_or_else(|| {
        keys.refused(
            "activation_function",
            &json!(name),
            &format!("must be one of {}", names.join(", ")),
        )
    })?;
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
        attention_bias: true,
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
pub fn shape_of_buffer(name: &str, config: &DecoderConfig) -> Option<Vec<usize>> {
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
