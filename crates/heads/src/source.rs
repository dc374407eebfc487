//! The parts of a model that write into the residual stream.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::HeadName;

/// Something that writes into the residual stream.
///
/// ```
/// use headlight_heads::{HeadName, Source};
///
/// let head = HeadName { layer: 0, head: 1 };
/// let names = [Source::Embedding, Source::Positions, Source::Head(head), Source::FeedForward(0)];
/// assert_eq!(names.map(|source| source.to_string()), ["embedding", "positions", "L0H1", "feed-forward 0"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The token embedding.
    Embedding,
    /// The position vectors.
    Positions,
    /// A head.
    Head(HeadName),
    /// The feed-forward of a layer.
    FeedForward(usize),
}

impl Source {
    /// The block that writes; none for embedding and positions.
    #[must_use]
    pub fn layer(self) -> Option<usize> {
        match self {
            Self::Embedding | Self::Positions => None,
            Self::Head(head) => Some(head.layer),
            Self::FeedForward(layer) => Some(layer),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Embedding => "embedding".to_owned(),
            Self::Positions => "positions".to_owned(),
            Self::Head(head) => head.to_string(),
            Self::FeedForward(layer) => format!("feed-forward {layer}"),
        })
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
