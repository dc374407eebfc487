//! Sizes and parts of multi-head attention.

use burn::{
    nn::{LinearConfig, RmsNormConfig},
    tensor::Device,
};

use crate::{AttentionOptions, ConfigError, MultiHeadAttention, PositionConfig};

/// Sizes and options of [`MultiHeadAttention`].
///
/// ```
/// use headlight_attention::{MultiHeadAttentionConfig, PositionConfig};
///
/// let config = MultiHeadAttentionConfig::new(64, 4).with_n_kv_heads(2).with_position(PositionConfig::rotary());
/// assert_eq!((config.d_head(), config.n_kv_heads()), (16, 2));
/// let message = MultiHeadAttentionConfig::new(5, 2).validate().unwrap_err().to_string();
/// assert_eq!(message, "d_model 5 is not divisible by n_heads 2");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MultiHeadAttentionConfig {
    /// The width of the vectors that come in and go out.
    pub d_model: usize,
    /// The number of query heads.
    pub n_heads: usize,
    /// The number of key/value heads (grouped queries, Ainslie et al. 2023); `None`: `n_heads`.
    pub n_kv_heads: Option<usize>,
    /// The width of a query and a key; `None`: `d_model / n_heads`.
    pub d_head: Option<usize>,
    /// The width of a value; `None`: `d_head`.
    pub d_value: Option<usize>,
    /// The widths of what keys and values are made from, in cross-attention; `None`: `d_model`.
    pub d_context: Option<(usize, usize)>,
    /// Which projections have a bias.
    pub bias: Biases,
    /// Whether queries and keys pass an RMS norm with a learned gain before they meet (Henry et al.
    /// 2020).
    pub qk_norm: bool,
    /// The share of weights that fall in a call with a dropout key.
    pub dropout: f64,
    /// How positions enter.
    pub position: PositionConfig,
    /// Scale and softcap of the scores.
    pub options: AttentionOptions,
}

/// Which of the four projections have a bias.
///
/// ```
/// use headlight_attention::{Biases, MultiHeadAttentionConfig};
///
/// let biases = Biases { output: true, ..Biases::NONE };
/// let attention = MultiHeadAttentionConfig::new(4, 2).with_biases(biases).try_init(&burn::tensor::Device::flex())?;
/// assert!(attention.w_q.bias.is_none() && attention.w_o.bias.is_some());
/// # Ok::<(), headlight_attention::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four projections, each with its own answer"
)]
pub struct Biases {
    /// `b_Q`
    pub query: bool,
    /// `b_K`
    pub key: bool,
    /// `b_V`
    pub value: bool,
    /// `b_O`
    pub output: bool,
}

impl Biases {
    /// All of them.
    pub const ALL: Self = Self {
        query: true,
        key: true,
        value: true,
        output: true,
    };
    /// None of them.
    pub const NONE: Self = Self {
        query: false,
        key: false,
        value: false,
        output: false,
    };
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $field:ident = $value:ident: $kind:ty => $set:expr;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(mut self, $value: $kind) -> Self {
            self.$field = $set;
            self
        })*
    };
}

impl MultiHeadAttentionConfig {
    /// `n_heads` heads of width `d_model / n_heads`, without bias, norm, dropout or positions.
    #[must_use]
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self {
            d_model,
            n_heads,
            n_kv_heads: None,
            d_head: None,
            d_value: None,
            d_context: None,
            bias: Biases::NONE,
            qk_norm: false,
            dropout: 0.0,
            position: PositionConfig::None,
            options: AttentionOptions::default(),
        }
    }

    setters! {
        /// Sets the number of key/value heads.
        with_n_kv_heads: n_kv_heads = n_kv_heads: usize => Some(n_kv_heads);
        /// Sets the width of queries and keys.
        with_d_head: d_head = d_head: usize => Some(d_head);
        /// Sets the width of values.
        with_d_value: d_value = d_value: usize => Some(d_value);
        /// Sets the width of what keys and values are made from.
        with_d_context: d_context = d_context: usize => Some((d_context, d_context));
        /// Sets the widths of what keys and of what values are made from, where they differ.
        with_d_key_and_value_context: d_context = widths: (usize, usize) => Some(widths);
        /// Gives all projections a bias, or none.
        with_bias: bias = bias: bool => if bias { Biases::ALL } else { Biases::NONE };
        /// Says for each projection whether it has a bias.
        with_biases: bias = biases: Biases => biases;
        /// Normalises queries and keys.
        with_qk_norm: qk_norm = qk_norm: bool => qk_norm;
        /// Sets the share of weights that fall in a call with a dropout key.
        with_dropout: dropout = probability: f64 => probability;
        /// Sets how positions enter.
        with_position: position = position: PositionConfig => position;
        /// Sets scale and softcap of the scores.
        with_options: options = options: AttentionOptions => options;
    }

    /// The number of key/value heads in force.
    #[must_use]
    pub fn n_kv_heads(&self) -> usize {
        self.n_kv_heads.unwrap_or(self.n_heads)
    }

    /// The width of queries and keys in force.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.d_head.unwrap_or(self.d_model / self.n_heads.max(1))
    }

    /// The width of values in force.
    #[must_use]
    pub fn d_value(&self) -> usize {
        self.d_value.unwrap_or_else(|| self.d_head())
    }

    /// The widths of what keys and values are made from, in force.
    #[must_use]
    pub fn d_context(&self) -> (usize, usize) {
        self.d_context.unwrap_or((self.d_model, self.d_model))
    }

    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// Names the numbers that do not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (key_context, value_context) = self.d_context();
        ConfigError::check_sizes(&[
            ("d_model", self.d_model),
            ("n_heads", self.n_heads),
            ("n_kv_heads", self.n_kv_heads()),
            ("d_context of keys", key_context),
            ("d_context of values", value_context),
        ])?;
        if self.d_head.is_none() {
            ConfigError::check_divides(("d_model", self.d_model), ("n_heads", self.n_heads))?;
        }
        ConfigError::check_sizes(&[("d_head", self.d_head()), ("d_value", self.d_value())])?;
        ConfigError::check_divides(("n_heads", self.n_heads), ("n_kv_heads", self.n_kv_heads()))?;
        ConfigError::check_probability("dropout", self.dropout)?;
        if let Some(cap) = self.options.softcap {
            ConfigError::check_positive("softcap", cap)?;
        }
        if let Some(scale) = self.options.scale {
            ConfigError::check_positive("scale", scale)?;
        }
        self.position.validate(self.d_head())
    }

    /// Builds the module on `device`.
    ///
    /// # Errors
    /// If the numbers do not fit together, see [`validate`](Self::validate).
    pub fn try_init(&self, device: &Device) -> Result<MultiHeadAttention, ConfigError> {
        self.validate()?;
        let linear = |input, output, bias| {
            LinearConfig::new(input, output)
                .with_bias(bias)
                .init(device)
        };
        let norm = || {
            self.qk_norm.then(|| {
                RmsNormConfig::new(self.d_head())
                    .with_epsilon(1e-6)
                    .init(device)
            })
        };
        let (n_heads, n_kv_heads) = (self.n_heads, self.n_kv_heads());
        let (key_context, value_context) = self.d_context();
        Ok(MultiHeadAttention {
            w_q: linear(self.d_model, n_heads * self.d_head(), self.bias.query),
            w_k: linear(key_context, n_kv_heads * self.d_head(), self.bias.key),
            w_v: linear(value_context, n_kv_heads * self.d_value(), self.bias.value),
            w_o: linear(n_heads * self.d_value(), self.d_model, self.bias.output),
            q_norm: norm(),
            k_norm: norm(),
            position: self.position.init(n_heads, self.d_head(), device),
            n_heads,
            n_kv_heads,
            dropout: self.dropout,
            options: self.options.clone(),
        })
    }
}
