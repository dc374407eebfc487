//! GPT-NeoX, the family of Pythia. The converter puts the rows of queries, keys and values apart, which
//! `transformers` stores head by head. It writes no activation and no base of the rotation: GELU and
//! 10,000 are those of Pythia.

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
    names::Names,
};
use crate::{
    Activation, BlockOrder, DecoderConfig, FeedForwardKind, Positions,
    exchange::{ExchangeError, correspondence::Correspondence, gpt_neox},
};

pub const GPT_NEOX: Architecture = Architecture {
    name: "gptneox",
    read_config,
    entries,
    names: &NAMES,
    ..LIKE_LLAMA
};

const NAMES: Names = Names {
    layers: "gpt_neox.layers.",
    outside: &[
        ("gpt_neox.embed_in.weight", "token_embd.weight"),
        ("gpt_neox.final_layer_norm.weight", "output_norm.weight"),
        ("gpt_neox.final_layer_norm.bias", "output_norm.bias"),
        ("embed_out.weight", "output.weight"),
    ],
    parts: &[
        ("input_layernorm", "attn_norm"),
        ("attention.query_key_value", "attn_qkv"),
        ("attention.dense", "attn_output"),
        ("mlp.dense_h_to_4h", "ffn_up"),
        ("mlp.dense_4h_to_h", "ffn_down"),
    ],
};

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = keys.sizes()?;
    Ok(DecoderConfig {
        block_order: if keys.flag("use_parallel_residual")?.unwrap_or(true) {
            BlockOrder::Parallel
        } else {
            BlockOrder::Sequential
        },
        feed_forward: Some((
            keys.required_size("feed_forward_length")?,
            FeedForwardKind::Plain(Activation::Gelu),
        )),
        norm_epsilon: keys.required_number("attention.layer_norm_epsilon")?,
        positions: Positions::Rotary(keys.rotary(config.d_head())?),
        ..config
    })
}

fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let mut entries = gpt_neox::entries(config);
    for entry in &mut entries {
        entry.interleaved = 1;
    }
    entries
}
