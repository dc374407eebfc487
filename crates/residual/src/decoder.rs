//! The decoder model: tokens in, logits for the next token out.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor, module::embedding},
};
use headlight_attention::{Dropout, KvCache, Mask};
use headlight_ops::linear;

use crate::{
    AttentionSite, Block, BlockSite, DecoderConfig, FeedForward, MlpSite, NoProbe, Norm, Positions,
    Probe, Site, block::normalize, positions::sinusoids, probe::visit,
};

/// A decoder. The residual stream starts as the token's embedding, plus the position's embedding if
/// the model has one. Each block adds to the stream, and the unembedding reads the sum.
#[derive(Module, Debug)]
pub struct Decoder {
    /// `W_E [vocabulary, d_model]`
    pub w_e: Param<Tensor<2>>,
    /// `W_pos [n_ctx, d_model]`, if positions are learned.
    pub w_pos: Option<Param<Tensor<2>>>,
    /// The blocks, first to last.
    pub blocks: Vec<Block>,
    /// The norm before the unembedding, in a pre-norm model.
    pub ln_final: Option<Norm>,
    /// `W_U [d_model, vocabulary]`; `None`: the transposed embedding.
    pub w_u: Option<Param<Tensor<2>>>,
    /// `b_U [vocabulary]`, only after a norm's bias was folded into it.
    pub b_u: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub(crate) config: DecoderConfig,
}

impl Decoder {
    /// Logits of the next token at every position.
    ///
    /// # Shapes
    /// - tokens: `[batch, pos]`
    /// - logits: `[batch, pos, vocabulary]`
    ///
    /// # Panics
    /// If positions are learned and there are more than `n_ctx`.
    #[must_use]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.forward_probed(tokens, &mut NoProbe)
    }

    /// [`forward`](Self::forward) with a probe at every site.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[must_use]
    pub fn forward_probed<P: Probe>(&self, tokens: Tensor<2, Int>, probe: &mut P) -> Tensor<3> {
        let mut x = self.embed(tokens, 0, probe);
        let mask = self.mask();
        for (layer, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, &mask, layer, probe);
        }
        self.unembed(x, probe)
    }

    /// [`forward_probed`](Self::forward_probed) in a training step that drops attention weights.
    /// Layer `l` drops by the key of site `dropout.site() + l`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward), and if the probe wants to change scores or a pattern.
    #[must_use]
    pub fn forward_with_dropout<P: Probe>(
        &self,
        tokens: Tensor<2, Int>,
        dropout: &Dropout,
        probe: &mut P,
    ) -> Tensor<3> {
        let mut x = self.embed(tokens, 0, probe);
        let mask = self.mask();
        for (layer, block) in self.blocks.iter().enumerate() {
            let dropout = dropout.at_site(dropout.site() + layer as u64);
            x = block.forward_with_dropout(x, &mask, layer, &dropout, probe);
        }
        self.unembed(x, probe)
    }

    /// Logits of new tokens only. They also see the earlier tokens in the caches, one cache for
    /// each block ([`caches`](Self::caches)).
    ///
    /// # Shapes
    /// - tokens: `[batch, new]`
    /// - logits: `[batch, new, vocabulary]`
    ///
    /// # Panics
    /// If positions are learned and there are more than `n_ctx`, or a cache is full.
    #[must_use]
    pub fn forward_cached(&self, tokens: Tensor<2, Int>, caches: &mut [KvCache]) -> Tensor<3> {
        let seen = caches
            .first()
            .and_then(|cache| cache.lengths().first().copied())
            .unwrap_or(0);
        let mut x = self.embed(tokens, seen, &mut NoProbe);
        let mask = self.mask();
        for (block, cache) in self.blocks.iter().zip(caches) {
            x = block.forward_cached(x, &mask, cache);
        }
        self.unembed(x, &mut NoProbe)
    }

    /// Empty caches for up to `capacity` tokens; with a sliding window, for any number.
    #[must_use]
    pub fn caches(&self, capacity: usize) -> Vec<KvCache> {
        let cache = || {
            self.config
                .window
                .map_or_else(|| KvCache::with_capacity(capacity), KvCache::rolling)
        };
        self.blocks.iter().map(|_| cache()).collect()
    }

    /// The stream before the first block, for tokens at positions `first ..`.
    fn embed<P: Probe>(&self, tokens: Tensor<2, Int>, first: usize, probe: &mut P) -> Tensor<3> {
        let [_, new] = tokens.dims();
        let embed = visit(probe, Site::Embed, embedding(self.w_e.val(), tokens));
        let vectors = match (&self.w_pos, self.config.positions) {
            (Some(w_pos), _) => {
                let n_ctx = w_pos.dims()[0];
                assert!(
                    first + new <= n_ctx,
                    "{} positions do not fit into n_ctx {n_ctx}",
                    first + new
                );
                w_pos.val().narrow(0, first, new)
            }
            (None, Positions::Sinusoidal) => {
                sinusoids(first..first + new, self.config.d_model, &embed.device())
            }
            (None, _) => return embed,
        };
        let pos_embed = vectors.unsqueeze::<3>().expand(embed.dims());
        embed + visit(probe, Site::PosEmbed, pos_embed)
    }

    /// The logits of a final stream.
    ///
    /// # Shapes
    /// - x: `[batch, pos, d_model]`
    /// - logits: `[batch, pos, vocabulary]`
    #[must_use]
    pub fn unembed<P: Probe>(&self, x: Tensor<3>, probe: &mut P) -> Tensor<3> {
        let normalized = normalize(self.ln_final.as_ref(), x, Site::LnFinal, probe);
        linear(
            normalized,
            self.unembedding(),
            self.b_u.as_ref().map(Param::val),
        )
    }

    /// `W_U [d_model, vocabulary]`; in a tied model, the transposed embedding.
    #[must_use]
    pub fn unembedding(&self) -> Tensor<2> {
        self.w_u
            .as_ref()
            .map_or_else(|| self.w_e.val().transpose(), Param::val)
    }

    /// The mask: causal, with the window if the model has one.
    #[must_use]
    pub fn mask(&self) -> Mask {
        self.config.window.map_or_else(Mask::causal, Mask::window)
    }

    /// Sizes and parts.
    #[must_use]
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The number of positions that the model was built for.
    #[must_use]
    pub fn n_ctx(&self) -> usize {
        self.config.n_ctx
    }

    /// The size of the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.config.vocabulary
    }

    /// The number of query heads in each block.
    #[must_use]
    pub fn n_heads(&self) -> usize {
        self.config.n_heads
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
            Site::Embed => true,
            Site::PosEmbed => matches!(
                self.config.positions,
                Positions::Learned | Positions::Sinusoidal
            ),
            Site::Mlp(layer, MlpSite::PreLinear) => {
                block(layer).is_some_and(|block| matches!(block.mlp, Some(FeedForward::Gated(_))))
            }
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
        (0..self.blocks.len())
            .map(|layer| Site::Attention(layer, AttentionSite::Pattern))
            .collect()
    }
}
