//! Phi-3. The converter (class `Phi3MiniModel`) writes the factors of `LongRoPE` as two tensors, and the
//! factor on cosines and sines as a key. A window of 0 means none.

use headlight_attention::RotaryScaling;

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{
    DecoderConfig, Positions,
    exchange::{
        ExchangeError,
        llama_tensors::{Storage, entries_of},
    },
};

pub const PHI3: Architecture = Architecture {
    name: "phi3",
    read_config,
    rotation: &[SHORT, LONG],
    entries: |config| {
        let storage = Storage {
            fused: true,
            ..Storage::LLAMA
        };
        entries_of(config, storage)
    },
    ..LIKE_LLAMA
};

const SHORT: &str = "rope_factors_short.weight";
const LONG: &str = "rope_factors_long.weight";

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    // Only angles that are scaled depend on it.
    let original = keys.size("rope.scaling.original_context_length")?;
    let mut config = keys.like_llama_rotating_in_part()?;
    config.window = keys
        .count("attention.sliding_window")?
        .filter(|&window| window > 0);
    let factors = |name: &str| {
        let tensor = keys.tensors.get(name)?;
        Some(tensor.read().iter::<f64>().collect::<Vec<f64>>())
    };
    let (short_factors, long_factors) = match (factors(SHORT), factors(LONG)) {
        (None, None) => return Ok(config),
        (Some(short), Some(long)) => (short, long),
        (None, Some(_)) => return Err(ExchangeError::Missing(SHORT.to_owned())),
        (Some(_), None) => return Err(ExchangeError::Missing(LONG.to_owned())),
    };
    let mut rotary = keys.rotary(config.d_head())?;
    rotary.scaling = RotaryScaling::LongRope {
        short_factors,
        long_factors,
        original_n_ctx: original.unwrap_or(config.n_ctx),
        attention_factor: keys.required_number("rope.scaling.attn_factor")?,
    };
    config.positions = Positions::Rotary(rotary);
    Ok(config)
}
