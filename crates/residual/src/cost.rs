//! The costs of each part of a model: parameters and floating-point operations.

use headlight_attention::QkNorm;

use crate::{DecoderConfig, NormKind, NormPlacement, Positions};

/// Parameters and work of one part, all layers together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartCost {
    /// The part.
    pub part: &'static str,
    /// Its parameters.
    pub parameters: usize,
    /// Floating-point operations of its matrix products in a forward pass, for one token of a full
    /// context; a multiplication and the following addition are two operations.
    pub flops_per_token: f64,
}

impl DecoderConfig {
    /// The costs of each part, in the order in which a token meets them. Absent parts are omitted.
    ///
    /// A matrix of `p` parameters takes `2p` operations a token. Scores and the weighted sum take
    /// `2·d_head` operations each for every head and every visible key. In a causal context of T
    /// tokens, a token sees (T + 1)/2 keys on average, and fewer with a window.
    ///
    /// ```
    /// use headlight_residual::DecoderConfig;
    ///
    /// let config = DecoderConfig { vocabulary: 10, n_ctx: 3, d_model: 4, n_layers: 1, n_heads: 2, ..Default::default() };
    /// let costs: Vec<_> = config.costs().iter().map(|cost| (cost.part, cost.parameters, cost.flops_per_token)).collect();
    /// assert_eq!(costs, [
    ///     ("embedding", 40, 0.0),
    ///     ("positions", 12, 0.0),
    ///     ("attention projections", 64, 128.0), // 4 matrices of 4·4
    ///     ("scores and blend", 0, 32.0),        // 2·2 operations for 2 heads of 2 components and 2 keys, twice
    ///     ("norms", 16, 0.0),
    ///     ("unembedding", 40, 80.0),
    /// ]);
    /// ```
    #[must_use]
    pub fn costs(&self) -> Vec<PartCost> {
        let Self {
            vocabulary,
            n_ctx,
            d_model,
            n_layers,
            n_heads,
            ..
        } = *self;
        let (d_head, n_kv_heads) = (self.d_head(), self.n_kv_heads());
        let cost = |part, parameters, flops: usize| PartCost {
            part,
            parameters,
            flops_per_token: flops as f64,
        };

        let projections = 2 * d_model * d_head * (n_heads + n_kv_heads);
        let bias = self.attention_bias;
        let projection_biases = [
            (bias.query, d_head * n_heads),
            (bias.key, d_head * n_kv_heads),
            (bias.value, d_head * n_kv_heads),
            (bias.output, d_model),
        ];
        let projection_biases = projection_biases
            .into_iter()
            .filter(|(is_there, _)| *is_there);
        let projection_biases: usize = projection_biases.map(|(_, width)| width).sum();
        let qk_norms = match self.qk_norm {
            QkNorm::None => 0,
            QkNorm::EachHead => 2 * d_head,
            QkNorm::AllHeads => d_head * (n_heads + n_kv_heads),
        };
        let (matrices, biases) = match self.feed_forward {
            None => (0, 0),
            Some((d_ff, kind)) if kind.is_gated() => (3 * d_model * d_ff, 2 * d_ff + d_model),
            Some((d_ff, _)) => (2 * d_model * d_ff, d_ff + d_model),
        };
        let biases = if self.feed_forward_bias { biases } else { 0 };
        let norm = match self.norm {
            NormKind::LayerNorm => 2 * d_model,
            NormKind::RmsNorm => d_model,
            NormKind::None => 0,
        };
        let norms_of_part = match self.norm_placement {
            NormPlacement::Pre | NormPlacement::Post | NormPlacement::Output => 1,
            NormPlacement::PreAndOutput => 2,
        };
        let norms = n_layers * norms_of_part * (1 + usize::from(self.feed_forward.is_some()))
            + usize::from(self.norm_placement != NormPlacement::Post);
        let positions = if self.positions == Positions::Learned {
            n_ctx * d_model
        } else {
            0
        };
        let unembedding = d_model * vocabulary;
        let costs = [
            cost("embedding", vocabulary * d_model, 0),
            cost("positions", positions, 0),
            cost(
                "attention projections",
                n_layers * (projections + projection_biases),
                n_layers * 2 * projections,
            ),
            PartCost {
                part: "scores and blend",
                parameters: 0,
                flops_per_token: (n_layers * n_heads * 4 * d_head) as f64 * self.mean_keys(),
            },
            cost(
                "feed-forward",
                n_layers * (matrices + biases),
                n_layers * 2 * matrices,
            ),
            cost("norms", norms * norm + n_layers * qk_norms, 0),
            cost(
                "unembedding",
                if self.tied_embedding { 0 } else { unembedding },
                2 * unembedding,
            ),
        ];
        costs
            .into_iter()
            .filter(|cost| cost.parameters > 0 || cost.flops_per_token > 0.0)
            .collect()
    }

    /// All parameters; a tied unembedding counts once.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.costs().iter().map(|cost| cost.parameters).sum()
    }

    /// The mean number of keys that a token of a full context sees, over layers.
    #[must_use]
    pub fn mean_keys(&self) -> f64 {
        let of_layer = |layer| {
            let window = self.window_of(layer).unwrap_or(self.n_ctx).min(self.n_ctx);
            // The first tokens see 1, 2, …, window keys. Each later token sees window keys.
            window * (window + 1) / 2 + (self.n_ctx - window) * window
        };
        let seen: usize = (0..self.n_layers).map(of_layer).sum();
        seen as f64 / (self.n_layers * self.n_ctx) as f64
    }
}
