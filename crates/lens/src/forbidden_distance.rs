//! Is looking so far back needed, whichever heads do it? Work that heads share shows in no head
//! alone.

use std::collections::BTreeSet;

use burn::tensor::{Bool, Tensor, TensorData};
use headlight_heads::MayAttend;
use headlight_residual::{ActivationsError, AttentionSite, Interest, Probe, Probed, Site};

use crate::{Behaviour, Performance};

/// Forbids every head of one layer to attend over some distances: key q − d is masked for query q.
/// The weight goes to the other keys of the row, in proportion (the row is renormalised).
///
/// A query that sees no other key keeps its row.
#[derive(Debug, Clone)]
pub struct ForbiddenDistances {
    scores: Site,
    distances: BTreeSet<usize>,
    may_attend: MayAttend,
}

impl ForbiddenDistances {
    /// In this layer of `model`.
    ///
    /// # Errors
    /// If the model has no scores of such a layer.
    pub fn new(
        model: &dyn Probed,
        layer: usize,
        distances: &[usize],
    ) -> Result<Self, ActivationsError> {
        let scores = Site::Attention(layer, AttentionSite::Scores);
        model.require(&[scores])?;
        Ok(Self {
            scores,
            distances: distances.iter().copied().collect(),
            may_attend: model.sizes().layers[layer].may_attend,
        })
    }

    /// `[query · keys + key]`: whether the pair is masked.
    fn masked(&self, queries: usize, keys: usize) -> Vec<bool> {
        let mut masked = vec![false; queries * keys];
        for query in 0..queries {
            let seen = self.may_attend.keys(query, keys);
            let is_forbidden = |key: &usize| {
                let distance = query.checked_sub(*key);
                distance.is_some_and(|distance| self.distances.contains(&distance))
            };
            let forbidden: Vec<usize> = seen.clone().filter(is_forbidden).collect();
            if forbidden.len() < seen.len() {
                for key in forbidden {
                    masked[query * keys + key] = true;
                }
            }
        }
        masked
    }
}

impl Probe for ForbiddenDistances {
    fn interest(&self, site: Site) -> Interest {
        if site == self.scores {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, _: Site, scores: Tensor<D>) -> Tensor<D> {
        let dims = scores.dims();
        let mut shape = [1; D];
        shape[D - 2..].copy_from_slice(&dims[D - 2..]);
        let masked = self.masked(shape[D - 2], shape[D - 1]);
        let masked = Tensor::<D, Bool>::from_data(TensorData::new(masked, shape), &scores.device());
        scores.mask_fill(masked.expand(dims), f32::NEG_INFINITY)
    }
}

/// The behaviour while no head of `layer` may attend over `distance`.
///
/// If it falls, some heads of the layer do this work, one alone or several together.
///
/// # Errors
/// If the model has no scores of such a layer.
pub fn without_distance(
    model: &dyn Probed,
    behaviour: &Behaviour,
    layer: usize,
    distance: usize,
) -> Result<Performance, ActivationsError> {
    let mut forbidden = ForbiddenDistances::new(model, layer, &[distance])?;
    Ok(behaviour.measure(model, &mut forbidden))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use headlight_residual::{DecoderConfig, token_tensor};

    use super::*;

    #[test]
    fn the_rest_of_a_row_is_renormalised_and_a_row_of_one_key_is_kept() {
        let device = Device::flex();
        for window in [None, Some(3)] {
            let config = DecoderConfig {
                window,
                init_std: 0.5,
                ..DecoderConfig::default()
            };
            let model = config.try_init(0, &device).unwrap();
            let tokens = token_tensor(&[[3, 1, 4, 1, 5]], &device);
            let site = Site::Attention(0, AttentionSite::Pattern);
            let row = |probe: &mut ForbiddenDistances, query: usize| -> Vec<f32> {
                let seen = model
                    .activations_probed(tokens.clone(), &[site], probe)
                    .unwrap();
                let pattern = seen.tensor::<4>(site).narrow(1, 2, 1).narrow(2, query, 1);
                pattern.into_data().iter::<f32>().collect()
            };
            let mut nothing = ForbiddenDistances::new(&model, 0, &[]).unwrap();
            let mut one_back = ForbiddenDistances::new(&model, 0, &[1]).unwrap();
            for query in 2..5 {
                let mut expected = row(&mut nothing, query);
                expected[query - 1] = 0.0;
                let rest: f32 = expected.iter().sum();
                for (found, expected) in row(&mut one_back, query).iter().zip(expected) {
                    assert!((found - expected / rest).abs() < 1e-6, "{found}");
                }
            }
            let mut itself = ForbiddenDistances::new(&model, 0, &[0]).unwrap();
            assert_eq!(row(&mut itself, 0), [1.0, 0.0, 0.0, 0.0, 0.0]);
            assert_eq!(row(&mut itself, 1)[..2], [1.0, 0.0]);
        }
    }
}
