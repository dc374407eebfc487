//! The decoder model: tokens in, logits for the next token out.

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, module::embedding},
};
use headlight_attention::{AttentionOptions, ConfigError, Mask, MultiHeadAttentionConfig};

use crate::{
    Activation, AttentionSite, Block, BlockSite, FeedForward, NoProbe, Norm, NormKind, Probe, Site, block::normalize,
    initialize::initialize, probe::visit,
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
    /// The number of tokens.
    pub vocabulary: usize,
    /// The longest sequence.
    pub n_ctx: usize,
    /// The width of the residual stream.
    pub d_model: usize,
    /// The number of blocks.
    pub n_layers: usize,
    /// The number of heads in each block.
    pub n_heads: usize,
    /// The width of a head; `None`: `d_model / n_heads`.
    pub d_head: Option<usize>,
    /// Width and activation of the feed-forward; `None`: attention only.
    pub feed_forward: Option<(usize, Activation)>,
    /// The norm before each part.
    pub norm: NormKind,
    /// The number under the root of the norm that keeps it from dividing by 0.
    pub norm_epsilon: f64,
    /// Scale and softcap of the attention scores.
    pub attention: AttentionOptions,
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
            d_head: None,
            feed_forward: None,
            norm: NormKind::LayerNorm,
            norm_epsilon: 1e-5,
            attention: AttentionOptions::default(),
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
        let sizes = [("vocabulary", self.vocabulary), ("n_ctx", self.n_ctx), ("n_layers", self.n_layers)];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ConfigError::Zero { name });
        }
        if matches!(self.feed_forward, Some((0, _))) {
            return Err(ConfigError::Zero { name: "d_ff" });
        }
        self.attention_config().validate()
    }

    /// Builds the model on `device`. Every initial value is a function of `seed` and the parameter's path alone.
    ///
    /// # Errors
    /// If the numbers do not fit together.
    pub fn try_init(&self, seed: u64, device: &Device) -> Result<Decoder, ConfigError> {
        self.validate()?;
        let d_model = self.d_model;
        let norm = || self.norm.init(d_model, self.norm_epsilon, device);
        let matrix = |rows, columns| Param::from_tensor(Tensor::zeros([rows, columns], device));
        let blocks = (0..self.n_layers)
            .map(|_| {
                Ok(Block {
                    ln1: norm(),
                    attn: self.attention_config().try_init(device)?,
                    ln2: self.feed_forward.and_then(|_| norm()),
                    mlp: self
                        .feed_forward
                        .map(|(d_ff, activation)| FeedForward::new(d_model, d_ff, activation, device)),
                })
            })
            .collect::<Result<_, ConfigError>>()?;
        let decoder = Decoder {
            w_e: matrix(self.vocabulary, d_model),
            w_pos: matrix(self.n_ctx, d_model),
            blocks,
            ln_final: norm(),
            w_u: matrix(d_model, self.vocabulary),
        };
        Ok(initialize(decoder, seed, self.init_std))
    }

    fn attention_config(&self) -> MultiHeadAttentionConfig {
        let config = MultiHeadAttentionConfig::new(self.d_model, self.n_heads).with_options(self.attention.clone());
        match self.d_head {
            Some(d_head) => config.with_d_head(d_head),
            None => config,
        }
    }
}

/// A pre-norm decoder with learned positions: the residual stream starts as the token's embedding plus the
/// position's, each block adds to it, and the unembedding reads the sum.
#[derive(Module, Debug)]
pub struct Decoder {
    /// `W_E [vocabulary, d_model]`
    pub w_e: Param<Tensor<2>>,
    /// `W_pos [n_ctx, d_model]`
    pub w_pos: Param<Tensor<2>>,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// The norm before the unembedding.
    pub ln_final: Option<Norm>,
    /// `W_U [d_model, vocabulary]`
    pub w_u: Param<Tensor<2>>,
}

impl Decoder {
    /// Logits of the next token at every position.
    ///
    /// # Shapes
    /// - tokens: `[batch, pos]`
    /// - logits: `[batch, pos, vocabulary]`
    ///
    /// # Panics
    /// If there are more positions than `n_ctx`.
    #[must_use]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.forward_probed(tokens, &mut NoProbe)
    }

    /// [`forward`](Self::forward) with a probe at every site.
    ///
    /// # Panics
    /// If there are more positions than `n_ctx`.
    #[must_use]
    pub fn forward_probed<P: Probe>(&self, tokens: Tensor<2, Int>, probe: &mut P) -> Tensor<3> {
        let [_, n_pos] = tokens.dims();
        assert!(n_pos <= self.n_ctx(), "{n_pos} positions do not fit into n_ctx {}", self.n_ctx());
        let embed = visit(probe, Site::Embed, embedding(self.w_e.val(), tokens));
        let pos_embed = self.w_pos.val().narrow(0, 0, n_pos).unsqueeze::<3>().expand(embed.dims());
        let mut x = embed + visit(probe, Site::PosEmbed, pos_embed);

        let mask = Mask::causal();
        for (layer, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, &mask, layer, probe);
        }
        normalize(self.ln_final.as_ref(), x, Site::LnFinal, probe).matmul(self.w_u.val().unsqueeze())
    }

    /// The longest sequence.
    #[must_use]
    pub fn n_ctx(&self) -> usize {
        self.w_pos.dims()[0]
    }

    /// The number of tokens.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.w_e.dims()[0]
    }

    /// The number of heads in each block.
    #[must_use]
    pub fn n_heads(&self) -> usize {
        self.blocks.first().map_or(0, |block| block.attn.n_heads())
    }

    /// Every site this model has.
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        let mut sites = Site::outside_blocks();
        for layer in 0..self.blocks.len() {
            sites.extend(Site::of_block(layer));
        }
        sites.retain(|&site| self.has(site));
        sites
    }

    /// Whether `site` is part of this model.
    #[must_use]
    pub fn has(&self, site: Site) -> bool {
        let block = |layer: usize| self.blocks.get(layer);
        match site {
            Site::Embed | Site::PosEmbed => true,
            Site::Block(layer, BlockSite::MlpOut | BlockSite::ResidMid) | Site::Mlp(layer, _) => {
                block(layer).is_some_and(|block| block.mlp.is_some())
            }
            Site::Block(layer, _) | Site::Attention(layer, _) => block(layer).is_some(),
            Site::Ln1(layer, _) => block(layer).is_some_and(|block| block.ln1.is_some()),
            Site::Ln2(layer, _) => block(layer).is_some_and(|block| block.ln2.is_some()),
            Site::LnFinal(_) => self.ln_final.is_some(),
        }
    }

    /// The sites of every head's pattern, first layer first.
    #[must_use]
    pub fn pattern_sites(&self) -> Vec<Site> {
        (0..self.blocks.len()).map(|layer| Site::Attention(layer, AttentionSite::Pattern)).collect()
    }
}
