//! Sizes and parts of a decoder.

use burn::{
    module::{Param, ParamId},
    tensor::{Device, Tensor},
};
use headlight_attention::{
    AttentionOptions, Biases, ConfigError, MultiHeadAttentionConfig, PositionConfig, RotaryLayout,
};

use crate::{
    Block, Decoder, FeedForward, FeedForwardKind, Initialization, NormKind, NormPlacement,
    Positions, initialize::initialize,
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
    /// Whether the four projections of attention have biases.
    pub attention_bias: bool,
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
    /// Whether the unembedding is the transposed embedding (Press & Wolf 2017).
    pub tied_embedding: bool,
    /// Scale and softcap of the attention scores.
    pub attention: AttentionOptions,
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
            attention_bias: false,
            feed_forward: None,
            feed_forward_bias: true,
            norm: NormKind::default(),
            norm_epsilon: 1e-5,
            norm_placement: NormPlacement::default(),
            positions: Positions::default(),
            window: None,
            tied_embedding: false,
            attention: AttentionOptions::default(),
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
        self.attention_config().validate()
    }

    /// Builds the model on `device`. Every initial value is a function of `seed` and the
    /// parameter's path alone.
    ///
    /// # Errors
    /// If the numbers do not fit together.
    pub fn try_init(&self, seed: u64, device: &Device) -> Result<Decoder, ConfigError> {
        Ok(initialize(self.try_lay_out(device)?, seed, self))
    }

    /// Builds the model without its matrices: each matrix takes memory when it is first set or
    /// read.
    pub(crate) fn try_lay_out(&self, device: &Device) -> Result<Decoder, ConfigError> {
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
        let blocks = (0..self.n_layers)
            .map(|_| {
                Ok(Block {
                    ln1: norm(),
                    attn: self.attention_config().try_init(device)?,
                    ln2: self.feed_forward.and_then(|_| norm()),
                    mlp: self.feed_forward.map(|(d_ff, kind)| {
                        FeedForward::new(d_model, d_ff, kind, self.feed_forward_bias, device)
                    }),
                    norm_placement: self.norm_placement,
                })
            })
            .collect::<Result<_, ConfigError>>()?;
        Ok(Decoder {
            w_e: matrix(self.vocabulary, d_model),
            w_pos: (self.positions == Positions::Learned).then(|| matrix(self.n_ctx, d_model)),
            blocks,
            ln_final: match self.norm_placement {
                NormPlacement::Pre => norm(),
                NormPlacement::Post => None,
            },
            w_u: (!self.tied_embedding).then(|| matrix(d_model, self.vocabulary)),
            b_u: None,
            config: self.clone(),
        })
    }

    /// The number of key/value heads in force.
    #[must_use]
    pub fn n_kv_heads(&self) -> usize {
        self.attention_config().n_kv_heads()
    }

    /// The width of a head in force.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.attention_config().d_head()
    }

    fn attention_config(&self) -> MultiHeadAttentionConfig {
        MultiHeadAttentionConfig {
            n_kv_heads: self.n_kv_heads,
            d_head: self.d_head,
            bias: if self.attention_bias {
                Biases::ALL
            } else {
                Biases::NONE
            },
            position: match self.positions {
                Positions::Rotary { base } => PositionConfig::Rotary {
                    layout: RotaryLayout::HalfSplit,
                    base,
                    rotated: None,
                },
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
