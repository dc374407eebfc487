//! The architectures that are read, and how the converter of llama.cpp names and stores each.

use super::{
    gemma, gpt_neox, gpt2, llama,
    model_keys::ModelKeys,
    names::{LLAMA_NAMES, Names},
    olmo2, phi3, qwen,
};
use crate::{
    DecoderConfig,
    exchange::{
        ExchangeError,
        correspondence::Correspondence,
        llama_tensors::{Storage, entries_of},
    },
};

/// How an architecture is stored. Where it is said nothing else, the converter
/// (`convert_hf_to_gguf`, one class an architecture) only names the tensors of `transformers` anew.
pub struct Architecture {
    /// `general.architecture`, with which the keys of the model begin.
    pub name: &'static str,
    pub read_config: fn(&ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError>,
    /// The tensors as `transformers` names them and the file stores them.
    pub entries: fn(&DecoderConfig) -> Vec<Correspondence>,
    pub names: &'static Names,
    /// The tensors that `read_config` reads, all of them about the rotation.
    pub rotation: &'static [&'static str],
    /// Whether the rows of each head of `attn_q` and `attn_k` are in the order of rotary pairs, `2i`
    /// and `2i + 1`.
    pub has_paired_rows: bool,
}

pub const ARCHITECTURES: [&Architecture; 9] = [
    &llama::LLAMA,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &phi3::PHI3,
    &olmo2::OLMO2,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gpt2::GPT2,
    &gpt_neox::GPT_NEOX,
];

impl Architecture {
    /// The tensors of a model by the names in the file.
    pub fn correspondences(&self, config: &DecoderConfig) -> Vec<Correspondence> {
        let mut entries = (self.entries)(config);
        for entry in &mut entries {
            entry.theirs = self.names.in_gguf(&entry.theirs, config.norm_placement);
        }
        entries
    }

    /// The heads whose rows a tensor has in the order of rotary pairs.
    pub fn paired_heads(&self, tensor: &str, config: &DecoderConfig) -> Option<usize> {
        if !self.has_paired_rows {
            return None;
        }
        let (_, part) = tensor.strip_prefix("blk.")?.split_once('.')?;
        match part {
            "attn_q.weight" | "attn_q.bias" => Some(config.n_heads),
            "attn_k.weight" | "attn_k.bias" => Some(config.n_kv_heads()),
            _ => None,
        }
    }
}

/// An architecture that differs from Llama's in its keys alone.
pub const LIKE_LLAMA: Architecture = Architecture {
    name: "",
    read_config: |keys| keys.like_llama(),
    entries: |config| entries_of(config, Storage::LLAMA),
    names: &LLAMA_NAMES,
    rotation: &[],
    has_paired_rows: false,
};
