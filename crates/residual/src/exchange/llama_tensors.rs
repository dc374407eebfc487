//! The tensors of all families that name them as Llama does. Matrices are stored `[out, in]`.

use super::{
    correspondence::{Correspondence, Layout},
    family::{has_bias, has_qk_norm},
    folder::name_in_layer,
};
use crate::{DecoderConfig, NormPlacement};

pub const PREFIX: &str = "model.";
pub const HEAD: &str = "lm_head.weight";

/// What differs between the families.
#[derive(Clone, Copy)]
pub struct Storage {
    /// How the gains of norms are stored.
    pub gain: Layout,
    /// Whether one matrix holds those of queries, keys and values, and one those of the gate and
    /// the middle layer.
    pub fused: bool,
}

impl Storage {
    pub const LLAMA: Self = Self {
        gain: Layout::Same,
        fused: false,
    };
}

/// As stored by Llama.
pub fn entries(config: &DecoderConfig) -> Vec<Correspondence> {
    entries_of(config, Storage::LLAMA)
}

pub fn entries_of(config: &DecoderConfig, storage: Storage) -> Vec<Correspondence> {
    let mut entries = vec![
        Correspondence::new("model.embed_tokens.weight", "w_e", Layout::Same),
        Correspondence::new("model.norm.weight", "ln_final.gain", storage.gain),
    ];
    if !config.tied_embedding {
        entries.push(Correspondence::new(HEAD, "w_u", Layout::Transposed));
    }
    for layer in 0..config.n_layers {
        entries.extend(of_layer(config, storage, layer));
    }
    entries
}

fn of_layer(config: &DecoderConfig, storage: Storage, layer: usize) -> Vec<Correspondence> {
    let named = |theirs: &str, ours: &str, layout| {
        let theirs = format!("model.layers.{layer}.{theirs}");
        Correspondence::new(theirs, format!("blocks.{layer}.{ours}"), layout)
    };
    let mut entries = Vec::new();
    // The same name is another norm's where norms stand after the parts.
    let norms: &[(&str, &str)] = match config.norm_placement {
        NormPlacement::Pre | NormPlacement::Post => &[
            ("input_layernorm", "ln1"),
            ("post_attention_layernorm", "ln2"),
        ],
        NormPlacement::Output => &[
            ("post_attention_layernorm", "ln1_post"),
            ("post_feedforward_layernorm", "ln2_post"),
        ],
        NormPlacement::PreAndOutput => &[
            ("input_layernorm", "ln1"),
            ("post_attention_layernorm", "ln1_post"),
            ("pre_feedforward_layernorm", "ln2"),
            ("post_feedforward_layernorm", "ln2_post"),
        ],
    };
    for (theirs, ours) in norms {
        let (theirs, ours) = (format!("{theirs}.weight"), format!("{ours}.gain"));
        entries.push(named(&theirs, &ours, storage.gain));
    }
    if has_qk_norm(config) {
        for norm in ["q_norm", "k_norm"] {
            let (theirs, ours) = (
                format!("self_attn.{norm}.weight"),
                format!("attn.{norm}.gamma"),
            );
            entries.push(named(&theirs, &ours, storage.gain));
        }
    }
    let matrices: &[(&str, &[&str])] = if storage.fused {
        &[
            ("self_attn.qkv_proj", &["attn.w_q", "attn.w_k", "attn.w_v"]),
            ("self_attn.o_proj", &["attn.w_o"]),
            ("mlp.gate_up_proj", &["mlp.w_gate", "mlp.w_in"]),
            ("mlp.down_proj", &["mlp.w_out"]),
        ]
    } else {
        &[
            ("self_attn.q_proj", &["attn.w_q"]),
            ("self_attn.k_proj", &["attn.w_k"]),
            ("self_attn.v_proj", &["attn.w_v"]),
            ("self_attn.o_proj", &["attn.w_o"]),
            ("mlp.gate_proj", &["mlp.w_gate"]),
            ("mlp.up_proj", &["mlp.w_in"]),
            ("mlp.down_proj", &["mlp.w_out"]),
        ]
    };
    for (theirs, ours) in matrices {
        let of_kind = |kind: &str, layout| Correspondence {
            ours: ours
                .iter()
                .map(|matrix| format!("blocks.{layer}.{matrix}.{kind}"))
                .collect(),
            ..named(&format!("{theirs}.{kind}"), "", layout)
        };
        entries.push(of_kind("weight", Layout::Transposed));
        if ours.iter().all(|matrix| has_bias(config, matrix)) {
            let width = ours.iter().map(|matrix| width_of(config, matrix)).sum();
            entries.push(of_kind("bias", Layout::Same).or_zeros(&[width]));
        }
    }
    entries
}

/// The width of what a matrix gives.
fn width_of(config: &DecoderConfig, matrix: &str) -> usize {
    match matrix {
        "attn.w_q" => config.n_heads * config.d_head(),
        "attn.w_k" | "attn.w_v" => config.n_kv_heads() * config.d_head(),
        "mlp.w_gate" | "mlp.w_in" => config.feed_forward.map_or(0, |(d_ff, _)| d_ff),
        _ => config.d_model,
    }
}

/// The angle of each pair of components at position 1, of each layer.
pub fn shape_of_buffer(name: &str, config: &DecoderConfig) -> Option<Vec<usize>> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let in_layer = name_in_layer(name, "layers", config.n_layers)?;
    (in_layer == "self_attn.rotary_emb.inv_freq").then(|| vec![config.d_head() / 2])
}
