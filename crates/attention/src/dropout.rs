//! Dropout on attention weights, by key: a function of numbers, not a global generator, decides
//! which weights are dropped.

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Names one use of dropout. The same key drops the same weights, in any process and on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DropoutKey {
    /// The run's seed.
    pub seed: u64,
    /// The training step.
    pub step: u64,
    /// The place in the model: a number for each layer.
    pub site: u64,
    /// The number of the first batch row. Where a batch is computed in parts, each part has its own
    /// first row and drops the same weights as the whole batch.
    pub first_row: u64,
}

/// Drops each attention weight with a probability and scales the others up by
/// `1/(1 − probability)`.
///
/// A call drops weights only if it is given one of these
/// ([`attention_with_dropout`](crate::attention_with_dropout),
/// [`MultiHeadAttention::forward_with_dropout`](crate::MultiHeadAttention::forward_with_dropout)).
/// No configuration and no module holds one, so no other call can drop anything.
///
/// ```
/// use headlight_attention::{Dropout, DropoutKey};
///
/// let dropout = Dropout::new(0.25, DropoutKey { seed: 1, step: 7, ..DropoutKey::default() });
/// assert_eq!(dropout.probability(), 0.25);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    probability: f64,
    key: DropoutKey,
}

impl Dropout {
    /// # Panics
    /// If `probability` is not at least 0 and below 1.
    #[must_use]
    pub fn new(probability: f64, key: DropoutKey) -> Self {
        assert!(
            (0.0..1.0).contains(&probability),
            "dropout probability {probability} is not in [0, 1)"
        );
        Self { probability, key }
    }

    /// The probability with which a weight is dropped.
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The same dropout in another part of the model: a decoder gives each layer its own site.
    #[must_use]
    pub fn at_site(self, site: u64) -> Self {
        Self {
            key: DropoutKey { site, ..self.key },
            ..self
        }
    }

    /// The place in the model where the weights are dropped.
    #[must_use]
    pub fn site(&self) -> u64 {
        self.key.site
    }

    /// 0 where a number is dropped, `1/(1 − probability)` elsewhere. The first axis counts batch
    /// rows, and each row draws from its own stream.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_attention::{Dropout, DropoutKey};
    ///
    /// let dropout = Dropout::new(0.5, DropoutKey::default());
    /// let factors = dropout.factors([2, 3], &Device::flex()).into_data();
    /// assert!(factors.iter::<f32>().all(|factor| factor == 0.0 || factor == 2.0));
    /// ```
    #[must_use]
    pub fn factors<const D: usize>(&self, dims: [usize; D], device: &Device) -> Tensor<D> {
        let numbers_in_row: usize = dims[1..].iter().product();
        let mut factors = Vec::with_capacity(dims.iter().product());
        for row in 0..dims[0] {
            factors.extend(self.factors_from(row, 0).take(numbers_in_row));
        }
        Tensor::from_data(TensorData::new(factors, dims), device)
    }

    /// The factors of one batch row from weight `first` on, counted through heads, queries and
    /// keys.
    pub(crate) fn factors_from(&self, row: usize, first: usize) -> impl Iterator<Item = f32> {
        /// One f64 takes two of the generator's 32-bit words.
        const WORDS: u128 = 2;
        let kept = (1.0 / (1.0 - self.probability)) as f32;
        let probability = self.probability;
        let mut rng = self.rng_of_row(row as u64);
        rng.set_word_pos(WORDS * first as u128);
        std::iter::repeat_with(move || {
            if rng.random::<f64>() < probability {
                0.0
            } else {
                kept
            }
        })
    }

    fn rng_of_row(&self, row: u64) -> ChaCha8Rng {
        let mut seed = [0; 32];
        let DropoutKey {
            seed: run,
            step,
            site,
            first_row,
        } = self.key;
        for (bytes, part) in seed
            .chunks_exact_mut(8)
            .zip([run, step, first_row + row, site])
        {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        ChaCha8Rng::from_seed(seed)
    }
}
