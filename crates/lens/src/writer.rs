//! The parts of the stream: who wrote what.

use std::fmt;

use burn::tensor::Tensor;
use headlight_heads::{HeadName, Source};
use headlight_residual::{Activations, ActivationsError, AttentionSite, BlockSite, Probed, Site};

use crate::given::attention_weights_of;

/// Who wrote a part of the stream. In tables it is written `embedding`, `positions`, `L0H1`,
/// `feed-forward 0` or `attention bias 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Writer {
    /// A source of the stream.
    Source(Source),
    /// What the attention of a layer writes and no head does: `b_O`.
    AttentionBias(usize),
    /// Another site, in a model of one's own.
    Site(Site),
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(source) => source.fmt(f),
            Self::AttentionBias(layer) => write!(f, "attention bias {layer}"),
            Self::Site(site) => site.fmt(f),
        }
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

/// What each writer put into the stream that is the sum of these
/// [summands](Probed::summands), `[batch, pos, d_model]` each, in the order in which they are
/// computed. They add up to the stream.
///
/// # Errors
/// If the model does not give the weights of its attention.
pub(crate) fn written(
    model: &dyn Probed,
    seen: &Activations,
    summands: &[Site],
) -> Result<Vec<(Writer, Tensor<3>)>, ActivationsError> {
    let mut written = Vec::new();
    for &site in summands {
        let (Site::Attention(layer, AttentionSite::Result) | Site::HeadsAdded(layer)) = site else {
            written.push((writer_at(site), seen.tensor(site)));
            continue;
        };
        let results = seen.tensor::<4>(site);
        let [batch, positions, heads, d_model] = results.dims();
        for head in 0..heads {
            let result = results.clone().narrow(2, head, 1).squeeze_dim(2);
            written.push((
                Writer::Source(Source::Head(HeadName { layer, head })),
                result,
            ));
        }
        let bias = Writer::AttentionBias(layer);
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
fn writer_at(site: Site) -> Writer {
    Writer::Source(match site {
        Site::Embed => Source::Embedding,
        Site::PosEmbed => Source::Positions,
        Site::Block(layer, BlockSite::MlpOut) => Source::FeedForward(layer),
        _ => return Writer::Site(site),
    })
}
