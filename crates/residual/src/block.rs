//! One block: `x ← x + attention(norm(x))`, then `x ← x + feed_forward(norm(x))`.

use burn::{module::Module, tensor::Tensor};
use headlight_attention::{
    Heads, Mask, MultiHeadAttention, attention, attention_scores, attention_weights, softmax_of_scores, weighted_sum,
};

use crate::{AttentionSite, BlockSite, FeedForward, Interest, Norm, NormSite, Probe, Site, probe::visit};

/// A pre-norm block. It never replaces the stream: it reads a normalised copy and adds what it found.
#[derive(Module, Debug)]
pub struct Block {
    /// The norm before attention.
    pub ln1: Option<Norm>,
    /// Moves information between positions.
    pub attn: MultiHeadAttention,
    /// The norm before the feed-forward.
    pub ln2: Option<Norm>,
    /// Works on each position alone; `None` in an attention-only block.
    pub mlp: Option<FeedForward>,
}

impl Block {
    /// # Shapes
    /// - x, output: `[batch, pos, d_model]`
    #[must_use]
    pub fn forward<P: Probe>(&self, x: Tensor<3>, mask: &Mask, layer: usize, probe: &mut P) -> Tensor<3> {
        let site = |site| Site::Block(layer, site);
        let x = visit(probe, site(BlockSite::ResidPre), x);

        let attn_out = self.attention(x.clone(), mask, layer, probe);
        let mut x = x + visit(probe, site(BlockSite::AttnOut), attn_out);

        if let Some(mlp) = &self.mlp {
            x = visit(probe, site(BlockSite::ResidMid), x);
            let normalized = normalize(self.ln2.as_ref(), x.clone(), |norm| Site::Ln2(layer, norm), probe);
            let mlp_out = mlp.forward(normalized, layer, probe);
            x = x + visit(probe, site(BlockSite::MlpOut), mlp_out);
        }
        visit(probe, site(BlockSite::ResidPost), x)
    }

    /// The three stages of attention, with a probe between them.
    fn attention<P: Probe>(&self, x: Tensor<3>, mask: &Mask, layer: usize, probe: &mut P) -> Tensor<3> {
        let [x_q, x_k, x_v] = self.normalized_inputs(x, layer, probe);
        let Heads { q, k, v } = self.attn.project(x_q, x_k, x_v);
        let heads = Heads {
            q: visit_heads(AttentionSite::Q, q, layer, probe),
            k: visit_heads(AttentionSite::K, k, layer, probe),
            v: visit_heads(AttentionSite::V, v, layer, probe),
        };
        let z = self.attend(heads, mask, layer, probe);
        let z = visit_heads(AttentionSite::Z, z, layer, probe);
        let result = Site::Attention(layer, AttentionSite::Result);
        match probe.interest(result) {
            Interest::Skip => self.attn.merge(z),
            Interest::Read => {
                let _ = probe.at(result, self.attn.results(z.clone()).swap_dims(1, 2));
                self.attn.merge(z)
            }
            Interest::Change => {
                let results = probe.at(result, self.attn.results(z).swap_dims(1, 2));
                let sum = results.sum_dim(2).squeeze_dim(2);
                match &self.attn.w_o.bias {
                    Some(bias) => sum + bias.val().unsqueeze(),
                    None => sum,
                }
            }
        }
    }

    /// What queries, keys and values are made from: one normalised stream, unless a probe gives them different ones.
    fn normalized_inputs<P: Probe>(&self, x: Tensor<3>, layer: usize, probe: &mut P) -> [Tensor<3>; 3] {
        let sites = [BlockSite::QInput, BlockSite::KInput, BlockSite::VInput].map(|site| Site::Block(layer, site));
        let split = sites.iter().any(|&site| probe.interest(site) == Interest::Change);
        let inputs = sites.map(|site| visit(probe, site, x.clone()));
        let mut normalize = |x| normalize(self.ln1.as_ref(), x, |norm| Site::Ln1(layer, norm), probe);
        if split {
            return inputs.map(normalize);
        }
        let normalized = normalize(x);
        [normalized.clone(), normalized.clone(), normalized]
    }

    /// Without a probe on scores or pattern: one call. To read them, they are computed beside it. To change them,
    /// the same equation is walked step by step.
    fn attend<P: Probe>(&self, heads: Heads, mask: &Mask, layer: usize, probe: &mut P) -> Tensor<4> {
        let scores_site = Site::Attention(layer, AttentionSite::Scores);
        let pattern_site = Site::Attention(layer, AttentionSite::Pattern);
        let (wants_scores, wants_pattern) = (probe.interest(scores_site), probe.interest(pattern_site));
        let options = self.attn.options();
        if wants_scores.max(wants_pattern) == Interest::Skip {
            return self.attn.attend(heads, mask);
        }
        let (heads, mask) = self.attn.with_positions(heads, mask);
        let mask = &mask;
        if wants_scores == Interest::Change || wants_pattern == Interest::Change {
            let scores = visit(probe, scores_site, attention_scores(heads.q, heads.k, mask, options));
            let pattern = visit(probe, pattern_site, softmax_of_scores(scores));
            return weighted_sum(pattern, heads.v, mask);
        }
        if wants_scores == Interest::Read {
            let _ = probe.at(scores_site, attention_scores(heads.q.clone(), heads.k.clone(), mask, options));
        }
        if wants_pattern == Interest::Read {
            let _ = probe.at(pattern_site, attention_weights(heads.q.clone(), heads.k.clone(), mask, options));
        }
        attention(heads.q, heads.k, heads.v, mask, options)
    }
}

/// The stream as a part of the model reads it.
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
fn visit_heads<P: Probe>(site: AttentionSite, heads: Tensor<4>, layer: usize, probe: &mut P) -> Tensor<4> {
    let site = Site::Attention(layer, site);
    match probe.interest(site) {
        Interest::Skip => heads,
        Interest::Read => {
            let _ = probe.at(site, heads.clone().swap_dims(1, 2));
            heads
        }
        Interest::Change => probe.at(site, heads.swap_dims(1, 2)).swap_dims(1, 2),
    }
}
