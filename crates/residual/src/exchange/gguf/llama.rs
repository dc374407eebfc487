//! Llama as the converter of llama.cpp stores it.
//!
//! What the converter rewrites (`convert_hf_to_gguf.py`, class `LlamaModel`): it names the tensors
//! anew, stores vectors in f32, and puts the rows of `attn_q` and `attn_k` (and their biases) in the
//! order of rotary pairs, `2i` and `2i + 1` of each head. Scaled angles become a tensor `rope_freqs`
//! or keys `rope.scaling`, which are refused.

use std::collections::BTreeMap;

use headlight_attention::Biases;

use super::metadata::Metadata;
use crate::{
    Activation, DecoderConfig, FeedForwardKind, NormKind, Positions,
    exchange::{
        ExchangeError,
        correspondence::{Correspondence, Layout},
        stored_tensor::StoredTensor,
    },
};

const EMBEDDING: &str = "token_embd.weight";
const HEAD: &str = "output.weight";

pub fn read_config(
    metadata: &Metadata,
    tensors: &BTreeMap<String, StoredTensor>,
) -> Result<DecoderConfig, ExchangeError> {
    let embedding = tensors.get(EMBEDDING);
    let embedding = embedding.ok_or_else(|| ExchangeError::Missing(EMBEDDING.to_owned()))?;
    let vocabulary = embedding.shape[0];
    if let Some(size) = metadata.size("llama.vocab_size")?
        && size != vocabulary
    {
        let reason = format!("must be the rows of {EMBEDDING}, {vocabulary}");
        return Err(metadata.refused("llama.vocab_size", &reason));
    }
    let d_model = metadata.required_size("llama.embedding_length")?;
    let n_heads = metadata.required_size("llama.attention.head_count")?;
    let d_head = metadata.size("llama.attention.key_length")?;
    let all = d_head.unwrap_or(d_model / n_heads);
    for key in ["llama.attention.value_length", "llama.rope.dimension_count"] {
        if let Some(size) = metadata.size(key)?
            && size != all
        {
            let reason = format!("must be the width of a head, {all}");
            return Err(metadata.refused(key, &reason));
        }
    }
    let scaling = metadata.text("llama.rope.scaling.type")?;
    if !matches!(scaling, None | Some("none")) {
        return Err(metadata.refused("llama.rope.scaling.type", "must be none"));
    }
    let Some(norm_epsilon) = metadata.number("llama.attention.layer_norm_rms_epsilon")? else {
        let key = "llama.attention.layer_norm_rms_epsilon";
        return Err(metadata.refused(key, "is missing"));
    };
    Ok(DecoderConfig {
        vocabulary,
        n_ctx: metadata.required_size("llama.context_length")?,
        d_model,
        n_layers: metadata.required_size("llama.block_count")?,
        n_heads,
        n_kv_heads: metadata.size("llama.attention.head_count_kv")?,
        d_head,
        attention_bias: if tensors.contains_key("blk.0.attn_q.bias") {
            Biases::ALL
        } else {
            Biases::NONE
        },
        feed_forward: Some((
            metadata.required_size("llama.feed_forward_length")?,
            FeedForwardKind::Gated(Activation::Silu),
        )),
        feed_forward_bias: tensors.contains_key("blk.0.ffn_up.bias"),
        norm: NormKind::RmsNorm,
        norm_epsilon,
        positions: Positions::rotary(metadata.number("llama.rope.freq_base")?.unwrap_or(10_000.0)),
        tied_embedding: !tensors.contains_key(HEAD),
        ..DecoderConfig::default()
    })
}

/// Matrices are stored `[out, in]`.
pub fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let mut entries = vec![
        Correspondence::new(EMBEDDING, "w_e", Layout::Same),
        Correspondence::new("output_norm.weight", "ln_final.gain", Layout::Same),
    ];
    if !config.tied_embedding {
        entries.push(Correspondence::new(HEAD, "w_u", Layout::Transposed));
    }
    for layer in 0..config.n_layers {
        let named = |theirs: &str, ours: &str, layout| {
            let theirs = format!("blk.{layer}.{theirs}");
            Correspondence::new(theirs, format!("blocks.{layer}.{ours}"), layout)
        };
        entries.push(named("attn_norm.weight", "ln1.gain", Layout::Same));
        entries.push(named("ffn_norm.weight", "ln2.gain", Layout::Same));
        for (theirs, ours, has_bias) in [
            ("attn_q", "attn.w_q", config.attention_bias.query),
            ("attn_k", "attn.w_k", config.attention_bias.key),
            ("attn_v", "attn.w_v", config.attention_bias.value),
            ("attn_output", "attn.w_o", config.attention_bias.output),
            ("ffn_gate", "mlp.w_gate", config.feed_forward_bias),
            ("ffn_up", "mlp.w_in", config.feed_forward_bias),
            ("ffn_down", "mlp.w_out", config.feed_forward_bias),
        ] {
            let weight = (format!("{theirs}.weight"), format!("{ours}.weight"));
            entries.push(named(&weight.0, &weight.1, Layout::Transposed));
            if has_bias {
                let bias = (format!("{theirs}.bias"), format!("{ours}.bias"));
                entries.push(named(&bias.0, &bias.1, Layout::Same));
            }
        }
    }
    entries
}

/// The heads whose rows a tensor has in the order of rotary pairs.
pub fn paired_heads(name: &str, config: &DecoderConfig) -> Option<usize> {
    let (_, part) = name.strip_prefix("blk.")?.split_once('.')?;
    match part {
        "attn_q.weight" | "attn_q.bias" => Some(config.n_heads),
        "attn_k.weight" | "attn_k.bias" => Some(config.n_kv_heads()),
        _ => None,
    }
}
