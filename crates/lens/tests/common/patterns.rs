//! What the two heads of each layer of a hand-built model attend to.

use burn::tensor::{Device, Int, Tensor};
use headlight_lens::LayerPattern;
use headlight_residual::{Capture, Decoder};

use crate::common::LENGTH;

/// The weights of each layer.
pub fn patterns(model: &Decoder, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let ids: Vec<i32> = sequences
        .iter()
        .flatten()
        .map(|&token| token as i32)
        .collect();
    let tokens = Tensor::<1, Int>::from_ints(ids.as_slice(), &Device::flex())
        .reshape([sequences.len(), LENGTH]);
    let sites = model.pattern_sites();
    let mut capture = Capture::new(&sites, usize::MAX);
    let _ = model.forward_probed(tokens, &mut capture);
    sites
        .into_iter()
        .map(|site| {
            capture
                .get::<4>(site)
                .unwrap()
                .into_data()
                .iter::<f32>()
                .collect()
        })
        .collect()
}

/// One layer's weights with their shape.
pub fn layer_pattern<'a>(weights: &'a [f32], sequences: &[Vec<u32>]) -> LayerPattern<'a> {
    LayerPattern::new([sequences.len(), 2, LENGTH], weights)
}
