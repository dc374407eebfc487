//! GPT-2. The converter turns its matrices to `[out, in]`. It writes the width of the feed-forward as
//! four times that of the stream, and no activation: GELU by tanh is that of every GPT-2.

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
    names::Names,
};
use crate::{
    Activation, DecoderConfig, FeedForwardKind,
    exchange::{
        ExchangeError,
        correspondence::{Correspondence, Layout},
        gpt2,
    },
};

pub const GPT2: Architecture = Architecture {
    name: "gpt2",
    read_config,
    entries,
    names: &NAMES,
    ..LIKE_LLAMA
};

const NAMES: Names = Names {
    layers: "transformer.h.",
    outside: &[
        ("transformer.wte.weight", "token_embd.weight"),
        ("transformer.wpe.weight", "position_embd.weight"),
        ("transformer.ln_f.weight", "output_norm.weight"),
        ("transformer.ln_f.bias", "output_norm.bias"),
        ("lm_head.weight", "output.weight"),
    ],
    parts: &[
        ("ln_1", "attn_norm"),
        ("attn.c_attn", "attn_qkv"),
        ("attn.c_proj", "attn_output"),
        ("ln_2", "ffn_norm"),
        ("mlp.c_fc", "ffn_up"),
        ("mlp.c_proj", "ffn_down"),
    ],
};

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    Ok(DecoderConfig {
        feed_forward: Some((
            keys.required_size("feed_forward_length")?,
            FeedForwardKind::Plain(Activation::GeluTanh),
        )),
        norm_epsilon: keys.required_number("attention.layer_norm_epsilon")?,
        ..keys.sizes()?
    })
}

fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    let mut entries = gpt2::entries(config);
    for entry in &mut entries {
        let is_matrix = [".c_attn.weight", ".c_proj.weight", ".c_fc.weight"]
            .iter()
            .any(|end| entry.theirs.ends_with(end));
        if is_matrix {
            entry.layout = Layout::Transposed;
        }
    }
    entries
}
