//! One block: `x ← x + attention(norm(x))`, then `x ← x + feed_forward(norm(x))`; or both at once.

use burn::{module::Module, tensor::Tensor};
use headlight_attention::{Dropout, HeadInputs, KvCache, Mask, MultiHeadAttention};

use crate::{
    AttentionSite, BlockSite, Capture, FeedForward, Interest, NoProbe, Norm, NormSite, Probe,
    Projection, Site,
    attention_probed::{AttentionInputs, attention_with_dropout_probed, merge_probed},
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
    /// `x ← x + norm(f(x))` (`OLMo` 2): parts read the stream as it is, and the norms `ln1_post` and
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

/// What the heads of a block write comes from here.
#[expect(
    clippy::large_enum_variant,
    reason = "one lives for a call, and handles of tensors are large"
)]
enum Heads<'a> {
    /// The inputs of queries, keys and values.
    Of(AttentionInputs, &'a Mask, Option<&'a Dropout>),
    /// What the heads blend, `[batch, n_heads, pos, d_head]`.
    Blended(Tensor<4>),
}

impl Heads<'_> {
    /// The sum of what they write.
    fn sum<P: Probe + ?Sized>(
        self,
        attention: &MultiHeadAttention,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        match self {
            Self::Of(inputs, mask, dropout) => {
                attention_with_dropout_probed(attention, inputs, mask, layer, dropout, probe)
            }
            Self::Blended(z) => merge_probed(attention, z, layer, probe),
        }
    }
}

impl Block {
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        self.walk(x, layer, probe, |x, probe| {
            let inputs = self.attention_inputs(x, layer, probe);
            self.attention(Heads::Of(inputs, mask, None), layer, probe)
        })
    }

    /// The positions from `first` on of [`forward`](Self::forward), without a probe. Of those before,
    /// only keys and values are computed.
    ///
    /// # Shapes
    /// - x: `[batch, pos, d_model]`; output: `[batch, pos − first, d_model]`
    pub(crate) fn forward_from_position(
        &self,
        x: Tensor<3>,
        first: usize,
        mask: &Mask,
        layer: usize,
    ) -> Tensor<3> {
        let [_, length, _] = x.dims();
        let from_first = |x: Tensor<3>| x.narrow(1, first, length - first);
        self.walk(from_first(x.clone()), layer, &mut NoProbe, |_, probe| {
            let read = self.read_by_attention(x, layer, probe);
            let attn_out = self.attn.cross(from_first(read.clone()), read, mask);
            let ln1_post = |norm| Site::Ln1Post(layer, norm);
            normalize(self.ln1_post.as_ref(), attn_out, ln1_post, probe)
        })
    }

    /// The first part of [`forward`](Self::forward), up to what attention adds, for a probe that looks at
    /// nothing else.
    pub(crate) fn only_attention<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        probe: &mut P,
    ) {
        let x = visit(probe, Site::Block(layer, BlockSite::ResidPre), x);
        let inputs = self.attention_inputs(x, layer, probe);
        let _ = self.attention(Heads::Of(inputs, mask, None), layer, probe);
    }

    /// Whether [`only_attention`](Self::only_attention) comes past a site of this block.
    pub(crate) fn has_before_sum(&self, site: Site) -> bool {
        use BlockSite::{KInput, QInput, ResidPre, VInput};
        match site {
            Site::Attention(..) | Site::HeadInput(..) | Site::HeadsAdded(_) | Site::Ln1Post(..) => {
                true
            }
            Site::Block(_, site) => matches!(site, ResidPre | QInput | KInput | VInput),
            Site::Ln1(..) => self.norm_placement != NormPlacement::Post,
            _ => false,
        }
    }

    /// [`forward`](Self::forward) in a training step that drops attention weights.
    ///
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    ///
    /// # Panics
    /// If the probe wants to change scores or the pattern.
    #[must_use]
    pub fn forward_with_dropout<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        dropout: &Dropout,
        probe: &mut P,
    ) -> Tensor<3> {
        self.walk(x, layer, probe, |x, probe| {
            let inputs = self.attention_inputs(x, layer, probe);
            self.attention(Heads::Of(inputs, mask, Some(dropout)), layer, probe)
        })
    }

    /// [`forward`](Self::forward) from the stream and from what the heads blend.
    pub(crate) fn forward_from<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        z: Tensor<4>,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        let z = z.swap_dims(1, 2); // [batch, n_heads, pos, d_head]
        self.walk(x, layer, probe, |_, probe| {
            self.attention(Heads::Blended(z), layer, probe)
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
            let x = self.read_by_attention(x, 0, probe);
            let attn_out = self.attn.forward_cached_rows(x, counts, mask, cache);
            let ln1_post = |norm| Site::Ln1Post(0, norm);
            normalize(self.ln1_post.as_ref(), attn_out, ln1_post, probe)
        })
    }

    /// Whether the stream stands between attention and a feed-forward that reads it.
    pub(crate) fn has_middle(&self) -> bool {
        self.mlp.is_some() && self.order == BlockOrder::Sequential
    }

    /// Passes the stream through the block; `attend` computes the attention.
    fn walk<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
        attend: impl FnOnce(Tensor<3>, &mut P) -> Tensor<3>,
    ) -> Tensor<3> {
        let site = |site| Site::Block(layer, site);
        let (ln1, ln2) = (|norm| Site::Ln1(layer, norm), |norm| Site::Ln2(layer, norm));
        let ln2_post = |norm| Site::Ln2Post(layer, norm);
        let post_norm = self.norm_placement == NormPlacement::Post;

        let x = visit(probe, site(BlockSite::ResidPre), x);
        let before = (self.order == BlockOrder::Parallel).then(|| x.clone());
        let attn_out = attend(x.clone(), probe);
        let mut x = x + visit(probe, site(BlockSite::AttnOut), attn_out);

        let Some(mlp) = &self.mlp else {
            let x = visit(probe, site(BlockSite::ResidPost), x);
            return if post_norm {
                normalize(self.ln1.as_ref(), x, ln1, probe)
            } else {
                x
            };
        };
        let read = if let Some(before) = before {
            before
        } else {
            x = visit(probe, site(BlockSite::ResidMid), x);
            if post_norm {
                x = normalize(self.ln1.as_ref(), x, ln1, probe);
            }
            x.clone()
        };
        let read = visit(probe, site(BlockSite::MlpIn), read);
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

    /// Attention and the norm after it, with a probe at its inputs and between its stages.
    fn attention<P: Probe + ?Sized>(
        &self,
        heads: Heads<'_>,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        let Some(norm) = &self.ln1_post else {
            return heads.sum(&self.attn, layer, probe);
        };
        let ln1_post = |site| Site::Ln1Post(layer, site);
        let heads_added = Site::HeadsAdded(layer);
        if probe.interest(heads_added) == Interest::Skip {
            let sum = heads.sum(&self.attn, layer, probe);
            return norm.forward(sum, ln1_post, probe);
        }
        // After the probe, so that what it changes is seen.
        let (result, scale) = (
            Site::Attention(layer, AttentionSite::Result),
            ln1_post(NormSite::Scale),
        );
        let mut both = (&mut *probe, Capture::new(&[result, scale], usize::MAX));
        let sum = heads.sum(&self.attn, layer, &mut both);
        let attn_out = norm.forward(sum, ln1_post, &mut both);
        let (_, mut kept) = both;
        let added = norm.shares(kept.take(result), kept.take(scale));
        if probe.interest(heads_added) == Interest::Read {
            let _ = probe.at(heads_added, added);
            return attn_out;
        }
        let changed = probe.at(heads_added, added.clone());
        attn_out + (changed - added).sum_dim(2).squeeze_dim(2)
    }

    /// The inputs of queries, keys and values. A probe may replace each of the three, and that of
    /// each head. Each input that may differ from the others is normalised by itself.
    fn attention_inputs<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
    ) -> AttentionInputs {
        let is_changed = |projection: Projection| {
            let sites = [projection.input(layer), Site::HeadInput(layer, projection)];
            sites
                .map(|site| probe.interest(site))
                .contains(&Interest::Change)
        };
        if Projection::ALL.into_iter().any(is_changed) {
            let input = |projection| self.input_of(projection, &x, layer, probe);
            return AttentionInputs::Own(Projection::ALL.map(input));
        }
        for projection in Projection::ALL {
            let _ = visit(probe, projection.input(layer), x.clone());
            let by_head = Site::HeadInput(layer, projection);
            if probe.interest(by_head) == Interest::Read {
                let _ = probe.at(by_head, self.copies(projection, &x));
            }
        }
        AttentionInputs::Same(self.read_by_attention(x, layer, probe))
    }

    /// The input of one projection.
    fn input_of<P: Probe + ?Sized>(
        &self,
        projection: Projection,
        x: &Tensor<3>,
        layer: usize,
        probe: &mut P,
    ) -> HeadInputs {
        let x = visit(probe, projection.input(layer), x.clone());
        let by_head = Site::HeadInput(layer, projection);
        let interest = probe.interest(by_head);
        if interest == Interest::Skip {
            return HeadInputs::Shared(self.read_by_attention(x, layer, probe));
        }
        let inputs = probe.at(by_head, self.copies(projection, &x));
        if interest == Interest::Read {
            return HeadInputs::Shared(self.read_by_attention(x, layer, probe));
        }
        let [_, _, heads, _] = inputs.dims();
        let mut read = Vec::with_capacity(heads);
        for head in 0..heads {
            let input = inputs.clone().narrow(2, head, 1).squeeze_dim::<3>(2); // [batch, pos, d_model]
            read.push(self.read_by_attention(input, layer, probe));
        }
        HeadInputs::ByHead(read)
    }

    /// The stream once for each head of a projection: `[batch, pos, head, d_model]`.
    fn copies(&self, projection: Projection, x: &Tensor<3>) -> Tensor<4> {
        let [batch, positions, d_model] = x.dims();
        let heads = match projection {
            Projection::Query => self.attn.n_heads(),
            Projection::Key | Projection::Value => self.attn.n_kv_heads(),
        };
        let x = x.clone().unsqueeze_dim::<4>(2); // [batch, pos, 1, d_model]
        x.expand([batch, positions, heads, d_model])
    }

    /// The stream as attention reads it: normalised, if the block does so before attention.
    fn read_by_attention<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        layer: usize,
        probe: &mut P,
    ) -> Tensor<3> {
        if self.norm_placement == NormPlacement::Post {
            return x;
        }
        normalize(self.ln1.as_ref(), x, |norm| Site::Ln1(layer, norm), probe)
    }
}

/// Normalises the stream for a part of the model that reads it.
pub(crate) fn normalize<P: Probe + ?Sized>(
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
