//! Generation: one token after the other, each drawn from the model's distribution given the tokens
//! before.

use burn::tensor::{Int, Tensor, TensorData};
use headlight_attention::KvCache;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::{Decoder, Positions, Sampling, SamplingError};

/// The settings of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The largest number of tokens to write.
    pub tokens: usize,
    /// The way in which each token is drawn.
    pub sampling: Sampling,
    /// The seed of the draws.
    pub seed: u64,
    /// Tokens that end the text; the text includes them.
    pub stop: Vec<u32>,
    /// Whether a cache keeps keys and values, so that each token costs the work of one token.
    /// Without the cache the model reads the whole text again for each token; the tokens are the
    /// same.
    pub cached: bool,
}

impl Default for Generation {
    /// 32 tokens, drawn from the model's own distribution.
    fn default() -> Self {
        Self {
            tokens: 32,
            sampling: Sampling::default(),
            seed: 0,
            stop: Vec::new(),
            cached: true,
        }
    }
}

/// The reason why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It has the requested length.
    Length,
    /// The model wrote a stop token.
    Stop(u32),
    /// The model has no position for another token: it has learned this number of positions.
    ContextFull(usize),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length => f.write_str("as long as asked for"),
            Self::Stop(_) => f.write_str("a stop token came"),
            Self::ContextFull(n_ctx) => write!(
                f,
                "the context is full: the model has learned {n_ctx} positions"
            ),
        }
    }
}

/// The reason why a text could not be generated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The prompt is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// A token is not in the model's vocabulary.
    #[error("token {token} is not among the model's {vocabulary}")]
    UnknownToken {
        /// The token.
        token: u32,
        /// The size of the vocabulary.
        vocabulary: usize,
    },
    /// The prompt has more tokens than the model has positions.
    #[error("the prompt has {tokens} tokens, the model has learned {n_ctx} positions")]
    PromptTooLong {
        /// The length of the prompt.
        tokens: usize,
        /// The number of the model's positions.
        n_ctx: usize,
    },
    /// No token could be drawn.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
}

/// A text in the making: an iterator over the tokens that follow the prompt.
#[derive(Debug)]
pub struct Generated<'a> {
    model: &'a Decoder,
    generation: Generation,
    rng: ChaCha8Rng,
    /// The prompt and the tokens written so far.
    text: Vec<u32>,
    prompt: usize,
    caches: Vec<KvCache>,
    ending: Option<Ending>,
    failed: bool,
}

impl Decoder {
    /// Generates tokens after `prompt`, one for each call of the iterator.
    ///
    /// With learned positions the text ends when all positions are used ([`Generated::ending`] says
    /// so). Without learned positions it goes on. With a sliding window it then needs memory that
    /// does not grow.
    ///
    /// # Errors
    /// If the prompt is empty, too long or has a token the model does not know, or the sampling
    /// makes no sense.
    ///
    /// ```
    /// use burn::{module::Param, tensor::{Device, Tensor}};
    /// use headlight_residual::{DecoderConfig, Ending, Generation, Sampling};
    ///
    /// let device = Device::flex();
    /// let config = DecoderConfig { vocabulary: 3, n_ctx: 5, d_model: 4, n_layers: 1, n_heads: 1, ..Default::default() };
    /// let mut model = config.try_init(0, &device)?;
    /// // The stream is the token's embedding; the unembedding reads it as the next token.
    /// let zero = |of: &Param<Tensor<2>>| Param::from_tensor(of.val().zeros_like());
    /// model.w_pos = model.w_pos.as_ref().map(zero);
    /// model.blocks[0].attn.w_o.weight = zero(&model.blocks[0].attn.w_o.weight);
    /// let next = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]];
    /// model.w_e = Param::from_tensor(Tensor::eye(4, &device).narrow(0, 0, 3));
    /// model.w_u = Some(Param::from_tensor(Tensor::from_floats(next, &device)));
    ///
    /// let greedy = Generation { sampling: Sampling::GREEDY, ..Default::default() };
    /// let mut text = model.generate(&[0], greedy)?;
    /// assert_eq!(text.by_ref().collect::<Result<Vec<u32>, _>>()?, [1, 2, 0, 1]);
    /// assert_eq!(text.ending(), Some(Ending::ContextFull(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn generate(
        &self,
        prompt: &[u32],
        generation: Generation,
    ) -> Result<Generated<'_>, GenerateError> {
        generation.sampling.validate()?;
        let vocabulary = self.vocabulary();
        if prompt.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        if let Some(&token) = prompt.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(GenerateError::UnknownToken { token, vocabulary });
        }
        if let Some(n_ctx) = self.most_positions().filter(|&n_ctx| prompt.len() > n_ctx) {
            return Err(GenerateError::PromptTooLong {
                tokens: prompt.len(),
                n_ctx,
            });
        }
        let capacity = prompt
            .len()
            .saturating_add(generation.tokens)
            .min(self.most_positions().unwrap_or(usize::MAX));
        Ok(Generated {
            model: self,
            rng: ChaCha8Rng::seed_from_u64(generation.seed),
            text: prompt.to_vec(),
            prompt: prompt.len(),
            caches: if generation.cached {
                self.caches(capacity)
            } else {
                Vec::new()
            },
            generation,
            ending: None,
            failed: false,
        })
    }

    /// The number of learned positions, if positions are learned.
    #[must_use]
    pub fn most_positions(&self) -> Option<usize> {
        (self.config().positions == Positions::Learned).then(|| self.n_ctx())
    }
}

impl Generated<'_> {
    /// The reason why the text ended; `None` while it goes on.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The prompt and the tokens written so far.
    #[must_use]
    pub fn text(&self) -> &[u32] {
        &self.text
    }

    fn ending_before_next(&self) -> Option<Ending> {
        let written = self.text.len() - self.prompt;
        if let Some(&last) = self
            .text
            .last()
            .filter(|last| written > 0 && self.generation.stop.contains(last))
        {
            return Some(Ending::Stop(last));
        }
        if written >= self.generation.tokens {
            return Some(Ending::Length);
        }
        self.model
            .most_positions()
            .filter(|&most| self.text.len() >= most)
            .map(Ending::ContextFull)
    }

    /// The logits after the last token.
    fn logits(&mut self) -> Vec<f32> {
        let seen = self
            .caches
            .first()
            .and_then(|cache| cache.lengths().first().copied())
            .unwrap_or(0);
        let new: Vec<i32> = self.text[seen..]
            .iter()
            .map(|&token| token as i32)
            .collect();
        let count = new.len();
        let tokens =
            Tensor::<2, Int>::from_data(TensorData::new(new, [1, count]), &self.model.w_e.device());
        let logits = if self.generation.cached {
            self.model.forward_cached(tokens, &mut self.caches)
        } else {
            self.model.forward(tokens)
        };
        logits
            .narrow(1, count - 1, 1)
            .into_data()
            .iter::<f32>()
            .collect()
    }
}

impl Iterator for Generated<'_> {
    type Item = Result<u32, GenerateError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.ending.is_some() {
            return None;
        }
        self.ending = self.ending_before_next();
        if self.ending.is_some() {
            return None;
        }
        let logits = self.logits();
        match self.generation.sampling.choose(&logits, &mut self.rng) {
            Ok(token) => {
                self.text.push(token as u32);
                Some(Ok(token as u32))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error.into()))
            }
        }
    }
}
