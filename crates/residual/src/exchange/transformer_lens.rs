//! The names and layouts of weights in `TransformerLens`.

use headlight_attention::{QkNorm, RotaryScaling};
use serde_json::{Value, json};

use super::{
    ExchangeError, ExportedFiles,
    correspondence::{Correspondence, Layout, export},
};
use crate::{
    BlockOrder, Decoder, DecoderConfig, FeedForwardKind, NormKind, NormPlacement, Positions,
    sinusoids,
};

/// The number that stands for no softcap.
const NO_CAP: f64 = -1.0;

/// Exports the weights under the names of `TransformerLens`, and the sizes under the names of
/// `HookedTransformerConfig`.
///
/// `embed.W_E [d_vocab, d_model]`, `pos_embed.W_pos [n_ctx, d_model]`, `blocks.{l}.attn.W_Q|W_K|W_V
/// [head, d_model, d_head]`, `W_O [head, d_head, d_model]`, `b_Q|b_K|b_V [head, d_head]`, `b_O`,
/// `blocks.{l}.ln1|ln2.w|b`, `blocks.{l}.mlp.W_in|W_gate|W_out|b_in|b_out`, `ln_final.w|b`,
/// `unembed.W_U [d_model, d_vocab]`, `unembed.b_U`. Keys and values shared by a group are named
/// `_W_K`, `_W_V`, `_b_K`, `_b_V`. Norms after the parts are `blocks.{l}.ln1_post|ln2_post.w|b`, norms
/// of queries and keys `blocks.{l}.attn.q_norm|k_norm.w`. Biases that the model lacks are zeros,
/// fixed positions are a table, and a factor on embeddings is part of `W_E`.
///
/// # Errors
/// Names the part that `TransformerLens` lacks, or if a tensor has no safetensors form.
pub fn to_transformer_lens(model: &Decoder) -> Result<ExportedFiles, ExchangeError> {
    let config = model.config();
    check(config)?;
    let mut tensors = export(model, &entries(config))?;
    // Tensors that are computed from parameters.
    tensors.insert("unembed.W_U".to_owned(), model.unembedding().into_data());
    if config.positions == Positions::Sinusoidal {
        let table = sinusoids(0..config.n_ctx, config.d_model, &model.w_e.device());
        tensors.insert("pos_embed.W_pos".to_owned(), table.into_data());
    }
    if let Some(scale) = config.embedding_scale {
        let scaled = model.w_e.val().mul_scalar(scale);
        tensors.insert("embed.W_E".to_owned(), scaled.into_data());
    }
    ExportedFiles::new(&config_of(config), &tensors)
}

/// That `HookedTransformerConfig` has words for all parts.
fn check(config: &DecoderConfig) -> Result<(), ExchangeError> {
    let rotary = match &config.positions {
        Positions::Rotary(rotary) => Some(rotary),
        _ => None,
    };
    let has_norms = config.norm != NormKind::None;
    let missing = [
        (
            config.norm_placement == NormPlacement::Output && has_norms,
            "norms only after the parts",
        ),
        (
            config.qk_norm == QkNorm::AllHeads,
            "norm over all queries and all keys",
        ),
        (
            rotary.is_some_and(|rotary| rotary.base_in_window.is_some()),
            "second base of rotation",
        ),
        (
            rotary.is_some_and(|rotary| rotary.scaling != RotaryScaling::None),
            "scaling of rotation by the original context",
        ),
    ];
    match missing.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, part)) => Err(ExchangeError::NotInTransformerLens(part)),
        None => Ok(()),
    }
}

fn config_of(config: &DecoderConfig) -> Value {
    let rotary = match &config.positions {
        Positions::Rotary(rotary) => Some(rotary),
        _ => None,
    };
    let kind = |layer| match config.window_of(layer) {
        Some(_) => "local",
        None => "global",
    };
    let kinds: Vec<&str> = (0..config.n_layers).map(kind).collect();
    json!({
        "n_layers": config.n_layers,
        "d_model": config.d_model,
        "n_ctx": config.n_ctx,
        "d_head": config.d_head(),
        "n_heads": config.n_heads,
        "n_key_value_heads": config.n_kv_heads.filter(|&n| n != config.n_heads),
        "d_vocab": config.vocabulary,
        "d_mlp": config.feed_forward.map(|(d_ff, _)| d_ff),
        "attn_only": config.feed_forward.is_none(),
        "act_fn": config.feed_forward.map(|(_, kind)| match kind {
            FeedForwardKind::Plain(activation) | FeedForwardKind::Gated(activation) => {
                activation.transformer_lens_name()
            }
        }),
        "gated_mlp": config.feed_forward.is_some_and(|(_, kind)| kind.is_gated()),
        "parallel_attn_mlp": config.block_order == BlockOrder::Parallel,
        "eps": config.norm_epsilon,
        "normalization_type": match config.norm {
            NormKind::LayerNorm => Some("LN"),
            NormKind::RmsNorm => Some("RMS"),
            NormKind::None => None,
        },
        "final_rms": config.norm == NormKind::RmsNorm,
        "post_norm": config.norm_placement == NormPlacement::Post,
        "use_normalization_before_and_after": config.norm_placement == NormPlacement::PreAndOutput,
        "use_qk_norm": config.qk_norm != QkNorm::None,
        "positional_embedding_type": match &config.positions {
            Positions::Learned | Positions::Sinusoidal => "standard",
            Positions::Rotary(_) => "rotary",
            Positions::Alibi => "alibi",
            Positions::None => "none",
        },
        "rotary_base": rotary.map(|rotary| rotary.base),
        "rotary_dim": rotary.map(|rotary| rotary.rotated.unwrap_or(config.d_head())),
        "rotary_adjacent_pairs": false,
        "use_attn_scale": config.attention.scale != Some(1.0),
        "attn_scale": config.attention.scale.map_or((config.d_head() as f64).sqrt(), f64::recip),
        "use_local_attn": config.window.is_some(),
        "window_size": config.window,
        "attn_types": config.window.map(|_| kinds),
        "attn_scores_soft_cap": config.attention.softcap.unwrap_or(NO_CAP),
        "output_logits_soft_cap": config.logit_softcap.unwrap_or(NO_CAP),
        "tie_word_embeddings": config.tied_embedding,
    })
}

fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let DecoderConfig {
        d_model,
        n_layers,
        n_heads,
        vocabulary,
        ..
    } = *config;
    let (d_head, n_kv_heads) = (config.d_head(), config.n_kv_heads());
    let same = |theirs: String, ours: String| Correspondence::new(theirs, ours, Layout::Same);
    let norm = |theirs: &str, ours: &str| {
        let gain = (config.norm != NormKind::None)
            .then(|| same(format!("{theirs}.w"), format!("{ours}.gain")));
        let bias = (config.norm == NormKind::LayerNorm)
            .then(|| same(format!("{theirs}.b"), format!("{ours}.bias")));
        gain.into_iter().chain(bias)
    };
    let mut entries = vec![
        same("embed.W_E".to_owned(), "w_e".to_owned()),
        same("unembed.b_U".to_owned(), "b_u".to_owned()).or_zeros(&[vocabulary]),
    ];
    if config.positions == Positions::Learned {
        entries.push(same("pos_embed.W_pos".to_owned(), "w_pos".to_owned()));
    }
    if config.norm_placement != NormPlacement::Post {
        entries.extend(norm("ln_final", "ln_final"));
    }
    let shared = if n_kv_heads == n_heads { "" } else { "_" };
    for layer in 0..n_layers {
        let block = format!("blocks.{layer}");
        let has_mlp = config.feed_forward.is_some();
        let mut norms = vec!["ln1"];
        if has_mlp {
            norms.push("ln2");
        }
        if config.norm_placement == NormPlacement::PreAndOutput {
            norms.push("ln1_post");
            if has_mlp {
                norms.push("ln2_post");
            }
        }
        for name in norms {
            let name = format!("{block}.{name}");
            entries.extend(norm(&name, &name));
        }
        if config.qk_norm == QkNorm::EachHead {
            for norm in ["q_norm", "k_norm"] {
                let theirs = format!("{block}.attn.{norm}.w");
                entries.push(same(theirs, format!("{block}.attn.{norm}.gamma")));
            }
        }
        for (letter, matrix, prefix, heads) in [
            ("Q", "w_q", "", n_heads),
            ("K", "w_k", shared, n_kv_heads),
            ("V", "w_v", shared, n_kv_heads),
        ] {
            let ours = format!("{block}.attn.{matrix}");
            let theirs = |kind: &str| format!("{block}.attn.{prefix}{kind}_{letter}");
            entries.push(Correspondence::new(
                theirs("W"),
                format!("{ours}.weight"),
                Layout::HeadsOut(heads),
            ));
            let bias =
                Correspondence::new(theirs("b"), format!("{ours}.bias"), Layout::HeadsOut(heads));
            entries.push(bias.or_zeros(&[heads, d_head]));
        }
        let w_o = format!("{block}.attn.w_o");
        let theirs = format!("{block}.attn.W_O");
        entries.push(Correspondence::new(
            theirs,
            format!("{w_o}.weight"),
            Layout::HeadsIn(n_heads),
        ));
        entries.push(same(format!("{block}.attn.b_O"), format!("{w_o}.bias")).or_zeros(&[d_model]));
        let Some((d_ff, kind)) = config.feed_forward else {
            continue;
        };
        let mut matrix = |theirs: &str, ours: &str| {
            entries.push(same(
                format!("{block}.mlp.{theirs}"),
                format!("{block}.mlp.{ours}.weight"),
            ));
        };
        matrix("W_in", "w_in");
        matrix("W_out", "w_out");
        if kind.is_gated() {
            matrix("W_gate", "w_gate");
        }
        let mut bias = |theirs: &str, ours: &str, width| {
            let bias = same(
                format!("{block}.mlp.{theirs}"),
                format!("{block}.mlp.{ours}.bias"),
            );
            entries.push(bias.or_zeros(&[width]));
        };
        // In TransformerLens a gated feed-forward has biases only if the model has them.
        if !kind.is_gated() || config.feed_forward_bias {
            bias("b_in", "w_in", d_ff);
            bias("b_out", "w_out", d_model);
        }
        if kind.is_gated() && config.feed_forward_bias {
            bias("b_gate", "w_gate", d_ff);
        }
    }
    entries
}
