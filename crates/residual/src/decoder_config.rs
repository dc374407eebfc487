//! Sizes and parts of a decoder.

use burn::{
    module::{Param, ParamId},
    tensor::{Device, Tensor},
};
use headlight_attention::{
    AttentionOptions, Biases, ConfigError, MultiHeadAttentionConfig, PositionConfig, QkNorm,
    RotaryLayout, RotaryScaling,
};

use crate::{
    Block, BlockOrder, Decoder, FeedForward, FeedForwardKind, Initialization, NormKind,
    NormPlacement, Positions, initialize::initialize,
};

/// Sizes and parts of a [`Decoder`].
///
/// ```
/// use headlight_residual::DecoderConfig;
///
/// let config = DecoderConfig { vocabulary: 10, n_ctx: 8, d_model: 16, n_layers: 1, n_heads: 2, ..DecoderConfig::default() };
/// assert!(config.validate().is_ok());
/// let error = DecoderConfig { n_heads: 3, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "d_model 16 is not divisible by n_heads 3");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// The number of positions that the model is built for.
    pub n_ctx: usize,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of query heads in each block.
    pub n_heads: usize,
    /// The number of key/value heads in each block (Ainslie et al. 2023); `None`: `n_heads`.
    pub n_kv_heads: Option<usize>,
    /// The width of a head; `None`: `d_model / n_heads`.
    pub d_head: Option<usize>,
    /// Which of the four projections of attention have biases.
    pub attention_bias: Biases,
    /// Over which components queries and keys are normalised, with the ε of the norms.
    pub qk_norm: QkNorm,
    /// What the feed-forward reads.
    pub block_order: BlockOrder,
    /// Width and kind of the feed-forward; `None`: attention only.
    pub feed_forward: Option<(usize, FeedForwardKind)>,
    /// Whether the feed-forward has biases.
    pub feed_forward_bias: bool,
    /// The norm.
    pub norm: NormKind,
    /// ε: the number under the root of the norm, which prevents division by 0.
    pub norm_epsilon: f64,
    /// The placement of the norms.
    pub norm_placement: NormPlacement,
    /// The positions.
    pub positions: Positions,
    /// The number of tokens that a token sees, itself included (sliding window, Beltagy et al.
    /// 2020); `None`: all.
    pub window: Option<usize>,
    /// The layers in which a token sees all tokens in spite of the window, in rising order.
    pub full_layers: Vec<usize>,
    /// The factor on embeddings; `None`: 1.
    pub embedding_scale: Option<f64>,
    /// Whether the unembedding is the transposed embedding (Press & Wolf 2017).
    pub tied_embedding: bool,
    /// Scale and softcap of the attention scores.
    pub attention: AttentionOptions,
    /// `c`: logits become `c·tanh(logits/c)` (Gemma 2, section 2.3); `None`: unbounded.
    pub logit_softcap: Option<f64>,
    /// The distribution of the initial weights.
    pub initialization: Initialization,
    /// The standard deviation of the initial weights.
    pub init_std: f64,
}

impl Default for DecoderConfig {
    /// Two attention-only layers of width 64 with 4 heads.
    fn default() -> Self {
        Self {
            vocabulary: 64,
            n_ctx: 64,
            d_model: 64,
            n_layers: 2,
            n_heads: 4,
            n_kv_heads: None,
            d_head: None,
            attention_bias: Biases::NONE,
            qk_norm: QkNorm::None,
            block_order: BlockOrder::default(),
            feed_forward: None,
            feed_forward_bias: true,
            norm: NormKind::default(),
            norm_epsilon: 1e-5,
            norm_placement: NormPlacement::default(),
            positions: Positions::default(),
            window: None,
            full_layers: Vec::new(),
            embedding_scale: None,
            tied_embedding: false,
            attention: AttentionOptions::default(),
            logit_softcap: None,
            initialization: Initialization::default(),
            init_std: 0.02,
        }
    }
}

impl DecoderConfig {
    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// Names the numbers that do not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("vocabulary", self.vocabulary),
            ("n_ctx", self.n_ctx),
            ("n_layers", self.n_layers),
            ("window", self.window.unwrap_or(1)),
            ("d_ff", self.feed_forward.map_or(1, |(d_ff, _)| d_ff)),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ConfigError::Zero { name });
        }
        for (name, number) in [
            ("embedding_scale", self.embedding_scale),
            ("logit_softcap", self.logit_softcap),
        ] {
            ConfigError::check_positive(name, number.unwrap_or(1.0))?;
        }
        if self.block_order == BlockOrder::Parallel && self.norm_placement == NormPlacement::Post {
            return Err(ConfigError::DoNotCombine {
                one: "a parallel block",
                other: "post-norm placement, which norms the stream between its parts",
            });
        }
        if let Some(&layer) = self.full_layers.last() {
            if self.window.is_none() {
                return Err(ConfigError::DoNotCombine {
                    one: "full_layers",
                    other: "layers without a window",
                });
            }
            ConfigError::check_at_most(
                ("full layer", layer),
                ("the last layer", self.n_layers - 1),
            )?;
        }
        if !self.full_layers.is_sorted_by(|a, b| a < b) {
            return Err(ConfigError::NotRising {
                name: "full_layers",
            });
        }
        self.attention_config(None).validate()?;
        self.attention_config(self.window).validate()
    }

    /// Builds the model on `device`. Every initial value is a function of `seed` and the
    /// parameter's path alone.
    ///
    /// # Errors
    /// If the numbers do not fit together.
    pub fn try_init(&self, seed: u64, device: &Device) -> Result<Decoder, ConfigError> {
        Ok(initialize(self.try_lay_out(device)?, seed, self))
    }

    /// Builds the model without its matrices, to be loaded: each matrix takes memory when it is first
    /// set or read.
    ///
    /// # Errors
    /// As [`try_init`](Self::try_init).
    pub fn try_lay_out(&self, device: &Device) -> Result<Decoder, ConfigError> {
        self.validate()?;
        let d_model = self.d_model;
        let norm = || self.norm.init(d_model, self.norm_epsilon, device);
        let matrix = |rows, columns| {
            let zeros = move |device: &Device, _| Tensor::zeros([rows, columns], device);
            Param::uninitialized(
                ParamId::new(),
                zeros,
                device.clone(),
                true,
                [rows, columns].into(),
            )
        };
        // In a post-norm block, `ln1` and `ln2` are the norms that replace the stream.
        let norms_own = self.norm_placement != NormPlacement::Output;
        let norms_outputs = self.norm_placement.normalizes_outputs();
        let norm_if = |is_there: bool| if is_there { norm() } else { None };
        let has_mlp = self.feed_forward.is_some();
        let blocks = (0..self.n_layers)
            .map(|layer| {
                let attention = self.attention_config(self.window_of(layer));
                Ok(Block {
                    ln1: norm_if(norms_own),
                    attn: attention.try_init(device)?,
                    ln1_post: norm_if(norms_outputs),
                    ln2: norm_if(norms_own && has_mlp),
                    mlp: self.feed_forward.map(|(d_ff, kind)| {
                        FeedForward::new(d_model, d_ff, kind, self.feed_forward_bias, device)
                    }),
                    ln2_post: norm_if(norms_outputs && has_mlp),
                    norm_placement: self.norm_placement,
                    order: self.block_order,
                })
            })
            .collect::<Result<_, ConfigError>>()?;
        Ok(Decoder {
            w_e: matrix(self.vocabulary, d_model),
            w_pos: (self.positions == Positions::Learned).then(|| matrix(self.n_ctx, d_model)),
            blocks,
            ln_final: norm_if(self.norm_placement != NormPlacement::Post),
            w_u: (!self.tied_embedding).then(|| matrix(d_model, self.vocabulary)),
            b_u: None,
            config: self.clone(),
        })
    }

    /// The number of key/value heads in force.
    #[must_use]
    pub fn n_kv_heads(&self) -> usize {
        self.n_kv_heads.unwrap_or(self.n_heads)
    }

    /// The width of a head in force.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.attention_config(None).d_head()
    }

    /// The window, if it is that of all layers.
    #[must_use]
    pub fn window_of_all_layers(&self) -> Option<usize> {
        self.window.filter(|_| self.full_layers.is_empty())
    }

    /// The window of a layer; `None`: a token sees all tokens before it.
    #[must_use]
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| !self.full_layers.contains(&layer))
    }

    /// Whether the angles of rotary positions are the same in sequences of these two lengths, at the
    /// positions that both have.
    #[must_use]
    pub fn turns_alike(&self, a: usize, b: usize) -> bool {
        match &self.positions {
            Positions::Rotary(rotary) => rotary.scaling.turns_alike(a, b),
            _ => true,
        }
    }

    /// The attention of a layer with this window.
    fn attention_config(&self, window: Option<usize>) -> MultiHeadAttentionConfig {
        MultiHeadAttentionConfig {
            n_kv_heads: self.n_kv_heads,
            d_head: self.d_head,
            bias: self.attention_bias,
            qk_norm: self.qk_norm,
            qk_norm_epsilon: self.norm_epsilon,
            position: match &self.positions {
                Positions::Rotary(rotary) => {
                    let in_window = rotary.base_in_window.filter(|_| window.is_some());
                    PositionConfig::Rotary {
                        layout: RotaryLayout::HalfSplit,
                        base: in_window.unwrap_or(rotary.base),
                        rotated: rotary.rotated,
                        scaling: match in_window {
                            Some(_) => RotaryScaling::None,
                            None => rotary.scaling.clone(),
                        },
                    }
                }
                Positions::Alibi => PositionConfig::Alibi,
                Positions::Learned | Positions::Sinusoidal | Positions::None => {
                    PositionConfig::None
                }
            },
            options: self.attention.clone(),
            ..MultiHeadAttentionConfig::new(self.d_model, self.n_heads)
        }
    }
}
