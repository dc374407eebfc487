//! The numbers of one probe sequence on their way through every head.

use std::ops::Range;

use burn::tensor::Tensor;
use headlight_attention::Heads;
use headlight_report::{Floats, WalkData, WalkHead, WalkLayer, WalkNorm};
use headlight_residual::{
    Activations, AttentionSite, BlockSite, Decoder, Norm, NormPlacement, NormSite, Positions, Site,
    token_tensor,
};
use headlight_run::Error;
use headlight_watch::no_room;

use super::{Subject, numbers, stream::written_sites};

/// Bytes of numbers; base64 makes a third more of them.
const MOST_NUMBER_BYTES: usize = 1_050_000;
/// How many tokens the walk may be along.
const LENGTHS: [usize; 6] = [64, 48, 32, 24, 16, 8];

impl Subject {
    /// The walk along the first probe sequence: fewer tokens, then fewer heads where there are too
    /// many numbers.
    pub(super) fn walk(
        &self,
        model: &Decoder,
        vocabulary: &[String],
        left_out: &mut Vec<String>,
    ) -> Result<Option<WalkData>, Error> {
        let probe = self.probe()?;
        let Some(sequence) = probe.tokens.first() else {
            return Ok(None);
        };
        let sizes = |tokens: usize| Sizes::of(model, tokens.min(sequence.len()));
        let all = model.blocks.len() * model.n_heads();
        let sizes = LENGTHS
            .map(sizes)
            .into_iter()
            .find(|sizes| sizes.heads_that_fit() >= all)
            .unwrap_or_else(|| sizes(8));
        let heads = sizes.heads_that_fit().min(all);
        if heads == 0 {
            left_out.push("the walk: its matrices are too large for a page".to_owned());
            return Ok(None);
        }
        if sizes.tokens < sequence.len() {
            left_out.push(format!(
                "the walk beyond the first {} of {} tokens",
                sizes.tokens,
                sequence.len()
            ));
        }
        if heads < all {
            left_out.push(format!("the walk through {} of {all} heads", all - heads));
        }
        let tokens = &sequence[..sizes.tokens];
        let seen = model
            .activations(token_tensor(&[tokens], &self.device), &model.sites())
            .map_err(no_room)?;
        let names = tokens
            .iter()
            .map(|&token| vocabulary[token as usize].clone())
            .collect();
        let in_layer = |layer: usize| {
            0..heads
                .saturating_sub(layer * model.n_heads())
                .min(model.n_heads())
        };
        let walk = walk_of(model, names, &seen, in_layer);
        Ok(Some(WalkData {
            directions: self.directions()?,
            ..walk
        }))
    }
}

/// The walk through those heads of each layer that `heads` names, from what a pass along `tokens`
/// left at all sites.
pub(crate) fn walk_of(
    model: &Decoder,
    tokens: Vec<String>,
    seen: &Activations,
    heads: impl Fn(usize) -> Range<usize>,
) -> WalkData {
    let walked = Walked { model, seen };
    let config = model.config();
    let layers = (0..model.blocks.len()).filter(|&layer| !heads(layer).is_empty());
    let written = written_sites(model)
        .into_iter()
        .map(|(name, site)| (name, walked.three(site)));
    WalkData {
        tokens,
        d_model: config.d_model,
        directions: None,
        d_head: config.d_head(),
        scale: config.attention.scale_for(config.d_head()),
        scale_name: match config.attention.scale {
            None => format!("1/√{}", config.d_head()),
            Some(scale) => scale.to_string(),
        },
        replaces_stream: config.norm_placement == NormPlacement::Post,
        layers: layers
            .map(|layer| walked.layer(layer, heads(layer)))
            .collect(),
        written: written.collect(),
    }
}

/// How large a walk is.
#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    of_all_layers: usize,
    of_head: usize,
}

impl Sizes {
    fn of(model: &Decoder, tokens: usize) -> Self {
        let config = model.config();
        let (d_model, d_head) = (config.d_model, config.d_head());
        let stream = tokens * d_model;
        // Stream, norm, what attention adds, and what was written; Q, K, V, Z, W_Q, W_K, W_V, W_O,
        // scores, pattern, result.
        let of_all_layers = 4 * (model.blocks.len() * 5 + 2) * stream;
        let of_head =
            4 * (4 * tokens * d_head + 4 * d_model * d_head + 2 * tokens * tokens + stream);
        Self {
            tokens,
            of_all_layers,
            of_head,
        }
    }

    fn heads_that_fit(self) -> usize {
        MOST_NUMBER_BYTES.saturating_sub(self.of_all_layers) / self.of_head
    }
}

/// A model and what was seen of it.
struct Walked<'a> {
    model: &'a Decoder,
    seen: &'a Activations,
}

impl Walked<'_> {
    fn layer(&self, layer: usize, heads: Range<usize>) -> WalkLayer {
        let block = &self.model.blocks[layer];
        let at = |site| self.seen.tensor::<4>(Site::Attention(layer, site));
        let seen = Heads {
            q: at(AttentionSite::Q).swap_dims(1, 2),
            k: at(AttentionSite::K).swap_dims(1, 2),
            v: at(AttentionSite::V).swap_dims(1, 2),
        };
        let rotates = matches!(self.model.config().positions, Positions::Rotary { .. });
        let turned = rotates.then(|| {
            block
                .attn
                .with_positions(seen.clone(), &self.model.masks()[layer])
                .0
        });
        let group = self.model.n_heads() / self.model.config().n_kv_heads();
        let of_head =
            |tensor: &Tensor<4>, head: usize| Floats(numbers(tensor.clone().narrow(1, head, 1)));
        let at_head = |site: AttentionSite, head: usize| {
            let axis = if tensor_is_square(site) { 1 } else { 2 };
            Floats(numbers(at(site).narrow(axis, head, 1)))
        };
        let head = |head: usize| {
            let kv = head / group;
            WalkHead {
                head,
                w_qkv: [
                    columns(&block.attn.w_q.weight.val(), head, self.width()),
                    columns(&block.attn.w_k.weight.val(), kv, self.width()),
                    columns(&block.attn.w_v.weight.val(), kv, self.width()),
                ],
                b_qkv: [
                    (&block.attn.w_q, head),
                    (&block.attn.w_k, kv),
                    (&block.attn.w_v, kv),
                ]
                .map(|(linear, head)| {
                    let bias = linear.bias.as_ref()?.val();
                    Some(Floats(numbers(bias.narrow(
                        0,
                        head * self.width(),
                        self.width(),
                    ))))
                }),
                w_o: Floats(numbers(block.attn.w_o.weight.val().narrow(
                    0,
                    head * self.width(),
                    self.width(),
                ))),
                qkv: [
                    of_head(&seen.q, head),
                    of_head(&seen.k, kv),
                    of_head(&seen.v, kv),
                ],
                rotated: turned
                    .as_ref()
                    .map(|turned| [of_head(&turned.q, head), of_head(&turned.k, kv)]),
                scores: at_head(AttentionSite::Scores, head),
                pattern: at_head(AttentionSite::Pattern, head),
                z: at_head(AttentionSite::Z, head),
                result: at_head(AttentionSite::Result, head),
            }
        };
        WalkLayer {
            layer,
            stream: self.three(Site::Block(layer, BlockSite::ResidPre)),
            norm: self.norm(layer),
            added: self.three(Site::Block(layer, BlockSite::AttnOut)),
            bias: block
                .attn
                .w_o
                .bias
                .as_ref()
                .map(|bias| Floats(numbers(bias.val()))),
            heads: heads.map(head).collect(),
        }
    }

    /// The norm that attention reads through; a post-norm block reads the stream as it is.
    fn norm(&self, layer: usize) -> Option<WalkNorm> {
        let config = self.model.config();
        let norm = self.model.blocks[layer]
            .ln1
            .as_ref()
            .filter(|_| config.norm_placement != NormPlacement::Post)?;
        let (kind, gain, bias) = match norm {
            Norm::Layer(norm) => ("layer", &norm.gain, Some(&norm.bias)),
            Norm::Rms(norm) => ("rms", &norm.gain, None),
        };
        Some(WalkNorm {
            kind: kind.to_owned(),
            gain: Floats(numbers(gain.val())),
            bias: bias.map(|bias| Floats(numbers(bias.val()))),
            epsilon: config.norm_epsilon,
            output: self.three(Site::Ln1(layer, NormSite::Out)),
        })
    }

    fn three(&self, site: Site) -> Floats {
        Floats(self.seen.get::<3>(site).map(numbers).unwrap_or_default())
    }

    fn width(&self) -> usize {
        self.model.config().d_head()
    }
}

/// The columns of a projection that belong to one head.
fn columns(weight: &Tensor<2>, head: usize, width: usize) -> Floats {
    Floats(numbers(weight.clone().narrow(1, head * width, width)))
}

/// Whether the site's heads stand before its positions.
fn tensor_is_square(site: AttentionSite) -> bool {
    matches!(site, AttentionSite::Scores | AttentionSite::Pattern)
}
