//! One block: `x ← x + attention(norm(x))`, then `x ← x + feed_forward(norm(x))`; or both at once.

use burn::{module::Module, tensor::Tensor};
use headlight_attention::{
    Dropout, Heads, KvCache, Mask, MultiHeadAttention, attention_scores, masked_scores,
    softmax_of_scores, weighted_sum,
};

use crate::{
    AttentionSite, BlockSite, FeedForward, Interest, NoProbe, Norm, NormSite, Probe, Site,
    probe::visit,
};

/// The placement of a block's norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormPlacement {
    /// `x ← x + f(norm(x))`: no norm changes the stream itself (Xiong et al. 2020).
    #[default]
    Pre,
    /// `x ← norm(x + f(x))`, as in the first transformer (Vaswani et al. 2017, section 3.1): each
    /// norm replaces the stream, so the stream is no longer a sum. As in `TransformerLens`,
    /// `hook_resid_mid` and `hook_resid_post` are the inputs of the norms, `ln1.hook_out` and
    /// `ln2.hook_out` their outputs.
    Post,
    /// `x ← x + norm(f(x))` (OLMo 2): parts read the stream as it is, and the norms `ln1_post` and
    /// `ln2_post` normalise what they add.
    Output,
    /// `x ← x + norm(f(norm(x)))` (Gemma 2): a norm on either side of each part.
    PreAndOutput,
}

impl NormPlacement {
    /// Whether parts read a normalised copy of the stream.
    #[must_use]
    pub fn normalizes_inputs(self) -> bool {
        matches!(self, Self::Pre | Self::PreAndOutput)
    }

    /// Whether norms stand between the parts and the stream that they add to.
    #[must_use]
    pub fn normalizes_outputs(self) -> bool {
        matches!(self, Self::Output | Self::PreAndOutput)
    }
}

/// What the feed-forward of a block reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockOrder {
    /// The stream to which attention has added.
    #[default]
    Sequential,
    /// The stream before the block, as attention does: `x ← x + attention(norm(x)) +
    /// feed_forward(norm(x))` (GPT-J, GPT-NeoX). The block has no `hook_resid_mid`.
    Parallel,
}

/// A block. Only a post-norm block replaces the stream; the others read it and add their outputs.
#[derive(Module, Debug)]
pub struct Block {
    /// The norm before attention (after it in a post-norm block).
    pub ln1: Option<Norm>,
    /// Moves information between positions.
    pub attn: MultiHeadAttention,
    /// The norm between the output of attention and the stream.
    pub ln1_post: Option<Norm>,
    /// The norm before the feed-forward (after it in a post-norm block).
    pub ln2: Option<Norm>,
    /// Computes on each position alone; `None` in an attention-only block.
    pub mlp: Option<FeedForward>,
    /// The norm between the output of the feed-forward and the stream.
    pub ln2_post: Option<Norm>,
    #[module(skip)]
    pub(crate) norm_placement: NormPlacement,
    #[module(skip)]
    pub(crate) order: BlockOrder,
}

impl Block {
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        self.walk(x, layer, probe, |x, probe| {
            self.attention(x, mask, layer, None, probe)
        })
    }

    /// [`forward`](Self::forward) in a training step that drops attention weights.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    ///
    /// # Panics
    /// If the probe wants to change scores or the pattern.
    #[must_use]
    pub fn forward_with_dropout<P: Probe>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        dropout: &Dropout,
        probe: &mut P,
    ) -> Tensor<3> {
        self.walk(x, layer, probe, |x, probe| {
            self.attention(x, mask, layer, Some(dropout), probe)
        })
    }

    /// [`forward`](Self::forward) of new tokens, in row `b` the first `counts[b]`, which see what
    /// the cache holds of those before.
    ///
    /// # Shapes
    /// - x, output: `[batch, new, d_model]`
    ///
    /// # Panics
    /// As [`MultiHeadAttention::forward_cached_rows`].
    #[must_use]
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        counts: &[usize],
        mask: &Mask,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        self.walk(x, 0, &mut NoProbe, |x, probe| {
            let [x, _, _] = self.attention_inputs(x, 0, probe);
            self.attn.forward_cached_rows(x, counts, mask, cache)
        })
    }

    /// Whether the stream stands between attention and a feed-forward that reads it.
    pub(crate) fn has_middle(&self) -> bool {
        self.mlp.is_some() && self.order == BlockOrder::Sequential
    }

    /// Passes the stream through the block; `attend` computes the attention.
    fn walk<P: Probe>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
        attend: impl FnOnce(Tensor<3>, &mut P) -> Tensor<3>,
    ) -> Tensor<3> {
        let site = |site| Site::Block(layer, site);
        let (ln1, ln2) = (|norm| Site::Ln1(layer, norm), |norm| Site::Ln2(layer, norm));
        let ln1_post = |norm| Site::Ln1Post(layer, norm);
        let ln2_post = |norm| Site::Ln2Post(layer, norm);
        let post_norm = self.norm_placement == NormPlacement::Post;

        let x = visit(probe, site(BlockSite::ResidPre), x);
        let before = (self.order == BlockOrder::Parallel).then(|| x.clone());
        let attn_out = attend(x.clone(), probe);
        let attn_out = normalize(self.ln1_post.as_ref(), attn_out, ln1_post, probe);
        let mut x = x + visit(probe, site(BlockSite::AttnOut), attn_out);

        let Some(mlp) = &self.mlp else {
            let x = visit(probe, site(BlockSite::ResidPost), x);
            return if post_norm {
                normalize(self.ln1.as_ref(), x, ln1, probe)
            } else {
                x
            };
        };
        let read = match before {
            Some(before) => before,
            None => {
                x = visit(probe, site(BlockSite::ResidMid), x);
                if post_norm {
                    x = normalize(self.ln1.as_ref(), x, ln1, probe);
                }
                x.clone()
            }
        };
        let read = if post_norm {
            read
        } else {
            normalize(self.ln2.as_ref(), read, ln2, probe)
        };
        let mlp_out = mlp.forward(read, layer, probe);
        let mlp_out = normalize(self.ln2_post.as_ref(), mlp_out, ln2_post, probe);
        x = x + visit(probe, site(BlockSite::MlpOut), mlp_out);
        x = visit(probe, site(BlockSite::ResidPost), x);
        if post_norm {
            normalize(self.ln2.as_ref(), x, ln2, probe)
        } else {
            x
        }
    }

    /// The three stages of attention, with a probe between them.
    fn attention<P: Probe>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        dropout: Option<&Dropout>,
        probe: &mut P,
    ) -> Tensor<3> {
        let [x_q, x_k, x_v] = self.attention_inputs(x, layer, probe);
        let Heads { q, k, v } = self.attn.project(x_q, x_k, x_v); // [batch, heads, pos, width]
        let heads = Heads {
            q: visit_heads(AttentionSite::Q, q, layer, probe),
            k: visit_heads(AttentionSite::K, k, layer, probe),
            v: visit_heads(AttentionSite::V, v, layer, probe),
        };
        let z = self.attend(heads, mask, layer, dropout, probe); // [batch, heads, pos, d_value]
        let z = visit_heads(AttentionSite::Z, z, layer, probe);
        let result = Site::Attention(layer, AttentionSite::Result);
        match probe.interest(result) {
            Interest::Skip => self.attn.merge(z), // [batch, pos, d_model]
            Interest::Read => {
                // [batch, n_heads, pos, d_model] → [batch, pos, n_heads, d_model]
                let _ = probe.at(result, self.attn.results(z.clone()).swap_dims(1, 2));
                self.attn.merge(z)
            }
            Interest::Change => {
                let results = probe.at(result, self.attn.results(z).swap_dims(1, 2));
                let sum = results.sum_dim(2).squeeze_dim(2); // [batch, pos, d_model]
                match &self.attn.w_o.bias {
                    Some(bias) => sum + bias.val().unsqueeze(),
                    None => sum,
                }
            }
        }
    }

    /// The inputs of queries, keys and values: the stream, normalised if the block does so before
    /// attention. A probe may replace each of the three.
    fn attention_inputs<P: Probe>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
    ) -> [Tensor<3>; 3] {
        let sites = [BlockSite::QInput, BlockSite::KInput, BlockSite::VInput]
            .map(|site| Site::Block(layer, site));
        let split = sites
            .iter()
            .any(|&site| probe.interest(site) == Interest::Change);
        let inputs = sites.map(|site| visit(probe, site, x.clone()));
        if self.norm_placement == NormPlacement::Post {
            return if split {
                inputs
            } else {
                [x.clone(), x.clone(), x]
            };
        }
        let mut normalize =
            |x| normalize(self.ln1.as_ref(), x, |norm| Site::Ln1(layer, norm), probe);
        if split {
            return inputs.map(normalize);
        }
        let normalized = normalize(x);
        [normalized.clone(), normalized.clone(), normalized]
    }

    /// Without a probe on scores or pattern, attention is one call. For a probe that reads them,
    /// they are computed in addition. For a probe that changes them, the same equation is computed
    /// step by step.
    fn attend<P: Probe>(
        &self,
        heads: Heads,
        mask: &Mask,
        layer: usize,
        dropout: Option<&Dropout>,
        probe: &mut P,
    ) -> Tensor<4> {
        let scores_site = Site::Attention(layer, AttentionSite::Scores);
        let pattern_site = Site::Attention(layer, AttentionSite::Pattern);
        let of_scores = probe.interest(scores_site);
        let of_pattern = probe.interest(pattern_site);

        if of_scores == Interest::Change || of_pattern == Interest::Change {
            assert!(
                dropout.is_none(),
                "{pattern_site} cannot be changed and dropped from in one pass"
            );
            let (heads, mask) = self.attn.with_positions(heads, mask);
            let scores = attention_scores(heads.q, heads.k, &mask, self.attn.options());
            // A masked pair stays masked, whatever the probe puts there.
            let scores = masked_scores(visit(probe, scores_site, scores), &mask);
            let pattern = visit(probe, pattern_site, softmax_of_scores(scores));
            return weighted_sum(pattern, heads.v, &mask); // [batch, heads, queries, d_value]
        }
        if of_scores == Interest::Read {
            let (heads, mask) = self.attn.with_positions(heads.clone(), mask);
            let scores = attention_scores(heads.q, heads.k, &mask, self.attn.options());
            let _ = probe.at(scores_site, scores);
        }
        if of_pattern == Interest::Read {
            let _ = probe.at(pattern_site, self.attn.weights(heads.clone(), mask));
        }
        match dropout {
            Some(dropout) => self.attn.attend_with_dropout(heads, mask, dropout),
            None => self.attn.attend(heads, mask),
        }
    }
}

/// Normalises the stream for a part of the model that reads it.
pub(crate) fn normalize<P: Probe>(
    norm: Option<&Norm>,
    x: Tensor<3>,
    site: impl Fn(NormSite) -> Site,
    probe: &mut P,
) -> Tensor<3> {
    match norm {
        Some(norm) => norm.forward(x, site, probe),
        None => x,
    }
}

/// Probes see `[batch, pos, head, d_head]`; attention works on `[batch, head, pos, d_head]`.
fn visit_heads<P: Probe>(
    site: AttentionSite,
    heads: Tensor<4>,
    layer: usize,
    probe: &mut P,
) -> Tensor<4> {
    let site = Site::Attention(layer, site);
    match probe.interest(site) {
        Interest::Skip => heads,
        Interest::Read => {
            let _ = probe.at(site, heads.clone().swap_dims(1, 2)); // [batch, pos, head, d_head]
            heads
        }
        Interest::Change => probe.at(site, heads.swap_dims(1, 2)).swap_dims(1, 2),
    }
}
