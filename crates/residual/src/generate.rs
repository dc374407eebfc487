//! Generation: one token after the other, each drawn from the model's distribution given the tokens
//! before.

use burn::tensor::Tensor;
use headlight_attention::KvCache;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::{Decoder, Positions, Sampling, SamplingError, token_tensor};

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
    /// This token ended the text: it is a stop token, or [`GeneratedTexts::stop`] was called.
    Stop(u32),
    /// The model has no position for another token: it has learned this number of positions.
    ContextFull(usize),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length => f.write_str("as long as asked for"),
            Self::Stop(_) => f.write_str("a stop came"),
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

/// Texts in the making, one for each prompt: an iterator that gives the next token of every text
/// that has not ended.
#[derive(Debug)]
pub struct GeneratedTexts<'a> {
    model: &'a Decoder,
    generation: Generation,
    texts: Vec<Text>,
    /// The texts that go on; each has a row of the caches.
    open: Vec<usize>,
    caches: Vec<KvCache>,
    /// The number of tokens that each cache has room for.
    capacity: usize,
}

/// One text in the making: an iterator over the tokens that follow its prompt.
#[derive(Debug)]
pub struct Generated<'a> {
    texts: GeneratedTexts<'a>,
}

/// The next token of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct NextToken {
    /// The text: the place of its prompt.
    pub text: usize,
    /// The token; an error ends this text, and no other.
    pub token: Result<u32, GenerateError>,
}

#[derive(Debug)]
struct Text {
    /// Prompt and what was written.
    tokens: Vec<u32>,
    prompt: usize,
    rng: ChaCha8Rng,
    ending: Option<Ending>,
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
        let texts = self.generate_each(&[prompt], generation)?;
        Ok(Generated { texts })
    }

    /// Writes on after each prompt, all texts side by side. Prompts may differ in length, and each
    /// text is what [`generate`](Self::generate) makes of its prompt alone, up to the rounding of
    /// logits: its draws follow from the seed alone. A text that ends stops no other.
    ///
    /// # Errors
    /// As [`generate`](Self::generate), if one of the prompts is wrong.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::{DecoderConfig, Ending, Generation};
    ///
    /// // Room for 64 positions: 62 tokens after 2 of them, 4 after 60.
    /// let model = DecoderConfig::default().try_init(0, &Device::flex())?;
    /// let generation = Generation { tokens: 99, ..Default::default() };
    /// let mut texts = model.generate_each(&[vec![1, 2], vec![3; 60]], generation)?;
    /// let written: Vec<usize> = texts.by_ref().flatten().map(|next| next.text).collect();
    /// assert_eq!(written.iter().filter(|&&text| text == 0).count(), 62);
    /// assert_eq!(written.iter().filter(|&&text| text == 1).count(), 4);
    /// assert_eq!(texts.ending(0), Some(Ending::ContextFull(64)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn generate_each<P: AsRef<[u32]>>(
        &self,
        prompts: &[P],
        generation: Generation,
    ) -> Result<GeneratedTexts<'_>, GenerateError> {
        generation.sampling.validate()?;
        let mut texts = Vec::with_capacity(prompts.len());
        let mut capacity = 0;
        for prompt in prompts {
            let prompt = prompt.as_ref();
            self.check_prompt(prompt)?;
            let most = self.most_positions().unwrap_or(usize::MAX);
            capacity = capacity.max(prompt.len().saturating_add(generation.tokens).min(most));
            texts.push(Text {
                tokens: prompt.to_vec(),
                prompt: prompt.len(),
                rng: ChaCha8Rng::seed_from_u64(generation.seed),
                ending: None,
            });
        }
        Ok(GeneratedTexts {
            model: self,
            open: (0..texts.len()).collect(),
            texts,
            caches: if generation.cached {
                self.caches(capacity)
            } else {
                Vec::new()
            },
            capacity,
            generation,
        })
    }

    fn check_prompt(&self, prompt: &[u32]) -> Result<(), GenerateError> {
        let vocabulary = self.vocabulary();
        if prompt.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        if let Some(&token) = prompt.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(GenerateError::UnknownToken { token, vocabulary });
        }
        match self.most_positions() {
            Some(n_ctx) if prompt.len() > n_ctx => Err(GenerateError::PromptTooLong {
                tokens: prompt.len(),
                n_ctx,
            }),
            _ => Ok(()),
        }
    }

    /// The number of learned positions, if positions are learned.
    #[must_use]
    pub fn most_positions(&self) -> Option<usize> {
        (self.config().positions == Positions::Learned).then(|| self.n_ctx())
    }
}

impl Generated<'_> {
    /// Why the text ended; `None` while it goes on, or after an error.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.texts.ending(0)
    }

    /// The prompt and the tokens written so far.
    #[must_use]
    pub fn text(&self) -> &[u32] {
        self.texts.text(0)
    }
}

impl Iterator for Generated<'_> {
    type Item = Result<u32, GenerateError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.texts.next()?.pop()?.token)
    }
}

impl GeneratedTexts<'_> {
    /// Why text `text` ended; `None` while it goes on, or after an error.
    ///
    /// # Panics
    /// If there are not so many prompts.
    #[must_use]
    pub fn ending(&self, text: usize) -> Option<Ending> {
        self.texts[text].ending
    }

    /// Prompt `text` and what was written after it so far.
    ///
    /// # Panics
    /// If there are not so many prompts.
    #[must_use]
    pub fn text(&self, text: usize) -> &[u32] {
        &self.texts[text].tokens
    }

    /// Ends text `text` with its last token, for a reason that is not among the settings: a text
    /// that several tokens spell, for example. The other texts go on.
    ///
    /// # Panics
    /// If there are not so many prompts.
    pub fn stop(&mut self, text: usize) {
        let stopped = &mut self.texts[text];
        if stopped.ending.is_none() {
            stopped.ending = stopped.tokens.last().copied().map(Ending::Stop);
            self.close(&[text]);
        }
    }

    /// Ends the texts that get no further token.
    fn end_texts(&mut self) {
        let mut ended = Vec::new();
        for &at in &self.open {
            let text = &mut self.texts[at];
            text.ending = text.ending_before_next(&self.generation, self.model.most_positions());
            if text.ending.is_some() {
                ended.push(at);
            }
        }
        self.close(&ended);
    }

    /// Takes texts that have ended out of the batch and its caches.
    fn close(&mut self, ended: &[usize]) {
        if ended.is_empty() {
            return;
        }
        let rows: Vec<usize> = (0..self.open.len())
            .filter(|&row| !ended.contains(&self.open[row]))
            .collect();
        self.open = rows.iter().map(|&row| self.open[row]).collect();
        if self.open.is_empty() {
            self.caches.clear();
        }
        for cache in &mut self.caches {
            // Before the first pass a cache has no rows yet.
            if !cache.lengths().is_empty() {
                cache.keep_rows(&rows);
            }
        }
    }

    /// Empties the caches if the keys in them have other angles than in the texts as they are now. Then
    /// the texts are read again, as [`Generation::cached`] promises the same tokens.
    fn forget_other_angles(&mut self) {
        let Some(cache) = self.caches.first() else {
            return;
        };
        let config = self.model.config();
        let mut rows = self.open.iter().zip(cache.lengths());
        let is_alike = |(&text, &seen): (&usize, &usize)| {
            config.turns_alike(seen, self.texts[text].tokens.len())
        };
        if !rows.all(is_alike) {
            self.caches = self.model.caches(self.capacity);
        }
    }

    /// The logits after the last token of each open text.
    fn logits(&mut self) -> Vec<Vec<f32>> {
        let device = self.model.w_e.device();
        if !self.generation.cached {
            let texts = self.open.iter().map(|&text| &self.texts[text].tokens);
            // Each alone: no text is as long as the padding of a batch.
            let of_text = |tokens: &Vec<u32>| {
                let logits = self.model.forward(token_tensor(&[tokens], &device));
                last_logits(&logits, 0, tokens.len())
            };
            return texts.map(of_text).collect();
        }
        self.forget_other_angles();
        let seen = match self.caches.first().map(KvCache::lengths) {
            Some(lengths) if !lengths.is_empty() => lengths.to_vec(),
            _ => vec![0; self.open.len()],
        };
        let mut rows: Vec<Vec<u32>> = Vec::with_capacity(self.open.len());
        for (&text, seen) in self.open.iter().zip(seen) {
            rows.push(self.texts[text].tokens[seen..].to_vec());
        }
        let counts: Vec<usize> = rows.iter().map(Vec::len).collect();
        let longest = counts.iter().copied().max().unwrap_or(0);
        for row in &mut rows {
            row.resize(longest, 0);
        }
        let tokens = token_tensor(&rows, &device);
        let logits = self
            .model
            .forward_cached_rows(tokens, &counts, &mut self.caches);
        let counts = counts.into_iter().enumerate();
        counts
            .map(|(row, count)| last_logits(&logits, row, count))
            .collect()
    }
}

/// The logits after the last of `count` tokens of a row.
fn last_logits(logits: &Tensor<3>, row: usize, count: usize) -> Vec<f32> {
    let last = logits.clone().narrow(0, row, 1).narrow(1, count - 1, 1);
    last.into_data().iter::<f32>().collect()
}

impl Text {
    fn ending_before_next(
        &self,
        generation: &Generation,
        most_positions: Option<usize>,
    ) -> Option<Ending> {
        let written = &self.tokens[self.prompt..];
        match written.last() {
            Some(&last) if generation.stop.contains(&last) => return Some(Ending::Stop(last)),
            _ => {}
        }
        if written.len() >= generation.tokens {
            return Some(Ending::Length);
        }
        most_positions
            .filter(|&most| self.tokens.len() >= most)
            .map(Ending::ContextFull)
    }
}

impl Iterator for GeneratedTexts<'_> {
    type Item = Vec<NextToken>;

    fn next(&mut self) -> Option<Self::Item> {
        self.end_texts();
        if self.open.is_empty() {
            return None;
        }
        let logits = self.logits();
        let mut step = Vec::with_capacity(self.open.len());
        for (&at, logits) in self.open.iter().zip(logits) {
            let text = &mut self.texts[at];
            let token = match self.generation.sampling.choose(&logits, &mut text.rng) {
                Ok(token) => {
                    text.tokens.push(token as u32);
                    Ok(token as u32)
                }
                Err(error) => Err(error.into()),
            };
            step.push(NextToken { text: at, token });
        }
        let failed: Vec<usize> = step
            .iter()
            .filter(|next| next.token.is_err())
            .map(|next| next.text)
            .collect();
        self.close(&failed);
        Some(step)
    }
}
