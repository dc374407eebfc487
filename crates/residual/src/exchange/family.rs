//! The families of models that `transformers` stores, and the way from a decoder to one of them.

use headlight_attention::{Biases, QkNorm};
use serde_json::{Map, Value};

use super::{
    ExchangeError, correspondence::Correspondence, gemma, gpt_neox, gpt2, keys::Keys, llama, olmo2,
    phi3, qwen,
};
use crate::{DecoderConfig, Initialization, Positions};

/// How a family is stored.
pub struct Family {
    pub model_type: &'static str,
    /// The class of `transformers`.
    pub class: &'static str,
    pub read_config: fn(&mut Keys<'_>) -> Result<DecoderConfig, ExchangeError>,
    /// The keys that describe a decoder. A part that the family cannot have is left out.
    pub write_config: fn(&DecoderConfig) -> Map<String, Value>,
    pub entries: fn(&DecoderConfig) -> Vec<Correspondence>,
    pub shape_of_buffer: fn(&str, &DecoderConfig) -> Option<Vec<usize>>,
    /// What stands before the names of all tensors but the head's, except in files that hold only
    /// the model below the head.
    pub prefix: &'static str,
    /// The tensor that makes logits of the stream.
    pub head: &'static str,
    /// Another name that the head may have in a file.
    pub other_head: Option<&'static str>,
}

/// All of them. A decoder that fits several is written as the first.
pub const FAMILIES: [&Family; 10] = [
    &gpt2::GPT2,
    &gpt_neox::GPT_NEOX,
    &llama::LLAMA,
    &llama::MISTRAL,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &phi3::PHI3,
    &olmo2::OLMO2,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
];

impl Family {
    /// `config.json` of a decoder.
    pub fn file(&self, config: &DecoderConfig) -> Map<String, Value> {
        let mut keys = (self.write_config)(config);
        for (key, value) in [
            ("architectures", vec![self.class].into()),
            ("model_type", self.model_type.into()),
            ("dtype", "float32".into()),
            ("bos_token_id", Value::Null),
            ("eos_token_id", Value::Null),
            ("pad_token_id", Value::Null),
        ] {
            keys.insert(key.to_owned(), value);
        }
        keys
    }

    /// What a file says.
    pub fn read(&self, file: &Map<String, Value>) -> Result<DecoderConfig, ExchangeError> {
        let mut keys = Keys::of_file(file);
        keys.text("model_type")?;
        let config = (self.read_config)(&mut keys)?;
        keys.check_all_read()?;
        Ok(config)
    }
}

/// The family that a decoder is of, and the decoder that is read from its file. They differ only in
/// biases that the decoder lacks, which are written as zeros.
pub fn family_of(
    config: &DecoderConfig,
) -> Result<(&'static Family, DecoderConfig), ExchangeError> {
    let mut with_zeros = None;
    let mut nearest: Option<(&Family, Vec<&str>)> = None;
    for family in FAMILIES {
        let kept = family.read(&family.file(config))?;
        let lost = differences(config, &kept);
        if lost.is_empty() && biases(config) == biases(&kept) {
            return Ok((family, kept));
        }
        if lost.is_empty() && with_zeros.is_none() {
            with_zeros = Some((family, kept));
        }
        if nearest
            .as_ref()
            .is_none_or(|(_, few)| lost.len() < few.len())
        {
            nearest = Some((family, lost));
        }
    }
    if let Some(found) = with_zeros {
        return Ok(found);
    }
    let (nearest, lost) =
        nearest.map_or(("", Vec::new()), |(family, lost)| (family.model_type, lost));
    Err(ExchangeError::NoSuchFamily {
        nearest: nearest.to_owned(),
        parts: lost.join(", "),
    })
}

/// Which projections have biases: of queries, keys, values, `W_O`, and of the feed-forward.
fn biases(config: &DecoderConfig) -> [bool; 5] {
    let Biases {
        query,
        key,
        value,
        output,
    } = config.attention_bias;
    let feed_forward = config.feed_forward_bias && config.feed_forward.is_some();
    [query, key, value, output, feed_forward]
}

/// The names of the parts in which a decoder differs from the one that a file keeps of it.
fn differences(config: &DecoderConfig, kept: &DecoderConfig) -> Vec<&'static str> {
    let (ours, theirs) = (in_force(config), in_force(kept));
    let (our_biases, their_biases) = (biases(config), biases(kept));
    let pairs = our_biases.into_iter().zip(their_biases);
    let biases_are_kept = pairs.into_iter().all(|(ours, theirs)| !ours || theirs);
    let sizes = |config: &DecoderConfig| {
        let DecoderConfig {
            vocabulary,
            n_ctx,
            d_model,
            n_layers,
            n_heads,
            ..
        } = *config;
        [vocabulary, n_ctx, d_model, n_layers, n_heads]
    };
    let parts = [
        ("sizes", sizes(&ours) == sizes(&theirs)),
        (
            "heads that share keys and values",
            ours.n_kv_heads == theirs.n_kv_heads,
        ),
        ("width of heads", ours.d_head == theirs.d_head),
        ("biases", biases_are_kept),
        ("QK-norm", ours.qk_norm == theirs.qk_norm),
        (
            "order of the parts of a block",
            ours.block_order == theirs.block_order,
        ),
        ("feed-forward", ours.feed_forward == theirs.feed_forward),
        ("norm", ours.norm == theirs.norm),
        (
            "epsilon of the norm",
            ours.norm_epsilon == theirs.norm_epsilon,
        ),
        (
            "placement of norms",
            ours.norm_placement == theirs.norm_placement,
        ),
        ("positions", ours.positions == theirs.positions),
        ("window", ours.window == theirs.window),
        (
            "layers without the window",
            ours.full_layers == theirs.full_layers,
        ),
        (
            "factor on embeddings",
            ours.embedding_scale == theirs.embedding_scale,
        ),
        ("unembedding", ours.tied_embedding == theirs.tied_embedding),
        (
            "scale of the scores",
            ours.attention.scale == theirs.attention.scale,
        ),
        (
            "softcap of the scores",
            ours.attention.softcap == theirs.attention.softcap,
        ),
        (
            "softcap of the logits",
            ours.logit_softcap == theirs.logit_softcap,
        ),
    ];
    let lost = parts.into_iter().filter(|(_, is_kept)| !is_kept);
    lost.map(|(name, _)| name).collect()
}

/// The same decoder with every number written out, and without numbers that nothing depends on.
fn in_force(config: &DecoderConfig) -> DecoderConfig {
    let d_head = config.d_head();
    let mut config = DecoderConfig {
        n_kv_heads: Some(config.n_kv_heads()),
        d_head: Some(d_head),
        initialization: Initialization::default(),
        init_std: DecoderConfig::default().init_std,
        ..config.clone()
    };
    if (0..config.n_layers).all(|layer| config.window_of(layer).is_none()) {
        (config.window, config.full_layers) = (None, Vec::new());
    }
    if let Positions::Rotary(rotary) = &mut config.positions {
        rotary.rotated = Some(rotary.rotated.unwrap_or(d_head));
        rotary.base_in_window = rotary.base_in_window.filter(|_| config.window.is_some());
    }
    config
}

/// Whether a matrix of a block has a bias.
pub fn has_bias(config: &DecoderConfig, matrix: &str) -> bool {
    let [query, key, value, output, feed_forward] = biases(config);
    match matrix {
        "attn.w_q" => query,
        "attn.w_k" => key,
        "attn.w_v" => value,
        "attn.w_o" => output,
        _ => feed_forward,
    }
}

/// Whether queries and keys have norms.
pub fn has_qk_norm(config: &DecoderConfig) -> bool {
    config.qk_norm != QkNorm::None
}
