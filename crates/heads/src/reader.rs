//! Who reads what heads wrote.

use serde::Serialize;

/// Who reads what heads wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
    /// The queries of all later layers.
    Queries,
    /// The keys of all later layers.
    Keys,
    /// The values of all later layers.
    Values,
    /// The unembedding, directly.
    Logits,
}

impl Reader {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Queries, Self::Keys, Self::Values, Self::Logits];

    /// As in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queries => "queries",
            Self::Keys => "keys",
            Self::Values => "values",
            Self::Logits => "logits",
        }
    }
}
