//! The graph of a model: what one part writes into the residual stream, another part reads.

use std::fmt;

use serde::Serialize;

use crate::{HeadName, Source};

/// Something that reads the residual stream.
///
/// In grouped queries several heads share keys and values. These are named by the first head that
/// reads them: with 4 heads and 2 key/value heads, the keys of L1H2 are also those of L1H3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// The queries of a head.
    Queries(HeadName),
    /// The keys of a head.
    Keys(HeadName),
    /// The values of a head.
    Values(HeadName),
    /// The feed-forward of a layer.
    FeedForward(usize),
    /// The logits.
    Logits,
}

/// An edge of the graph, written `L0H1 → keys of L1H0`.
///
/// ```
/// use headlight_heads::{Destination, Edge, Source};
///
/// let edge = Edge {
///     source: Source::Head("L0H1".parse()?),
///     destination: Destination::Keys("L1H0".parse()?),
/// };
/// assert_eq!(edge.to_string(), "L0H1 → keys of L1H0");
/// assert_eq!((edge.source.layer(), edge.destination.layer()), (Some(0), Some(1)));
/// # Ok::<(), headlight_heads::NotAHead>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Edge {
    /// Who writes.
    pub source: Source,
    /// Who reads.
    pub destination: Destination,
}

impl Destination {
    /// The block that reads; none for the logits.
    #[must_use]
    pub fn layer(self) -> Option<usize> {
        match self {
            Self::Queries(head) | Self::Keys(head) | Self::Values(head) => Some(head.layer),
            Self::FeedForward(layer) => Some(layer),
            Self::Logits => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Queries(head) => format!("queries of {head}"),
            Self::Keys(head) => format!("keys of {head}"),
            Self::Values(head) => format!("values of {head}"),
            Self::FeedForward(layer) => format!("feed-forward {layer}"),
            Self::Logits => "logits".to_owned(),
        })
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} → {}", self.source, self.destination))
    }
}

impl Serialize for Destination {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
