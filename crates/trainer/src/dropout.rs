//! Dropout while training, by key: which numbers are dropped is a function of (seed, step, row,
//! site).

use burn::tensor::{Int, Tensor};
use headlight_attention::{Dropout, DropoutKey};
use headlight_residual::{BlockSite, Decoder, Interest, Probe, Site};

/// One step's dropout: of the outputs of attention and feed-forward, as a probe where they are
/// added to the residual stream, and of attention weights. Rows are counted through the whole
/// batch, so that a part of it drops what the whole would.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepDropout {
    /// The probability for each number that is added to the stream.
    pub stream: f64,
    /// The probability for each attention weight.
    pub weights: f64,
    /// The run's seed.
    pub seed: u64,
    /// The step.
    pub step: usize,
    /// The number of the first row.
    pub first_row: usize,
}

/// Attention weights draw from streams of their own, numbered by layer from here: above those of
/// all sites.
const FIRST_OF_ATTENTION: u64 = 1 << 32;

impl StepDropout {
    /// The final stream of `model` in this step.
    #[must_use]
    pub fn final_stream(mut self, model: &Decoder, tokens: Tensor<2, Int>) -> Tensor<3> {
        if self.weights == 0.0 {
            return model.final_stream(tokens, &mut self);
        }
        let of_weights = Dropout::new(self.weights, self.key(FIRST_OF_ATTENTION));
        model.final_stream_with_dropout(tokens, &of_weights, &mut self)
    }

    fn key(&self, site: u64) -> DropoutKey {
        DropoutKey {
            seed: self.seed,
            step: self.step as u64,
            site,
            first_row: self.first_row as u64,
        }
    }
}

/// A number for each site that drops.
fn number(site: Site) -> Option<u64> {
    match site {
        Site::Block(layer, BlockSite::AttnOut) => Some(2 * layer as u64),
        Site::Block(layer, BlockSite::MlpOut) => Some(2 * layer as u64 + 1),
        _ => None,
    }
}

impl Probe for StepDropout {
    fn interest(&self, site: Site) -> Interest {
        if self.stream > 0.0 && number(site).is_some() {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        let Some(number) = number(site) else {
            return activation;
        };
        let dropout = Dropout::new(self.stream, self.key(number));
        let factors = dropout.factors(activation.dims(), &activation.device());
        activation * factors
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn dropped(first_row: usize, rows: usize, step: usize, layer: usize) -> Vec<f32> {
        let mut dropout = StepDropout {
            stream: 0.25,
            weights: 0.0,
            seed: 3,
            step,
            first_row,
        };
        let ones = Tensor::<3>::ones([rows, 50, 20], &Device::flex());
        dropout
            .at(Site::Block(layer, BlockSite::AttnOut), ones)
            .into_data()
            .iter::<f32>()
            .collect()
    }

    #[test]
    fn a_quarter_is_dropped_and_the_rest_makes_up_for_it() {
        let whole = dropped(0, 4, 1, 0);
        assert!(whole.iter().all(|&x| x == 0.0 || x == 4.0 / 3.0));
        // 4000 draws: the share's standard deviation is √(.25·.75/4000) = .007.
        let share = whole.iter().filter(|&&x| x == 0.0).count() as f64 / 4000.0;
        assert!((share - 0.25).abs() < 0.03, "{share}");
    }

    #[test]
    fn parts_of_a_batch_drop_what_the_whole_would_and_other_steps_and_sites_something_else() {
        let whole = dropped(0, 4, 1, 0);
        assert_eq!(whole, [dropped(0, 2, 1, 0), dropped(2, 2, 1, 0)].concat());
        assert_ne!(whole, dropped(0, 4, 2, 0));
        assert_ne!(whole, dropped(0, 4, 1, 1));
    }
}
