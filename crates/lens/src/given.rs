//! What a model may leave unsaid about itself, asked for by name.

use headlight_residual::{
    ActivationsError, AttentionWeights, LayerAttention, Probed, Readout, Site,
};

/// Where the stream stands as the next part reads it: at least one site.
pub(crate) fn stream_sites_of(model: &dyn Probed) -> Result<Vec<Site>, ActivationsError> {
    let sites = model.stream_sites();
    if sites.is_empty() {
        return Err(not_given(model, "stream sites"));
    }
    Ok(sites)
}

/// Where the readout reads the stream.
pub(crate) fn last_stream(model: &dyn Probed) -> Result<Site, ActivationsError> {
    let last = model.stream_sites().last().copied();
    last.ok_or_else(|| not_given(model, "stream sites"))
}

pub(crate) fn readout_of(model: &dyn Probed) -> Result<Readout, ActivationsError> {
    model.readout().ok_or_else(|| not_given(model, "readout"))
}

pub(crate) fn attention_weights_of(
    model: &dyn Probed,
    layer: usize,
) -> Result<AttentionWeights, ActivationsError> {
    let weights = model.attention_weights(layer);
    weights.ok_or_else(|| not_given(model, "attention weights"))
}

pub(crate) fn layer_attention_of(
    model: &dyn Probed,
    layer: usize,
) -> Result<LayerAttention, ActivationsError> {
    let attention = model.layer_attention(layer);
    attention.ok_or_else(|| not_given(model, "attention"))
}

/// How many different ids there are.
pub(crate) fn vocabulary_of(model: &dyn Probed) -> Result<usize, ActivationsError> {
    let vocabulary = model.sizes().vocabulary;
    vocabulary.ok_or_else(|| not_given(model, "vocabulary"))
}

fn not_given(model: &dyn Probed, part: &'static str) -> ActivationsError {
    let model = model.name();
    ActivationsError::NotGiven { part, model }
}
