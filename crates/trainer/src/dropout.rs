//! Dropout while training, by key: what falls is a function of numbers.

use burn::tensor::{Int, Tensor, TensorData};
use headlight_attention::DropoutKey;
use headlight_residual::{BlockSite, Decoder, Interest, Probe, Site};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One step's dropout: of what attention and feed-forward add to the residual stream, as a probe
/// there, and of attention weights, by a key that the attention is given. Rows are counted through
/// the whole batch, so that parts of it drop what the whole would.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share that falls of what is added to the stream; of attention weights it is the model's
    /// own.
    pub probability: f64,
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

impl Dropout {
    /// The logits of `model` in this step.
    #[must_use]
    pub fn forward(mut self, model: &Decoder, tokens: Tensor<2, Int>) -> Tensor<3> {
        let key = DropoutKey {
            seed: self.seed,
            step: self.step as u64,
            site: FIRST_OF_ATTENTION,
            first_row: self.first_row as u64,
        };
        model.with_dropout(key).forward_probed(tokens, &mut self)
    }

    /// 0 where a number falls, else `1/(1 − probability)`: `[rows, …]`, each row and site with a
    /// stream of its own.
    fn factors<const D: usize>(&self, like: &Tensor<D>, site: u64) -> Tensor<D> {
        let dims = like.dims();
        let of_row = dims[1..].iter().product();
        let kept = (1.0 / (1.0 - self.probability)) as f32;
        let mut factors = Vec::with_capacity(dims[0] * of_row);
        for row in self.first_row..self.first_row + dims[0] {
            let mut key = [0; 32];
            let parts = [self.seed, self.step as u64, row as u64, site];
            for (bytes, part) in key.chunks_exact_mut(8).zip(parts) {
                bytes.copy_from_slice(&part.to_le_bytes());
            }
            let mut rng = ChaCha8Rng::from_seed(key);
            let draw = || {
                if rng.random::<f64>() < self.probability {
                    0.0
                } else {
                    kept
                }
            };
            factors.extend(std::iter::repeat_with(draw).take(of_row));
        }
        Tensor::from_data(TensorData::new(factors, dims), &like.device())
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

impl Probe for Dropout {
    fn interest(&self, site: Site) -> Interest {
        if self.probability > 0.0 && number(site).is_some() {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        match number(site) {
            Some(number) => activation.clone() * self.factors(&activation, number),
            None => activation,
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn dropped(first_row: usize, rows: usize, step: usize, layer: usize) -> Vec<f32> {
        let mut dropout = Dropout {
            probability: 0.25,
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
    fn a_quarter_falls_and_the_rest_makes_up_for_it() {
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
