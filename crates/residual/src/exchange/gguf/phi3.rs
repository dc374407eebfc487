//! Phi-3. Angles for long contexts become tensors `rope_factors_long` and `rope_factors_short`, which
//! are refused. A window of 0 means none.

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{
    DecoderConfig,
    exchange::{
        ExchangeError,
        llama_tensors::{Storage, entries_of},
    },
};

pub const PHI3: Architecture = Architecture {
    name: "phi3",
    read_config,
    entries: |config| {
        let storage = Storage {
            fused: true,
            ..Storage::LLAMA
        };
        entries_of(config, storage)
    },
    ..LIKE_LLAMA
};

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    // Only angles that are scaled depend on it.
    keys.size("rope.scaling.original_context_length")?;
    Ok(DecoderConfig {
        window: keys
            .count("attention.sliding_window")?
            .filter(|&window| window > 0),
        ..keys.like_llama_rotating_in_part()?
    })
}
