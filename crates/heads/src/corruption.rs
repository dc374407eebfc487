//! What differs between two prompts.

use crate::named::named;

/// What differs between the two prompts of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Corruption {
    /// What followed the current token before is another token: what is copied.
    #[default]
    Value,
    /// The earlier token that equals the current one is another token: where to look.
    Key,
    /// The current token is another token, which has been there before too: what to look for.
    Query,
}

impl Corruption {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Value, Self::Key, Self::Query];

    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Key => "key",
            Self::Query => "query",
        }
    }

    /// In a sentence: what differs.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Value => "what followed the current token before is replaced",
            Self::Key => "the earlier token that equals the current one is replaced",
            Self::Query => "the current token is replaced by another that has been there before",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(Corruption, "kind of pairs");
