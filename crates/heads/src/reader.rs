//! Who reads what heads wrote.

use crate::named::named;

/// Who reads what heads wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Queries, Self::Keys, Self::Values, Self::Logits];

    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queries => "queries",
            Self::Keys => "keys",
            Self::Values => "values",
            Self::Logits => "logits",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(Reader, "reader");
