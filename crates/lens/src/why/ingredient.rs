//! What a query, a key or a value is made of.

use std::fmt;

use headlight_heads::Source;
use serde::{Serialize, Serializer};

use crate::Writer;

/// What a query, a key or a value is made of, or what is added to a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ingredient {
    /// What a part of the model wrote into the stream.
    Written(Writer),
    /// The bias of the norm that reads the stream.
    NormBias,
    /// `b_Q` in a query, `b_K` in a key, `b_V` in a value.
    Bias,
    /// The mean of all queries: what it meets, any query meets.
    EveryQuery,
    /// What the positions add to the score itself: `ALiBi`, or a relative bias.
    PositionBias,
    /// So many heads that are not named.
    OtherHeads(usize),
    /// So many feed-forwards that are not named.
    OtherFeedForwards(usize),
    /// So many other ingredients that are not named.
    Others(usize),
}

impl From<Source> for Ingredient {
    fn from(source: Source) -> Self {
        Self::Written(Writer::Source(source))
    }
}

impl fmt::Display for Ingredient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Written(writer) => writer.to_string(),
            Self::NormBias => "norm bias".to_owned(),
            Self::Bias => "projection bias".to_owned(),
            Self::EveryQuery => "for every query".to_owned(),
            Self::PositionBias => "position bias".to_owned(),
            Self::OtherHeads(count) => format!("the other {count} heads"),
            Self::OtherFeedForwards(count) => format!("the other {count} feed-forwards"),
            Self::Others(count) => format!("the other {count} biases"),
        })
    }
}

impl Serialize for Ingredient {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
