//! The decoder model: tokens in, logits for the next token out.

use std::ops::Range;

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, module::embedding},
};
use headlight_attention::{Dropout, KvCache, Mask};
use headlight_ops::{NextTokenScores, cross_entropy, linear, linear_cross_entropy};

use crate::{
    AttentionSite, Block, BlockSite, DecoderConfig, FeedForward, Interest, MlpSite, NoProbe, Norm,
    NormPlacement, NormSite, Positions, Probe, Site, Targets,
    block::normalize,
    logits_in_parts::{logits_in_parts, next_token_scores},
    positions::sinusoids,
    probe::visit,
    readout::softcapped,
    token_tensor,
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
    /// The norm before the unembedding; a post-norm model has none.
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
    pub fn forward_probed<P: Probe + ?Sized>(
        &self,
        tokens: Tensor<2, Int>,
        probe: &mut P,
    ) -> Tensor<3> {
        self.logits(self.final_stream(tokens, probe))
    }

    /// The stream as the unembedding reads it: after the last block, and after the last norm if the
    /// model has one. [`logits`](Self::logits), [`logits_in_parts`](Self::logits_in_parts) and
    /// [`summed_loss`](Self::summed_loss) go on from here.
    ///
    /// # Shapes
    /// - tokens: `[batch, pos]`
    /// - output: `[batch, pos, d_model]`
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    #[must_use]
    pub fn final_stream<P: Probe + ?Sized>(
        &self,
        tokens: Tensor<2, Int>,
        probe: &mut P,
    ) -> Tensor<3> {
        let x = self.stream_before(self.blocks.len(), tokens, probe);
        self.final_norm(x, probe)
    }

    /// The stream before block `layer`: a pass that ends there.
    pub(crate) fn stream_before<P: Probe + ?Sized>(
        &self,
        layer: usize,
        tokens: Tensor<2, Int>,
        probe: &mut P,
    ) -> Tensor<3> {
        self.assert_room_for(tokens.dims()[1]);
        let x = self.embed(tokens, &[0], probe);
        self.through(0..layer, x, probe)
    }

    /// The stream after the last block, of a pass that goes on from `stream`, the one before block
    /// `from`.
    pub(crate) fn stream_from<P: Probe + ?Sized>(
        &self,
        from: usize,
        stream: Tensor<3>,
        probe: &mut P,
    ) -> Tensor<3> {
        self.through(from..self.blocks.len(), stream, probe)
    }

    /// The stream after these blocks.
    fn through<P: Probe + ?Sized>(
        &self,
        blocks: Range<usize>,
        stream: Tensor<3>,
        probe: &mut P,
    ) -> Tensor<3> {
        let (mut x, masks) = (stream, self.masks());
        for layer in blocks {
            x = self.blocks[layer].forward(x, &masks[layer], layer, probe);
        }
        x
    }

    /// The scores of a pass that goes on from `stream`, the one before block `from`. Before the first
    /// position that is asked for, the last block computes keys and values only.
    pub(crate) fn asked_scores_from<P: Probe + ?Sized>(
        &self,
        from: usize,
        stream: Tensor<3>,
        targets: &Targets,
        probe: &mut P,
    ) -> NextTokenScores {
        let last = self.blocks.len() - 1;
        let ends = |site: &Site| matches!(site, Site::LnFinal(_)) || site.layer() == Some(last);
        let mut at_the_end = self.sites().into_iter().filter(ends);
        let is_watched = at_the_end.any(|site| probe.interest(site) != Interest::Skip);
        let first = targets.first_asked();
        if first == 0 || from > last || is_watched {
            let x = self.stream_from(from, stream, probe);
            return self.next_token_scores_of(&self.final_norm(x, probe), targets);
        }
        let x = self.through(from..last, stream, probe);
        let [batch, _, d_model] = x.dims();
        let not_asked = Tensor::zeros([batch, first, d_model], (&x.device(), x.dtype()));
        let asked = self.blocks[last].forward_from_position(x, first, &self.masks()[last], last);
        let asked = self.final_norm(asked, probe);
        self.next_token_scores_of(&Tensor::cat(vec![not_asked, asked], 1), targets)
    }

    /// Runs the model past `probe`, but ends after the last block that has one of `sites`.
    pub(crate) fn run_to_the_last<P: Probe + ?Sized>(
        &self,
        sites: &[Site],
        tokens: Tensor<2, Int>,
        probe: &mut P,
    ) {
        if sites.iter().any(|site| matches!(site, Site::LnFinal(_))) {
            let _ = self.final_stream(tokens, probe);
            return;
        }
        let Some(last) = sites.iter().filter_map(|site| site.layer()).max() else {
            let _ = self.stream_before(0, tokens, probe);
            return;
        };
        let x = self.stream_before(last, tokens, probe);
        let (block, mask) = (&self.blocks[last], &self.masks()[last]);
        let comes_later = |site: &Site| site.layer() == Some(last) && !block.has_before_sum(*site);
        let mut later = self.sites().into_iter().filter(comes_later);
        if later.any(|site| probe.interest(site) != Interest::Skip) {
            let _ = block.forward(x, mask, last, probe);
        } else {
            block.only_attention(x, mask, last, probe);
        }
    }

    /// [`final_stream`](Self::final_stream) in a training step that drops attention weights. Layer
    /// `l` drops by the key of site `dropout.site() + l`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward), and if the probe wants to change scores or a pattern.
    #[must_use]
    pub fn final_stream_with_dropout<P: Probe + ?Sized>(
        &self,
        tokens: Tensor<2, Int>,
        dropout: &Dropout,
        probe: &mut P,
    ) -> Tensor<3> {
        self.assert_room_for(tokens.dims()[1]);
        let mut x = self.embed(tokens, &[0], probe);
        for (layer, (block, mask)) in self.blocks.iter().zip(self.masks()).enumerate() {
            let dropout = dropout.at_site(dropout.site() + layer as u64);
            x = block.forward_with_dropout(x, &mask, layer, &dropout, probe);
        }
        self.final_norm(x, probe)
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
        let [batch, new] = tokens.dims();
        self.forward_cached_rows(tokens, &vec![new; batch], caches)
    }

    /// [`forward_cached`](Self::forward_cached) where rows get different numbers of tokens: in row
    /// `b` the first `counts[b]` are tokens, and the rest is padding with any token, whose logits
    /// mean nothing. Each row goes on at its own position, and gets the logits it would get alone.
    /// A row whose context is full takes part with 0 tokens.
    ///
    /// # Shapes
    /// - tokens: `[batch, new]`
    /// - counts: `[batch]`, each at most `new`
    /// - logits: `[batch, new, vocabulary]`
    ///
    /// # Panics
    /// As [`forward_cached`](Self::forward_cached), or if the counts do not fit the tokens.
    ///
    /// ```
    /// use burn::tensor::{Device, Tolerance};
    /// use headlight_residual::{DecoderConfig, token_tensor};
    ///
    /// let device = Device::flex();
    /// let model = DecoderConfig::default().try_init(0, &device)?;
    /// let mut caches = model.caches(4);
    /// // Prompts of 3 tokens and of 1, the second padded; then one more token each.
    /// let prompts = token_tensor(&[[5, 6, 7], [8, 0, 0]], &device);
    /// let _ = model.forward_cached_rows(prompts, &[3, 1], &mut caches);
    /// let logits = model.forward_cached(token_tensor(&[[9], [9]], &device), &mut caches);
    /// let alone = model.forward(token_tensor(&[[8, 9]], &device)).narrow(1, 1, 1);
    /// let second = logits.narrow(0, 1, 1).into_data();
    /// second.assert_approx_eq::<f32>(&alone.into_data(), Tolerance::absolute(1e-6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn forward_cached_rows(
        &self,
        tokens: Tensor<2, Int>,
        counts: &[usize],
        caches: &mut [KvCache],
    ) -> Tensor<3> {
        let [batch, _] = tokens.dims();
        let starts = match caches.first().map(KvCache::lengths) {
            Some(lengths) if !lengths.is_empty() => lengths.to_vec(),
            _ => vec![0; batch],
        };
        for (start, count) in starts.iter().zip(counts) {
            self.assert_room_for(start + count);
        }
        let mut x = self.embed(tokens, &starts, &mut NoProbe);
        for ((block, mask), cache) in self.blocks.iter().zip(self.masks()).zip(caches) {
            x = block.forward_cached(x, counts, &mask, cache);
        }
        self.unembed(x, &mut NoProbe)
    }

    /// Empty caches for up to `capacity` tokens; in layers with a sliding window, for any number.
    #[must_use]
    pub fn caches(&self, capacity: usize) -> Vec<KvCache> {
        let cache = |layer| match self.config.window_of(layer) {
            Some(window) => KvCache::rolling(window),
            None => KvCache::with_capacity(capacity),
        };
        (0..self.blocks.len()).map(cache).collect()
    }

    /// The stream before the first block. The tokens of row `b` stand at positions `starts[b] ..`;
    /// a single start holds for all rows.
    fn embed<P: Probe + ?Sized>(
        &self,
        tokens: Tensor<2, Int>,
        starts: &[usize],
        probe: &mut P,
    ) -> Tensor<3> {
        let [_, new] = tokens.dims();
        let embed = embedding(self.w_e.val(), tokens);
        let embed = match self.config.embedding_scale {
            Some(scale) => embed.mul_scalar(scale),
            None => embed,
        };
        let embed = visit(probe, Site::Embed, embed);
        let Some(vectors) = self.position_vectors(starts, new, &embed.device()) else {
            return embed;
        };
        let pos_embed = vectors.expand(embed.dims());
        embed + visit(probe, Site::PosEmbed, pos_embed)
    }

    /// What is added to embeddings for their positions, `[1 or batch, new, d_model]`, if anything.
    fn position_vectors(&self, starts: &[usize], new: usize, device: &Device) -> Option<Tensor<3>> {
        let shared = starts.iter().all(|start| *start == starts[0]);
        let starts = if shared { &starts[..1] } else { starts };
        if let Some(w_pos) = &self.w_pos {
            let [n_ctx, _] = w_pos.dims();
            if let [start] = *starts
                && start + new <= n_ctx
            {
                return Some(w_pos.val().narrow(0, start, new).unsqueeze());
            }
            // Padding may reach beyond the last position; its vector means nothing.
            let last = n_ctx - 1;
            let positions: Vec<Vec<u32>> = starts
                .iter()
                .map(|&start| (start..start + new).map(|at| at.min(last) as u32).collect())
                .collect();
            return Some(embedding(w_pos.val(), token_tensor(&positions, device)));
        }
        if self.config.positions == Positions::Sinusoidal {
            let of_row = |&start: &usize| {
                sinusoids(start..start + new, self.config.d_model, device).unsqueeze::<3>()
            };
            return Some(Tensor::cat(starts.iter().map(of_row).collect(), 0));
        }
        None
    }

    fn assert_room_for(&self, positions: usize) {
        if let Some(most) = self.most_positions() {
            assert!(
                positions <= most,
                "{positions} positions do not fit into n_ctx {most}"
            );
        }
    }

    /// The logits of a final stream.
    ///
    /// # Shapes
    /// - x: `[batch, pos, d_model]`
    /// - logits: `[batch, pos, vocabulary]`
    #[must_use]
    pub fn unembed<P: Probe + ?Sized>(&self, x: Tensor<3>, probe: &mut P) -> Tensor<3> {
        self.logits(self.final_norm(x, probe))
    }

    /// The stream after the last norm, which the unembedding reads; in a model without one, the
    /// stream itself.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn final_norm<P: Probe + ?Sized>(&self, x: Tensor<3>, probe: &mut P) -> Tensor<3> {
        normalize(self.ln_final.as_ref(), x, Site::LnFinal, probe)
    }

    /// The logits of a [`final_stream`](Self::final_stream).
    ///
    /// # Shapes
    /// - stream: `[batch, pos, d_model]`
    /// - logits: `[batch, pos, vocabulary]`
    #[must_use]
    pub fn logits(&self, stream: Tensor<3>) -> Tensor<3> {
        let bias = self.b_u.as_ref().map(Param::val);
        let logits = linear(stream, self.unembedding(), bias);
        softcapped(logits, self.config.logit_softcap)
    }

    /// [`logits`](Self::logits) of some positions after the other, with these positions: at most
    /// 64 MiB at a time, or one position of all rows. Less than that is one part.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::{DecoderConfig, NoProbe, token_tensor};
    ///
    /// let device = Device::flex();
    /// let config = DecoderConfig { vocabulary: 1 << 23, d_model: 2, n_heads: 1, n_layers: 1, ..Default::default() };
    /// let model = config.try_init(0, &device)?;
    /// let stream = model.final_stream(token_tensor(&[[1, 2, 3]], &device), &mut NoProbe);
    /// // The logits of one position take 32 MiB.
    /// let parts: Vec<_> = model.logits_in_parts(&stream).map(|(positions, _)| positions).collect();
    /// assert_eq!(parts, [0..2, 2..3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn logits_in_parts(
        &self,
        stream: &Tensor<3>,
    ) -> impl Iterator<Item = (Range<usize>, Tensor<3>)> {
        self.parts_of(stream.clone())
    }

    fn parts_of(
        &self,
        stream: Tensor<3>,
    ) -> impl Iterator<Item = (Range<usize>, Tensor<3>)> + use<> {
        let bias = self.b_u.as_ref().map(Param::val);
        logits_in_parts(stream, self.unembedding(), bias, self.config.logit_softcap)
    }

    /// `−Σ ln softmax(logits)[target]` over the targets that count, in nats, of a
    /// [`final_stream`](Self::final_stream). The logits of a large vocabulary are never all in
    /// memory ([`linear_cross_entropy`]).
    ///
    /// # Shapes
    /// - stream: `[batch, pos, d_model]`
    /// - targets, counts: `[batch, pos]`, counts 1 or 0
    /// - output: `[1]`
    #[must_use]
    pub fn summed_loss(
        &self,
        stream: Tensor<3>,
        targets: Tensor<2, Int>,
        counts: Tensor<2>,
    ) -> Tensor<1> {
        if self.config.logit_softcap.is_some() {
            return cross_entropy(self.logits(stream), targets, counts);
        }
        let bias = self.b_u.as_ref().map(Param::val);
        linear_cross_entropy(stream, self.unembedding(), bias, targets, counts)
    }

    /// The loss of every target and whether the model is right, from a
    /// [`final_stream`](Self::final_stream). The logits are computed in
    /// [parts](Self::logits_in_parts).
    ///
    /// # Shapes
    /// - stream: `[batch, pos, d_model]`
    /// - targets: `[batch, pos]`
    #[must_use]
    pub fn next_token_scores_of(&self, stream: &Tensor<3>, targets: &Targets) -> NextTokenScores {
        next_token_scores(stream, targets, |stream| self.parts_of(stream))
    }

    /// `W_U [d_model, vocabulary]`; in a tied model, the transposed embedding.
    #[must_use]
    pub fn unembedding(&self) -> Tensor<2> {
        self.w_u
            .as_ref()
            .map_or_else(|| self.w_e.val().transpose(), Param::val)
    }

    /// The mask of each layer: causal, with the window if the layer has one. Layers with the same
    /// window share one mask.
    #[must_use]
    pub fn masks(&self) -> Vec<Mask> {
        let full = Mask::causal();
        let windowed = self.config.window.map(Mask::window);
        let mask = |layer| match &windowed {
            Some(windowed) if self.config.window_of(layer).is_some() => windowed.clone(),
            _ => full.clone(),
        };
        (0..self.blocks.len()).map(mask).collect()
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

    /// The same model for sequences of at most `n_ctx` tokens, which need not be more than it was
    /// built for. It computes the same on them: learned positions after the last are left out, and a
    /// window is no longer than a sequence.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::{DecoderConfig, token_tensor};
    ///
    /// let device = Device::flex();
    /// let model = DecoderConfig { vocabulary: 5, n_ctx: 8, ..DecoderConfig::default() }.try_init(0, &device)?;
    /// let short = model.clone().shortened(3);
    /// assert_eq!(short.w_pos.as_ref().unwrap().dims(), [3, 64]);
    /// let tokens = token_tensor(&[vec![1, 2, 3]], &device);
    /// assert_eq!(short.forward(tokens.clone()).into_data(), model.forward(tokens).into_data());
    /// # Ok::<(), headlight_attention::ConfigError>(())
    /// ```
    #[must_use]
    pub fn shortened(mut self, n_ctx: usize) -> Self {
        let cut = |positions: Tensor<2>| {
            let (learns, device) = (positions.is_require_grad(), positions.device());
            let first = positions.detach().narrow(0, 0, n_ctx);
            // What an operation gave cannot learn; its numbers can.
            Tensor::from_data(first.into_data(), &device).set_require_grad(learns)
        };
        self.w_pos = self.w_pos.map(|w_pos| w_pos.map(cut));
        self.config.window = self.config.window.map(|window| window.min(n_ctx));
        self.config.n_ctx = n_ctx;
        self
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
            Site::Block(layer, BlockSite::ResidMid) => block(layer).is_some_and(Block::has_middle),
            Site::Block(layer, BlockSite::MlpIn | BlockSite::MlpOut) | Site::Mlp(layer, _) => {
                block(layer).is_some_and(|block| block.mlp.is_some())
            }
            Site::Block(layer, _) | Site::HeadInput(layer, _) | Site::Attention(layer, _) => {
                block(layer).is_some()
            }
            Site::Ln1(layer, _) => block(layer).is_some_and(|block| block.ln1.is_some()),
            Site::Ln2(layer, _) => block(layer).is_some_and(|block| block.ln2.is_some()),
            Site::HeadsAdded(layer) | Site::Ln1Post(layer, _) => {
                block(layer).is_some_and(|block| block.ln1_post.is_some())
            }
            Site::Ln2Post(layer, _) => block(layer).is_some_and(|block| block.ln2_post.is_some()),
            Site::LnFinal(_) => self.ln_final.is_some(),
        }
    }

    /// The sites at which the stream stands as the next part reads it, in the order of the way:
    /// before the first block, after each attention that a feed-forward follows, and after each
    /// block. What stands at the last site is what [`unembed`](Self::unembed) reads.
    ///
    /// These are `hook_resid_pre|mid|post`, in parallel blocks without `mid`. In a post-norm model,
    /// `hook_resid_mid` and `hook_resid_post` are the inputs of norms, and the stream goes on as their `hook_out`.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use headlight_residual::{DecoderConfig, NormPlacement};
    ///
    /// let names = |norm_placement| -> Vec<String> {
    ///     let config = DecoderConfig { norm_placement, ..DecoderConfig::default() };
    ///     let model = config.try_init(0, &Device::flex()).unwrap();
    ///     model.stream_sites().iter().map(ToString::to_string).collect()
    /// };
    /// let pre = ["blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"];
    /// assert_eq!(names(NormPlacement::Pre), pre);
    /// let post = ["blocks.0.hook_resid_pre", "blocks.0.ln1.hook_out", "blocks.1.ln1.hook_out"];
    /// assert_eq!(names(NormPlacement::Post), post);
    /// ```
    #[must_use]
    pub fn stream_sites(&self) -> Vec<Site> {
        let mut sites = vec![Site::Block(0, BlockSite::ResidPre)];
        for (layer, block) in self.blocks.iter().enumerate() {
            let is_replaced = block.norm_placement == NormPlacement::Post && block.ln1.is_some();
            match (is_replaced, block.has_middle()) {
                (false, false) => sites.push(Site::Block(layer, BlockSite::ResidPost)),
                (false, true) => {
                    sites.push(Site::Block(layer, BlockSite::ResidMid));
                    sites.push(Site::Block(layer, BlockSite::ResidPost));
                }
                (true, false) => sites.push(Site::Ln1(layer, NormSite::Out)),
                (true, true) => {
                    sites.push(Site::Ln1(layer, NormSite::Out));
                    sites.push(Site::Ln2(layer, NormSite::Out));
                }
            }
        }
        sites
    }

    /// The sites of every head's pattern, first layer first.
    #[must_use]
    pub fn pattern_sites(&self) -> Vec<Site> {
        (0..self.blocks.len())
            .map(|layer| Site::Attention(layer, AttentionSite::Pattern))
            .collect()
    }
}
