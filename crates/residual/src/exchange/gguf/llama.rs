//! Llama and Mistral. The converter's class `LlamaModel` puts the rows of `attn_q` and `attn_k` (and
//! their biases) in the order of rotary pairs. Of angles that are scaled as Llama 3.1's it writes what
//! each frequency is divided by, as a tensor. It does not write the window of a Mistral.

use headlight_attention::RotaryScaling;

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{DecoderConfig, Positions, exchange::ExchangeError};

pub const LLAMA: Architecture = Architecture {
    name: "llama",
    read_config,
    rotation: &[DIVISORS],
    has_paired_rows: true,
    ..LIKE_LLAMA
};

const DIVISORS: &str = "rope_freqs.weight";
/// The converter divides in f32.
const ROUNDING: f64 = 1e-4;

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = keys.like_llama()?;
    let Some(divisors) = keys.tensors.get(DIVISORS) else {
        return Ok(config);
    };
    let divisors: Vec<f64> = divisors.read().iter::<f64>().collect();
    let mut rotary = keys.rotary(config.d_head())?;
    rotary.scaling = scaling_of(&divisors, rotary.base, config.d_head()).ok_or_else(|| {
        let reason = "is another scaling than that of Llama 3.1 to 3.3";
        ExchangeError::Tensor {
            name: DIVISORS.to_owned(),
            reason: reason.to_owned(),
        }
    })?;
    Ok(DecoderConfig {
        positions: Positions::Rotary(rotary),
        ..config
    })
}

/// The scaling that divides the frequencies so, if it is that of the models that were published: the
/// file has its results, not its numbers.
fn scaling_of(divisors: &[f64], base: f64, d_head: usize) -> Option<RotaryScaling> {
    let scaling = RotaryScaling::Llama3 {
        factor: divisors.iter().copied().fold(1.0, f64::max),
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_n_ctx: 8192,
    };
    if divisors.len() != d_head / 2 {
        return None;
    }
    let plain = RotaryScaling::None.frequencies(base, d_head, 1);
    let scaled = scaling.frequencies(base, d_head, 1);
    for ((divisor, plain), scaled) in divisors.iter().zip(plain).zip(scaled) {
        let expected = plain / scaled;
        if (divisor - expected).abs() > ROUNDING * expected {
            return None;
        }
    }
    Some(scaling)
}
