//! Gemma 2 and 3. The converter adds 1 to the gains of all norms, so they are stored as they are used.
//!
//! It does not write the scale of the scores, nor which layers have the window. Every model that was
//! published follows these rules, which llama.cpp has in its source (`llama-model.cpp`,
//! `load_hparams` of both): each second layer of Gemma 2 and each sixth of Gemma 3 sees everything,
//! and the scale is `1/√d_head`, but in the 27B models, which it tells by the number of layers,
//! `1/√(d_model/n_heads)`.

use headlight_attention::{AttentionOptions, QkNorm, RotaryScaling};

use super::{
    architecture::{Architecture, LIKE_LLAMA},
    model_keys::ModelKeys,
};
use crate::{
    Activation, DecoderConfig, FeedForwardKind, NormPlacement, Positions, RotaryPositions,
    exchange::ExchangeError,
};

pub const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    read_config: read_gemma2,
    ..LIKE_LLAMA
};

pub const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    read_config: read_gemma3,
    ..LIKE_LLAMA
};

/// The number of layers of the 27B models.
const LAYERS_OF_27B: (usize, usize) = (46, 62);
/// The base of Gemma 3's layers with a window where the file names none.
const BASE_IN_WINDOW: f64 = 10_000.0;

fn read_gemma2(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = read_shared(keys, LAYERS_OF_27B.0)?;
    with_windows(keys, config, 2)
}

fn read_gemma3(keys: &ModelKeys<'_>) -> Result<DecoderConfig, ExchangeError> {
    let config = DecoderConfig {
        qk_norm: QkNorm::EachHead,
        ..read_shared(keys, LAYERS_OF_27B.1)?
    };
    let config = with_windows(keys, config, 6)?;
    let rotary = keys.rotary(config.d_head())?;
    let in_window = keys.number("rope.freq_base_swa")?;
    let in_window = in_window.unwrap_or(BASE_IN_WINDOW);
    let rotates_alike = in_window == rotary.base && rotary.scaling == RotaryScaling::None;
    Ok(DecoderConfig {
        positions: Positions::Rotary(RotaryPositions {
            base_in_window: (!rotates_alike).then_some(in_window),
            ..rotary
        }),
        ..config
    })
}

fn read_shared(keys: &ModelKeys<'_>, layers_of_27b: usize) -> Result<DecoderConfig, ExchangeError> {
    let config = keys.like_llama()?;
    let d_ff = keys.required_size("feed_forward_length")?;
    let width = (config.d_model / config.n_heads) as f64;
    Ok(DecoderConfig {
        feed_forward: Some((d_ff, FeedForwardKind::Gated(Activation::GeluTanh))),
        norm_placement: NormPlacement::PreAndOutput,
        embedding_scale: Some((config.d_model as f64).sqrt()),
        attention: AttentionOptions {
            scale: (config.n_layers == layers_of_27b).then_some(width.powf(-0.5)),
            softcap: keys.number("attn_logit_softcapping")?,
        },
        logit_softcap: keys.number("final_logit_softcapping")?,
        ..config
    })
}

/// Every layer has the window but each `pattern`-th.
fn with_windows(
    keys: &ModelKeys<'_>,
    config: DecoderConfig,
    pattern: usize,
) -> Result<DecoderConfig, ExchangeError> {
    let window = keys.size("attention.sliding_window")?;
    let full = (pattern - 1..config.n_layers).step_by(pattern);
    Ok(DecoderConfig {
        window,
        full_layers: if window.is_some() {
            full.collect()
        } else {
            Vec::new()
        },
        ..config
    })
}
