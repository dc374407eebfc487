//! What the two heads of each layer of a hand-built model attend to.

use burn::tensor::Device;
use headlight_lens::LayerPattern;
use headlight_residual::{Decoder, token_tensor};

use crate::common::LENGTH;

/// The weights of each layer.
pub fn patterns(model: &Decoder, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let sites = model.pattern_sites();
    let tokens = token_tensor(sequences, &Device::flex());
    let seen = model.activations(tokens, &sites).unwrap();
    let weights = |site| seen.tensor::<4>(site).into_data().iter::<f32>().collect();
    sites.into_iter().map(weights).collect()
}

/// One layer's weights with their shape.
pub fn layer_pattern<'a>(weights: &'a [f32], sequences: &[Vec<u32>]) -> LayerPattern<'a> {
    LayerPattern::new([sequences.len(), 2, LENGTH], weights)
}
