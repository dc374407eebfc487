//! `OLMo` 2. A window, which only `OLMo` 3 has under the same name, is refused.

use headlight_attention::QkNorm;

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{DecoderConfig, NormPlacement, exchange::ExchangeError};

pub const OLMO2: Architecture = Architecture {
    name: "olmo2",
    read_config,
    ..LIKE_LLAMA
};

fn read_config(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    Ok(DecoderConfig {
        qk_norm: QkNorm::AllHeads,
        norm_placement: NormPlacement::Output,
        ..keys.like_llama()?
    })
}
