//! The names of tensors in `transformers` and in GGUF files.

use crate::NormPlacement;

/// Names of `transformers`, each with that in GGUF files.
pub struct Names {
    /// What stands before the number of a layer.
    pub layers: &'static str,
    /// Of the tensors outside the layers.
    pub outside: &'static [(&'static str, &'static str)],
    /// Of the parts of a layer, without `weight` or `bias`.
    pub parts: &'static [(&'static str, &'static str)],
}

pub const LLAMA_NAMES: Names = Names {
    layers: "model.layers.",
    outside: &[
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.norm.weight", "output_norm.weight"),
        ("lm_head.weight", "output.weight"),
    ],
    parts: &[
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.qkv_proj", "attn_qkv"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.gate_up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
    ],
};

/// In a Llama this is the norm before the feed-forward; where outputs have norms, that of attention's.
const SECOND_NORM: &str = "post_attention_layernorm";

impl Names {
    /// The name in a GGUF file. A name that is not in the lists stays as it is.
    pub fn in_gguf(&self, name: &str, norms: NormPlacement) -> String {
        let found = |names: &[(&str, &'static str)], name: &str| {
            let entry = names.iter().find(|(theirs, _)| *theirs == name);
            entry.map(|(_, in_gguf)| *in_gguf)
        };
        let in_layer = name
            .strip_prefix(self.layers)
            .and_then(|rest| rest.split_once('.'));
        let Some((layer, tensor)) = in_layer else {
            return found(self.outside, name).unwrap_or(name).to_owned();
        };
        let (part, kind) = tensor.rsplit_once('.').unwrap_or((tensor, "weight"));
        let part = match part {
            SECOND_NORM if norms.normalizes_outputs() => "post_attention_norm",
            SECOND_NORM => "ffn_norm",
            part => found(self.parts, part).unwrap_or(part),
        };
        format!("blk.{layer}.{part}.{kind}")
    }
}
