//! From a configuration to a model, and from a run to the model it trained.

use burn::tensor::Device;
use headlight_attention::AttentionOptions;
use headlight_residual::{Activation, Decoder, DecoderConfig, weights_from_bytes};
use headlight_run::{Config, FeedForwardKind, InputError, NormKind, RunDirectory, Weights};

/// The decoder a configuration describes, with its initial weights.
///
/// # Errors
/// If the sizes do not fit together.
pub fn build(config: &Config, vocabulary: usize, device: &Device) -> Result<Decoder, InputError> {
    let model = &config.model;
    let d_ff = model.d_ff.unwrap_or(4 * model.d_model);
    let decoder = DecoderConfig {
        vocabulary,
        n_ctx: model.n_ctx,
        d_model: model.d_model,
        n_layers: model.n_layers,
        n_heads: model.n_heads,
        d_head: model.d_head,
        feed_forward: match model.feed_forward {
            FeedForwardKind::None => None,
            FeedForwardKind::Relu => Some((d_ff, Activation::Relu)),
            FeedForwardKind::Gelu => Some((d_ff, Activation::Gelu)),
        },
        norm: match model.norm {
            NormKind::LayerNorm => headlight_residual::NormKind::LayerNorm,
            NormKind::RmsNorm => headlight_residual::NormKind::RmsNorm,
            NormKind::None => headlight_residual::NormKind::None,
        },
        norm_epsilon: model.norm_epsilon,
        attention: AttentionOptions { scale: model.attention_scale, ..AttentionOptions::default() },
        init_std: model.init_std,
    };
    decoder.try_init(config.seed, device).map_err(|error| InputError::new("[model]", error))
}

/// The model of a run with the weights it kept.
///
/// # Errors
/// If the weights are missing, damaged or of another model.
pub fn load(run: &RunDirectory, config: &Config, which: Weights, device: &Device) -> Result<Decoder, InputError> {
    let vocabulary = run.vocabulary()?.len();
    let bytes = run.weights(which)?;
    weights_from_bytes(build(config, vocabulary, device)?, &bytes)
        .map_err(|error| InputError::new(run.path().display(), error))
}

/// The number of parameters.
#[must_use]
pub fn count_parameters(model: &Decoder) -> usize {
    burn::module::Module::num_params(model)
}
