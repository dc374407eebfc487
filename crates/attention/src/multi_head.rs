//! Several heads side by side: project, attend, merge.

use burn::{
    module::{Module, Param},
    nn::{Linear, RmsNorm},
    tensor::Tensor,
};
use headlight_ops::{apply, linear};

use crate::{
    AttentionOptions, Dropout, Mask, PositionScheme, QkNorm, attention, attention_weights,
    attention_with_dropout,
};

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2): each head looks in its own subspace.
/// Should be created with [`MultiHeadAttentionConfig`](crate::MultiHeadAttentionConfig).
///
/// `w_q`, `w_k`, `w_v`, `w_o` are the parameters. [`project`](Self::project) computes the activations
/// Q, K, V. Column block `h` of `w_q` and row block `h` of `w_o` belong to head `h`.
///
/// [`forward`](Self::forward) is `merge(attend(project(x, x, x), mask))`. Call these three steps one
/// by one to read or change an activation between them.
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
    /// Normalises each query, if QK-norm is on.
    pub q_norm: Option<RmsNorm>,
    /// Normalises each key, if QK-norm is on.
    pub k_norm: Option<RmsNorm>,
    /// The position scheme, if there is one.
    pub position: Option<PositionScheme>,
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    #[module(skip)]
    pub(crate) qk_norm: QkNorm,
    #[module(skip)]
    pub(crate) options: AttentionOptions,
}

/// What the heads of a projection read.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made in a pass through a layer, and none is kept"
)]
pub enum HeadInputs {
    /// All of them the same, `[batch, seq, d_model]`.
    Shared(Tensor<3>),
    /// Each head its own, `[batch, seq, d_model]`, in the order of the heads.
    ByHead(Vec<Tensor<3>>),
}

impl From<Tensor<3>> for HeadInputs {
    fn from(x: Tensor<3>) -> Self {
        Self::Shared(x)
    }
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
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::{Mask, MultiHeadAttentionConfig};
    /// let device = Device::flex();
    /// let mut attention = MultiHeadAttentionConfig::new(1, 1).try_init(&device)?;
    /// attention.w_q.weight = Param::from_tensor(Tensor::zeros([1, 1], &device)); // every key matches equally
    /// attention.w_v.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
    /// attention.w_o.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
    /// let x = Tensor::<3>::from_floats([[[1.0], [3.0], [8.0]]], &device);
    /// let means = attention.forward(x, &Mask::causal()).into_data().to_vec::<f32>().unwrap();
    /// assert!(means.iter().zip([1.0, 2.0, 4.0]).all(|(a, b)| (a - b).abs() < 1e-6)); // of all tokens so far
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn forward(&self, x: Tensor<3>, mask: &Mask) -> Tensor<3> {
        self.merge(self.attend_to_self(x, mask, None))
    }

    /// Self-attention in a training step that drops attention weights.
    ///
    /// Only this call drops anything: neither the module nor its configuration knows a probability.
    ///
    /// # Shapes
    /// As [`forward`](Self::forward).
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::{Dropout, DropoutKey, Mask, MultiHeadAttentionConfig};
    /// # let device = Device::flex();
    /// # let mut attention = MultiHeadAttentionConfig::new(1, 1).init(&device);
    /// # for projection in [&mut attention.w_v, &mut attention.w_o] {
    /// #     projection.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
    /// # }
    /// // W_V = W_O = 1, and one token of 3, so the only weight is 1.
    /// let x = Tensor::<3>::from_floats([[[3.0]]], &device);
    /// let dropout = Dropout::new(0.5, DropoutKey { step: 1, ..DropoutKey::default() });
    /// let y = attention.forward_with_dropout(x.clone(), &Mask::none(), &dropout);
    /// assert!([0.0, 6.0].contains(&y.into_scalar::<f32>())); // dropped, or kept and doubled
    /// assert_eq!(attention.forward(x, &Mask::none()).into_scalar::<f32>(), 3.0);
    /// ```
    #[must_use]
    pub fn forward_with_dropout(&self, x: Tensor<3>, mask: &Mask, dropout: &Dropout) -> Tensor<3> {
        self.merge(self.attend_to_self(x, mask, Some(dropout)))
    }

    /// Self-attention and each head's weights. The output has the same bits as that of
    /// [`forward`](Self::forward).
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
        let weights = self.weights(heads.clone(), mask);
        (self.merge(self.attend(heads, mask)), weights)
    }

    /// Cross-attention: queries from `x`, keys and values from `context`.
    ///
    /// # Shapes
    /// - x, output: `[batch, queries, d_model]`
    /// - context: `[batch, keys, d_context]`
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::{Mask, MultiHeadAttentionConfig};
    /// # let device = Device::flex();
    /// # let mut attention = MultiHeadAttentionConfig::new(1, 1).try_init(&device)?;
    /// # for projection in [&mut attention.w_q, &mut attention.w_k, &mut attention.w_v, &mut attention.w_o] {
    /// #     projection.weight = Param::from_tensor(Tensor::ones([1, 1], &device));
    /// # }
    /// // All projections 1: a query of 0 takes the mean of the context.
    /// let x = Tensor::<3>::from_floats([[[0.0]]], &device);
    /// let context = Tensor::<3>::from_floats([[[1.0], [3.0]]], &device);
    /// assert_eq!(attention.cross(x, context, &Mask::none()).into_scalar::<f32>(), 2.0);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn cross(&self, x: Tensor<3>, context: Tensor<3>, mask: &Mask) -> Tensor<3> {
        self.merge(self.attend(self.project(x, context.clone(), context), mask))
    }

    /// Computes `Q = x_q·W_Q`, `K = x_k·W_K`, `V = x_v·W_V` and splits them into heads. QK-norm comes
    /// later, in [`with_positions`](Self::with_positions). An input may be one for each head
    /// ([`HeadInputs::ByHead`]): `Q_h = x_q[h]·W_Q[h]`.
    ///
    /// # Shapes
    /// - `x_q`: `[batch, queries, d_model]`; `x_k`, `x_v`: `[batch, keys, d_context]`
    /// - output: [`Heads`]
    ///
    /// # Panics
    /// If an input is not as wide as its projection, or there are not as many inputs as heads.
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::MultiHeadAttentionConfig;
    /// let device = Device::flex();
    /// let mut attention = MultiHeadAttentionConfig::new(2, 2).try_init(&device)?;
    /// attention.w_q.weight = Param::from_tensor(Tensor::from_floats([[1.0, 0.0], [10.0, 1.0]], &device)); // a column a head
    /// let x = Tensor::<3>::from_floats([[[3.0, 4.0]]], &device);
    /// let heads = attention.project(x.clone(), x.clone(), x);
    /// assert_eq!(heads.q.dims(), [1, 2, 1, 1]);
    /// assert_eq!(heads.q.into_data().to_vec::<f32>().unwrap(), [43.0, 4.0]);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn project(
        &self,
        x_q: impl Into<HeadInputs>,
        x_k: impl Into<HeadInputs>,
        x_v: impl Into<HeadInputs>,
    ) -> Heads {
        Heads {
            q: project(x_q.into(), &self.w_q, self.n_heads),
            k: project(x_k.into(), &self.w_k, self.n_kv_heads),
            v: project(x_v.into(), &self.w_v, self.n_kv_heads),
        }
    }

    /// Each head's weighted sum of values, `z = softmax(Q·Kᵀ·scale + mask)·V`, with QK-norm and
    /// positions.
    ///
    /// # Shapes
    /// - z: `[batch, n_heads, queries, d_value]`
    ///
    /// # Panics
    /// If the shapes do not belong together.
    #[must_use]
    pub fn attend(&self, heads: Heads, mask: &Mask) -> Tensor<4> {
        let (heads, mask) = self.with_positions(heads, mask);
        attention(heads.q, heads.k, heads.v, &mask, &self.options)
    }

    /// [`attend`](Self::attend) in a training step that drops attention weights.
    ///
    /// # Shapes
    /// As [`attend`](Self::attend).
    ///
    /// # Panics
    /// As [`attend`](Self::attend).
    #[must_use]
    pub fn attend_with_dropout(&self, heads: Heads, mask: &Mask, dropout: &Dropout) -> Tensor<4> {
        let (heads, mask) = self.with_positions(heads, mask);
        attention_with_dropout(heads.q, heads.k, heads.v, &mask, &self.options, dropout)
    }

    /// [`project`](Self::project) and [`attend`](Self::attend) of sequences that attend to
    /// themselves, with the same numbers. Where neither QK-norm nor a position scheme comes between,
    /// they are one operation.
    ///
    /// # Shapes
    /// - x: `[batch, seq, d_model]`
    /// - z: `[batch, n_heads, seq, d_value]`
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[must_use]
    pub fn attend_to_self(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        dropout: Option<&Dropout>,
    ) -> Tensor<4> {
        #[cfg(feature = "flex")]
        if self.q_norm.is_none()
            && self.k_norm.is_none()
            && self.position.is_none()
            && let Some(z) = self.projected(&x, mask, dropout)
        {
            return z;
        }
        let heads = self.project(x.clone(), x.clone(), x);
        match dropout {
            Some(dropout) => self.attend_with_dropout(heads, mask, dropout),
            None => self.attend(heads, mask),
        }
    }

    /// Projections and attention by the kernel, where it applies.
    #[cfg(feature = "flex")]
    fn projected(
        &self,
        x: &Tensor<3>,
        mask: &Mask,
        dropout: Option<&Dropout>,
    ) -> Option<Tensor<4>> {
        let [batch, seq, width] = x.dims();
        let projections = [&self.w_q, &self.w_k, &self.w_v];
        let fits = |projection: &&Linear| projection.weight.dims()[0] == width;
        let shape = crate::score_shape::ScoreShape {
            batch,
            heads: self.n_heads,
            queries: seq,
            keys: seq,
        };
        projections.iter().all(fits).then_some(())?;
        let options = &self.options;
        crate::kernel::projected_attention(
            x,
            projections,
            self.n_kv_heads,
            mask,
            options,
            dropout,
            &shape,
        )
    }

    /// Each head's attention weights, before dropout.
    ///
    /// # Shapes
    /// - weights: `[batch, n_heads, queries, keys]`
    ///
    /// # Panics
    /// If the shapes do not belong together.
    #[must_use]
    pub fn weights(&self, heads: Heads, mask: &Mask) -> Tensor<4> {
        let (heads, mask) = self.with_positions(heads, mask);
        attention_weights(heads.q, heads.k, &mask, &self.options)
    }

    /// Prepares queries and keys for their product: QK-norm, if it is on, then the position scheme,
    /// which rotates them or adds a bias to the mask.
    ///
    /// A computation of the equation by hand (scores, weights, sum) starts from the output.
    #[must_use]
    pub fn with_positions(&self, heads: Heads, mask: &Mask) -> (Heads, Mask) {
        let heads = self.normalize(heads);
        let Some(scheme) = &self.position else {
            return (heads, mask.clone());
        };
        let positions = mask.positions_for(heads.q.dims()[2], heads.k.dims()[2]);
        let device = heads.q.device();
        let lengths = positions.lengths();
        let heads = Heads {
            q: scheme.rotate_within(heads.q, positions.query_rows(), &lengths),
            k: scheme.rotate_within(heads.k, &positions.key_rows(), &lengths),
            v: heads.v,
        };
        (heads, add_bias(mask, scheme.bias(&positions, &device)))
    }

    /// QK-norm, if it is on.
    pub(crate) fn normalize(&self, heads: Heads) -> Heads {
        Heads {
            q: self.qk_norm.apply(self.q_norm.as_ref(), heads.q),
            k: self.qk_norm.apply(self.k_norm.as_ref(), heads.k),
            v: heads.v,
        }
    }

    /// What QK-norm multiplies the components of these queries and keys with, if it is on: the gain
    /// over the root mean square. With these factors held, a query is the sum of what its parts
    /// become.
    ///
    /// # Shapes
    /// - heads: as [`project`](Self::project) makes them
    /// - factors, of queries and of keys: `[batch, n_heads, queries, d_head]`, `[batch, n_kv_heads,
    ///   keys, d_head]`
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, Tolerance};
    /// use headlight_attention::{Heads, MultiHeadAttentionConfig, Mask, QkNorm};
    ///
    /// let device = Device::flex();
    /// let attention = MultiHeadAttentionConfig::new(2, 1).with_qk_norm(QkNorm::EachHead).try_init(&device)?;
    /// let q = Tensor::<4>::from_floats([[[[1.0, 7.0]]]], &device); // root mean square 5
    /// let heads = Heads { q: q.clone(), k: q.clone(), v: q.clone() };
    /// let [factors, _] = attention.qk_norm_factors(&heads).unwrap();
    /// factors.clone().into_data().assert_approx_eq::<f32>(&[[[[0.2, 0.2]]]].into(), Tolerance::absolute(1e-6));
    /// let (normalised, _) = attention.with_positions(heads, &Mask::none());
    /// (q * factors).into_data().assert_approx_eq::<f32>(&normalised.q.into_data(), Tolerance::absolute(1e-6));
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn qk_norm_factors(&self, heads: &Heads) -> Option<[Tensor<4>; 2]> {
        let (q_norm, k_norm) = (self.q_norm.as_ref()?, self.k_norm.as_ref()?);
        Some([
            self.qk_norm.factors(q_norm, heads.q.clone()),
            self.qk_norm.factors(k_norm, heads.k.clone()),
        ])
    }

    /// Concatenates the heads and multiplies them by `W_O`: `Σ_h z_h·W_O[h]`, plus the bias.
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
        apply(
            &self.w_o,
            z.swap_dims(1, 2) // [batch, queries, n_heads, d_value]
                .reshape([batch, queries, width]), // [batch, queries, n_heads · d_value]
        ) // [batch, queries, d_model]
    }

    /// Computes the result that each head adds to the stream, `z_h·W_O[h]`. The sum of the results
    /// plus the bias of `W_O` is the output of [`merge`](Self::merge).
    ///
    /// # Shapes
    /// - z: `[batch, n_heads, queries, d_value]`
    /// - results: `[batch, n_heads, queries, d_model]`
    ///
    /// ```
    /// # use burn::{module::Param, tensor::{Device, Tensor}};
    /// # use headlight_attention::MultiHeadAttentionConfig;
    /// let device = Device::flex();
    /// let mut attention = MultiHeadAttentionConfig::new(2, 2).try_init(&device)?;
    /// attention.w_o.weight = Param::from_tensor(Tensor::from_floats([[1.0, 2.0], [3.0, 4.0]], &device)); // a row a head
    /// let z = Tensor::<4>::from_floats([[[[10.0]], [[1.0]]]], &device);
    /// let results = attention.results(z.clone()).into_data().to_vec::<f32>().unwrap();
    /// assert_eq!(results, [10.0, 20.0, 3.0, 4.0]);
    /// assert_eq!(attention.merge(z).into_data().to_vec::<f32>().unwrap(), [13.0, 24.0]);
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn results(&self, z: Tensor<4>) -> Tensor<4> {
        let [width, d_model] = self.w_o.weight.dims();
        let per_head =
            self.w_o
                .weight
                .val()
                .reshape([1, self.n_heads, width / self.n_heads, d_model]);
        z.matmul(per_head) // [batch, n_heads, queries, d_model]
    }

    /// The number of query heads.
    #[must_use]
    pub fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// The number of key/value heads.
    #[must_use]
    pub fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    /// Scale and softcap of the scores.
    #[must_use]
    pub fn options(&self) -> &AttentionOptions {
        &self.options
    }
}

/// `x·W + b`, split into heads: `[batch, n_heads, seq, width / n_heads]`.
fn project(inputs: HeadInputs, projection: &Linear, n_heads: usize) -> Tensor<4> {
    let [width_in, width] = projection.weight.dims();
    let d_head = width / n_heads;
    let check = |x: &Tensor<3>| {
        assert_eq!(
            x.dims()[2],
            width_in,
            "a projection of [{width_in}, {width}] got an input of shape {:?}",
            x.dims()
        );
    };
    match inputs {
        HeadInputs::Shared(x) => {
            check(&x);
            let [batch, seq, _] = x.dims();
            apply(projection, x) // [batch, seq, n_heads · d_head]
                .reshape([batch, seq, n_heads, d_head]) // [batch, seq, n_heads, d_head]
                .swap_dims(1, 2) // [batch, n_heads, seq, d_head]
        }
        HeadInputs::ByHead(inputs) => {
            assert_eq!(
                inputs.len(),
                n_heads,
                "inputs (left) for heads (right) of a projection"
            );
            let weight = projection.weight.val();
            let bias = projection.bias.as_ref().map(Param::val);
            let of_head = |(head, x): (usize, Tensor<3>)| {
                check(&x);
                let weight = weight.clone().narrow(1, head * d_head, d_head);
                let bias = bias.clone().map(|b| b.narrow(0, head * d_head, d_head));
                linear(x, weight, bias) // [batch, seq, d_head]
            };
            let heads = inputs.into_iter().enumerate().map(of_head).collect();
            Tensor::stack(heads, 1) // [batch, n_heads, seq, d_head]
        }
    }
}

/// Adds a position scheme's bias to the mask.
pub(crate) fn add_bias(mask: &Mask, bias: Option<Tensor<4>>) -> Mask {
    match bias {
        Some(bias) => mask.and(Mask::bias(bias)),
        None => mask.clone(),
    }
}
