//! One block: `x ← x + attention(norm(x))`, then `x ← x + feed_forward(norm(x))`.

use burn::{module::Module, tensor::Tensor};
use headlight_attention::{Dropout, KvCache, Mask, MultiHeadAttention};

use crate::{
    BlockSite, FeedForward, Interest, NoProbe, Norm, NormSite, Probe, Site,
    attention_probed::{attention_with_dropout_probed, merge_probed},
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
}

/// A block. A pre-norm block never replaces the stream: it reads a normalised copy and adds its
/// outputs.
#[derive(Module, Debug)]
pub struct Block {
    /// The norm before attention (after it in a post-norm block).
    pub ln1: Option<Norm>,
    /// Moves information between positions.
    pub attn: MultiHeadAttention,
    /// The norm before the feed-forward (after it in a post-norm block).
    pub ln2: Option<Norm>,
    /// Computes on each position alone; `None` in an attention-only block.
    pub mlp: Option<FeedForward>,
    #[module(skip)]
    pub(crate) norm_placement: NormPlacement,
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
    pub fn forward_with_dropout<P: Probe + ?Sized>(
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
            merge_probed(&self.attn, z, layer, probe)
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
        let post_norm = self.norm_placement == NormPlacement::Post;

        let x = visit(probe, site(BlockSite::ResidPre), x);
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
        x = visit(probe, site(BlockSite::ResidMid), x);
        let read = if post_norm {
            x = normalize(self.ln1.as_ref(), x, ln1, probe);
            x.clone()
        } else {
            normalize(self.ln2.as_ref(), x.clone(), ln2, probe)
        };
        let mlp_out = mlp.forward(read, layer, probe);
        x = x + visit(probe, site(BlockSite::MlpOut), mlp_out);
        x = visit(probe, site(BlockSite::ResidPost), x);
        if post_norm {
            normalize(self.ln2.as_ref(), x, ln2, probe)
        } else {
            x
        }
    }

    /// Attention, with a probe at its inputs and between its three stages.
    fn attention<P: Probe + ?Sized>(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        layer: usize,
        dropout: Option<&Dropout>,
        probe: &mut P,
    ) -> Tensor<3> {
        let inputs = self.attention_inputs(x, layer, probe);
        attention_with_dropout_probed(&self.attn, inputs, mask, layer, dropout, probe)
    }

    /// The inputs of queries, keys and values: the stream, normalised in a pre-norm block. A probe
    /// may replace each of the three.
    fn attention_inputs<P: Probe + ?Sized>(
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
