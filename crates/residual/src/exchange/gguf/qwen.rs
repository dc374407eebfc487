//! Qwen 2 and 3. Their converter does not write a window.

use headlight_attention::QkNorm;

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{DecoderConfig, exchange::ExchangeError};

pub const QWEN2: Architecture = Architecture {
    name: "qwen2",
    ..LIKE_LLAMA
};

pub const QWEN3: Architecture = Architecture {
    name: "qwen3",
    read_config: read_qwen3,
    ..LIKE_LLAMA
};

fn read_qwen3(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    Ok(DecoderConfig {
        qk_norm: QkNorm::EachHead,
        ..keys.like_llama()?
    })
}
