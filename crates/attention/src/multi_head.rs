//! Several heads side by side: project, attend, merge.

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};

use crate::{AttentionOptions, ConfigError, Mask, attention, attention_weights};

/// Sizes and options of [`MultiHeadAttention`].
///
/// ```
/// use headlight_attention::MultiHeadAttentionConfig;
///
/// let config = MultiHeadAttentionConfig::new(64, 4);
/// assert_eq!(config.d_head(), 16);
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
    /// Whether the four projections have a bias.
    pub bias: bool,
    /// Scale and softcap of the scores.
    pub options: AttentionOptions,
}

impl MultiHeadAttentionConfig {
    /// `n_heads` heads of width `d_model / n_heads`, without bias.
    #[must_use]
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self {
            d_model,
            n_heads,
            n_kv_heads: None,
            d_head: None,
            d_value: None,
            bias: false,
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

    /// Gives the projections a bias, or none.
    #[must_use]
    pub fn with_bias(mut self, bias: bool) -> Self {
        self.bias = bias;
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

    /// Checks that the numbers fit together.
    ///
    /// # Errors
    /// Names the numbers that do not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_sizes(&[
            ("d_model", self.d_model),
            ("n_heads", self.n_heads),
            ("n_kv_heads", self.n_kv_heads()),
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
        Ok(())
    }

    /// Builds the module on `device`.
    ///
    /// # Errors
    /// If the numbers do not fit together, see [`validate`](Self::validate).
    pub fn try_init(&self, device: &Device) -> Result<MultiHeadAttention, ConfigError> {
        self.validate()?;
        let linear = |input, output| LinearConfig::new(input, output).with_bias(self.bias).init(device);
        let (n_heads, n_kv_heads) = (self.n_heads, self.n_kv_heads());
        Ok(MultiHeadAttention {
            w_q: linear(self.d_model, n_heads * self.d_head()),
            w_k: linear(self.d_model, n_kv_heads * self.d_head()),
            w_v: linear(self.d_model, n_kv_heads * self.d_value()),
            w_o: linear(n_heads * self.d_value(), self.d_model),
            n_heads,
            n_kv_heads,
            options: self.options.clone(),
        })
    }
}

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2): each head looks in its own subspace.
///
/// `w_q`, `w_k`, `w_v`, `w_o` are the parameters; what [`project`](Self::project) makes of an input are the
/// activations Q, K, V. Column block `h` of `w_q` belongs to head `h`, row block `h` of `w_o` too.
///
/// [`forward`](Self::forward) is three steps, and whoever wants to look at something or change it calls them one
/// by one: `merge(attend(project(x, x, x), mask))`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use headlight_attention::{Mask, MultiHeadAttentionConfig};
///
/// let device = Device::flex();
/// let attention = MultiHeadAttentionConfig::new(8, 2).try_init(&device)?;
/// let x = Tensor::<3>::ones([1, 3, 8], &device);
/// let (y, weights) = attention.forward_with_weights(x, &Mask::causal());
/// assert_eq!(y.dims(), [1, 3, 8]);
/// // Equal tokens match equally: the last of three takes a third from each.
/// let weights = weights.into_data().to_vec::<f32>().unwrap();
/// assert!(weights[6..9].iter().all(|weight| (weight - 1.0 / 3.0).abs() < 1e-6));
/// # Ok::<(), headlight_attention::ConfigError>(())
/// ```
#[derive(Module, Debug)]
pub struct MultiHeadAttention {
    /// `W_Q [d_model, n_heads · d_head]`
    pub w_q: Linear,
    /// `W_K [d_model, n_kv_heads · d_head]`
    pub w_k: Linear,
    /// `W_V [d_model, n_kv_heads · d_value]`
    pub w_v: Linear,
    /// `W_O [n_heads · d_value, d_model]`
    pub w_o: Linear,
    n_heads: usize,
    n_kv_heads: usize,
    #[module(skip)]
    options: AttentionOptions,
}

/// The activations Q, K, V, split into heads.
#[derive(Debug, Clone)]
pub struct Heads {
    /// `[batch, n_heads, queries, d_head]`
    pub q: Tensor<4>,
    /// `[batch, n_kv_heads, keys, d_head]`
    pub k: Tensor<4>,
    /// `[batch, n_kv_heads, keys, d_value]`
    pub v: Tensor<4>,
}

impl MultiHeadAttention {
    /// Self-attention.
    ///
    /// # Shapes
    /// - x, output: `[batch, seq, d_model]`
    ///
    /// # Panics
    /// If `x` is not `d_model` wide or the mask is for another shape.
    #[must_use]
    pub fn forward(&self, x: Tensor<3>, mask: &Mask) -> Tensor<3> {
        self.merge(self.attend(self.project(x.clone(), x.clone(), x), mask))
    }

    /// Self-attention, and beside it each head's weights; the output has the same bits as [`forward`](Self::forward)'s.
    ///
    /// # Shapes
    /// - x, output: `[batch, seq, d_model]`
    /// - weights: `[batch, n_heads, seq, seq]`
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[must_use]
    pub fn forward_with_weights(&self, x: Tensor<3>, mask: &Mask) -> (Tensor<3>, Tensor<4>) {
        let heads = self.project(x.clone(), x.clone(), x);
        let weights = attention_weights(heads.q.clone(), heads.k.clone(), mask, &self.options);
        (self.merge(self.attend(heads, mask)), weights)
    }

    /// Cross-attention: queries from `x`, keys and values from `context`.
    ///
    /// # Shapes
    /// - x, output: `[batch, queries, d_model]`
    /// - context: `[batch, keys, d_model]`
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[must_use]
    pub fn cross(&self, x: Tensor<3>, context: Tensor<3>, mask: &Mask) -> Tensor<3> {
        self.merge(self.attend(self.project(x, context.clone(), context), mask))
    }

    /// `Q = x_q·W_Q`, `K = x_k·W_K`, `V = x_v·W_V`, split into heads.
    ///
    /// # Shapes
    /// - `x_q`: `[batch, queries, d_model]`; `x_k`, `x_v`: `[batch, keys, d_model]`
    ///
    /// # Panics
    /// If an input is not `d_model` wide.
    #[must_use]
    pub fn project(&self, x_q: Tensor<3>, x_k: Tensor<3>, x_v: Tensor<3>) -> Heads {
        let project = |x: Tensor<3>, weight: &Linear, n_heads: usize| {
            let [d_model, width] = weight.weight.dims();
            let [batch, seq, x_width] = x.dims();
            assert_eq!(x_width, d_model, "attention of d_model {d_model} got an input of shape {:?}", x.dims());
            weight.forward(x).reshape([batch, seq, n_heads, width / n_heads]).swap_dims(1, 2)
        };
        Heads {
            q: project(x_q, &self.w_q, self.n_heads),
            k: project(x_k, &self.w_k, self.n_kv_heads),
            v: project(x_v, &self.w_v, self.n_kv_heads),
        }
    }

    /// Each head's blend of values, `z = softmax(Q·Kᵀ·scale + mask)·V`.
    ///
    /// # Shapes
    /// - z: `[batch, n_heads, queries, d_value]`
    ///
    /// # Panics
    /// If the shapes do not belong together.
    #[must_use]
    pub fn attend(&self, heads: Heads, mask: &Mask) -> Tensor<4> {
        attention(heads.q, heads.k, heads.v, mask, &self.options)
    }

    /// The heads side by side times `W_O`: `Σ_h z_h·W_O[h]` (plus the bias).
    ///
    /// # Shapes
    /// - z: `[batch, n_heads, queries, d_value]`
    /// - output: `[batch, queries, d_model]`
    ///
    /// # Panics
    /// If `z` has not `n_heads` heads of the right width.
    #[must_use]
    pub fn merge(&self, z: Tensor<4>) -> Tensor<3> {
        let [batch, heads, queries, d_value] = z.dims();
        let [width, d_model] = self.w_o.weight.dims();
        assert!(
            heads == self.n_heads && heads * d_value == width,
            "W_O [{width}, {d_model}] takes {} heads of width {}, not z of shape {:?}",
            self.n_heads,
            width / self.n_heads,
            z.dims()
        );
        self.w_o.forward(z.swap_dims(1, 2).reshape([batch, queries, width]))
    }

    /// What each head writes, `z_h·W_O[h]`; their sum plus the bias of `W_O` is [`merge`](Self::merge)'s output.
    ///
    /// # Shapes
    /// - z: `[batch, n_heads, queries, d_value]`
    /// - results: `[batch, n_heads, queries, d_model]`
    #[must_use]
    pub fn results(&self, z: Tensor<4>) -> Tensor<4> {
        let [width, d_model] = self.w_o.weight.dims();
        let per_head = self.w_o.weight.val().reshape([1, self.n_heads, width / self.n_heads, d_model]);
        z.matmul(per_head)
    }

    /// The number of query heads.
    #[must_use]
    pub fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// Scale and softcap of the scores.
    #[must_use]
    pub fn options(&self) -> &AttentionOptions {
        &self.options
    }
}
