//! Sizes and parts of multi-head attention.

use burn::{config::Config, nn::LinearConfig, tensor::Device};
use serde::{Deserialize, Serialize};

use crate::{AttentionOptions, ConfigError, MultiHeadAttention, PositionConfig, QkNorm};

/// Sizes and options of [`MultiHeadAttention`].
///
/// ```
/// use headlight_attention::{MultiHeadAttentionConfig, PositionConfig};
///
/// let config = MultiHeadAttentionConfig::new(64, 4).with_n_kv_heads(2);
/// let config = config.with_position(PositionConfig::rotary());
/// assert_eq!((config.d_head(), config.n_kv_heads()), (16, 2));
/// let message = MultiHeadAttentionConfig::new(5, 2).validate().unwrap_err().to_string();
/// assert_eq!(message, "d_model 5 is not divisible by n_heads 2");
/// ```
///
/// It is a [`Config`], so it can be a field of the configuration of your own model:
///
/// ```
/// use burn::config::Config;
/// use headlight_attention::MultiHeadAttentionConfig;
///
/// #[derive(Config, Debug)]
/// struct MyModelConfig {
///     attention: MultiHeadAttentionConfig,
///     #[config(default = 3)]
///     n_classes: usize,
/// }
///
/// let config = MyModelConfig::new(MultiHeadAttentionConfig::new(64, 4).with_bias(true));
/// let file = std::env::temp_dir().join("headlight_my_model.json");
/// config.save(&file)?;
/// assert_eq!(MyModelConfig::load(&file)?.attention, config.attention);
///
/// // Only d_model and n_heads must be there; a key that nobody knows is an error.
/// let load = |json: &str| MultiHeadAttentionConfig::load_binary(json.as_bytes());
/// assert_eq!(load(r#"{"d_model": 64, "n_heads": 4}"#)?, MultiHeadAttentionConfig::new(64, 4));
/// assert!(load(r#"{"n_heads": 4}"#).unwrap_err().to_string().contains("missing field `d_model`"));
/// let error = load(r#"{"d_model": 64, "n_heads": 4, "n_head": 8}"#).unwrap_err().to_string();
/// assert!(error.contains("unknown field `n_head`"));
/// # std::fs::remove_file(file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiHeadAttentionConfig {
    /// The width of the input and output vectors.
    pub d_model: usize,
    /// The number of query heads.
    pub n_heads: usize,
    /// The number of key/value heads (grouped queries, Ainslie et al. 2023); `None`: `n_heads`.
    #[serde(default)]
    pub n_kv_heads: Option<usize>,
    /// The width of a query and a key; `None`: `d_model / n_heads`.
    #[serde(default)]
    pub d_head: Option<usize>,
    /// The width of a value; `None`: `d_head`.
    #[serde(default)]
    pub d_value: Option<usize>,
    /// In cross-attention, the widths of the inputs from which keys and values are projected;
    /// `None`: `d_model`.
    #[serde(default)]
    pub d_context: Option<(usize, usize)>,
    /// Which projections have a bias.
    #[serde(default)]
    pub bias: Biases,
    /// Over which components queries and keys are normalised before their product.
    #[serde(default)]
    pub qk_norm: QkNorm,
    /// ε of QK-norm: the number under the root.
    #[serde(default = "default_qk_norm_epsilon")]
    pub qk_norm_epsilon: f64,
    /// The position scheme.
    #[serde(default)]
    pub position: PositionConfig,
    /// Scale and softcap of the scores.
    #[serde(default)]
    pub options: AttentionOptions,
}

fn default_qk_norm_epsilon() -> f64 {
    1e-6
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

impl Config for Biases {}

impl Biases {
    /// All of them.
    pub const ALL: Self = Self {
        query: true,
        key: true,
        value: true,
        output: true,
    };
    /// Those of queries, keys and values (Qwen 2).
    pub const QUERY_KEY_VALUE: Self = Self {
        output: false,
        ..Self::ALL
    };
    /// None of them.
    pub const NONE: Self = Self {
        query: false,
        key: false,
        value: false,
        output: false,
    };
}

impl Config for MultiHeadAttentionConfig {}

impl MultiHeadAttentionConfig {
    /// A configuration of `n_heads` heads of width `d_model / n_heads`, without bias, norm or
    /// positions.
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
            qk_norm: QkNorm::None,
            qk_norm_epsilon: default_qk_norm_epsilon(),
            position: PositionConfig::None,
            options: AttentionOptions::default(),
        }
    }

    /// Sets the number of key/value heads.
    #[must_use]
    pub fn with_n_kv_heads(mut self, n_kv_heads: usize) -> Self {
        self.n_kv_heads = Some(n_kv_heads);
        self
    }

    /// Sets the width of queries and keys.
    #[must_use]
    pub fn with_d_head(mut self, d_head: usize) -> Self {
        self.d_head = Some(d_head);
        self
    }

    /// Sets the width of values.
    #[must_use]
    pub fn with_d_value(mut self, d_value: usize) -> Self {
        self.d_value = Some(d_value);
        self
    }

    /// Sets the width of the input from which keys and values are projected.
    #[must_use]
    pub fn with_d_context(mut self, d_context: usize) -> Self {
        self.d_context = Some((d_context, d_context));
        self
    }

    /// Sets the widths of the two inputs from which keys and values are projected.
    #[must_use]
    pub fn with_d_key_and_value_context(mut self, widths: (usize, usize)) -> Self {
        self.d_context = Some(widths);
        self
    }

    /// Gives all four projections a bias, or none.
    #[must_use]
    pub fn with_bias(mut self, bias: bool) -> Self {
        self.bias = if bias { Biases::ALL } else { Biases::NONE };
        self
    }

    /// Sets for each projection whether it has a bias.
    #[must_use]
    pub fn with_biases(mut self, biases: Biases) -> Self {
        self.bias = biases;
        self
    }

    /// Sets over which components queries and keys are normalised before their product.
    #[must_use]
    pub fn with_qk_norm(mut self, qk_norm: QkNorm) -> Self {
        self.qk_norm = qk_norm;
        self
    }

    /// Sets the position scheme.
    #[must_use]
    pub fn with_position(mut self, position: PositionConfig) -> Self {
        self.position = position;
        self
    }

    /// Sets scale and softcap of the scores.
    #[must_use]
    pub fn with_options(mut self, options: AttentionOptions) -> Self {
        self.options = options;
        self
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

    /// The widths of the inputs of keys and values in force.
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
        if let Some(cap) = self.options.softcap {
            ConfigError::check_positive("softcap", cap)?;
        }
        if let Some(scale) = self.options.scale {
            ConfigError::check_positive("scale", scale)?;
        }
        ConfigError::check_positive("qk_norm_epsilon", self.qk_norm_epsilon)?;
        self.position.validate(self.d_head())
    }

    /// Builds the module on `device`, as Burn's own configurations do.
    ///
    /// # Panics
    /// If the numbers do not fit together. [`try_init`](Self::try_init) returns an `Err` instead.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_attention::MultiHeadAttentionConfig;
    ///
    /// let attention = MultiHeadAttentionConfig::new(8, 2).init(&Device::flex());
    /// assert_eq!(attention.w_q.weight.dims(), [8, 8]);
    /// ```
    #[must_use]
    pub fn init(&self, device: &Device) -> MultiHeadAttention {
        match self.try_init(device) {
            Ok(attention) => attention,
            Err(error) => panic!("{error}"),
        }
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
        let norm = |n_heads| {
            self.qk_norm
                .init(n_heads, self.d_head(), self.qk_norm_epsilon, device)
        };
        let (n_heads, n_kv_heads) = (self.n_heads, self.n_kv_heads());
        let (key_context, value_context) = self.d_context();
        Ok(MultiHeadAttention {
            w_q: linear(self.d_model, n_heads * self.d_head(), self.bias.query),
            w_k: linear(key_context, n_kv_heads * self.d_head(), self.bias.key),
            w_v: linear(value_context, n_kv_heads * self.d_value(), self.bias.value),
            w_o: linear(n_heads * self.d_value(), self.d_model, self.bias.output),
            q_norm: norm(n_heads),
            k_norm: norm(n_kv_heads),
            position: self.position.init(n_heads, self.d_head(), device),
            n_heads,
            n_kv_heads,
            qk_norm: self.qk_norm,
            options: self.options.clone(),
        })
    }
}
