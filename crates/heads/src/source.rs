//! The parts of a model that write into the residual stream.

use std::{error::Error, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::HeadName;

/// Something that writes into the residual stream.
///
/// ```
/// use headlight_heads::{HeadName, Source};
///
/// let head = HeadName { layer: 0, head: 1 };
/// let names = [Source::Embedding, Source::Positions, Source::Head(head), Source::FeedForward(0)];
/// assert_eq!(names.map(|source| source.to_string()), ["embedding", "positions", "L0H1", "feed-forward 0"]);
/// assert_eq!("feed-forward 0".parse(), Ok(Source::FeedForward(0)));
/// assert_eq!(
///     "mlp 0".parse::<Source>().unwrap_err().to_string(),
///     "mlp 0 is no part of a model, parts are written L0H1, feed-forward 0, embedding, positions",
/// );
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

/// A text that names no part of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotASource(String);

impl fmt::Display for NotASource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is no part of a model, parts are written L0H1, feed-forward 0, embedding, positions",
            self.0
        )
    }
}

impl Error for NotASource {}

impl FromStr for Source {
    type Err = NotASource;

    fn from_str(text: &str) -> Result<Self, NotASource> {
        let source = match text {
            "embedding" => Some(Self::Embedding),
            "positions" => Some(Self::Positions),
            _ => match text.strip_prefix("feed-forward ") {
                Some(layer) => layer.parse().ok().map(Self::FeedForward),
                None => text.parse().ok().map(Self::Head),
            },
        };
        // One spelling for each part: no feed-forward 00.
        source
            .filter(|source| source.to_string() == text)
            .ok_or_else(|| NotASource(text.to_owned()))
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
