//! The parts of the stream: who wrote what.

use std::fmt;

use burn::tensor::Tensor;
use headlight_heads::HeadName;
use headlight_residual::{Activations, ActivationsError, AttentionSite, BlockSite, Probed, Site};
use serde::{Serialize, Serializer};

use crate::given::attention_weights_of;

/// A part of the model that writes into the stream. In tables it is written `embedding`,
/// `positions`, `L0H1`, `attention bias 0` or `feed-forward 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The embedding of the token.
    Embedding,
    /// The vector of the position.
    Positions,
    /// A head.
    Head(HeadName),
    /// What the attention of a layer writes and no head does: `b_O`.
    AttentionBias(usize),
    /// The feed-forward of a layer.
    FeedForward(usize),
    /// Another site, in a model of one's own.
    Other(Site),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Embedding => "embedding".to_owned(),
            Self::Positions => "positions".to_owned(),
            Self::Head(head) => head.to_string(),
            Self::AttentionBias(layer) => format!("attention bias {layer}"),
            Self::FeedForward(layer) => format!("feed-forward {layer}"),
            Self::Other(site) => site.to_string(),
        })
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The sites that a pass has to keep for [`written`] to read these summands.
pub(crate) fn sites_of_written(summands: &[Site]) -> Vec<Site> {
    let mut sites = summands.to_vec();
    for &site in summands {
        if let Site::HeadsAdded(layer) = site {
            sites.push(Site::Block(layer, BlockSite::AttnOut));
        }
    }
    sites
}

/// What each source put into the stream that is the sum of these
/// [summands](Probed::summands), `[batch, pos, d_model]` each, in the order in which they are
/// computed. They add up to the stream.
///
/// # Errors
/// If the model does not give the weights of its attention.
pub(crate) fn written(
    model: &dyn Probed,
    seen: &Activations,
    summands: &[Site],
) -> Result<Vec<(Source, Tensor<3>)>, ActivationsError> {
    let mut written = Vec::new();
    for &site in summands {
        let (Site::Attention(layer, AttentionSite::Result) | Site::HeadsAdded(layer)) = site else {
            written.push((source_at(site), seen.tensor(site)));
            continue;
        };
        let results = seen.tensor::<4>(site);
        let [batch, positions, heads, d_model] = results.dims();
        for head in 0..heads {
            let result = results.clone().narrow(2, head, 1).squeeze_dim(2);
            written.push((Source::Head(HeadName { layer, head }), result));
        }
        let bias = Source::AttentionBias(layer);
        if site == Site::HeadsAdded(layer) {
            let whole = seen.tensor::<3>(Site::Block(layer, BlockSite::AttnOut));
            written.push((bias, whole - results.sum_dim(2).squeeze_dim(2)));
        } else if let Some(b_o) = attention_weights_of(model, layer)?.b_o {
            let b_o = b_o.unsqueeze::<3>().expand([batch, positions, d_model]);
            written.push((bias, b_o));
        }
    }
    Ok(written)
}

/// Who writes at a site where one part writes one tensor.
fn source_at(site: Site) -> Source {
    match site {
        Site::Embed => Source::Embedding,
        Site::PosEmbed => Source::Positions,
        Site::Block(layer, BlockSite::MlpOut) => Source::FeedForward(layer),
        _ => Source::Other(site),
    }
}
