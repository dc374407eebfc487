//! Which word depends on which.

/// Inside one sequence, the word at `dependent` depends on the word at `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation {
    /// The relation's name, for example `verb→subject`.
    pub name: &'static str,
    /// The position of the word that depends.
    pub dependent: usize,
    /// The position of the word it depends on.
    pub source: usize,
}

impl Relation {
    /// Whether a causal head can attend from the dependent to the source, which is so if the source
    /// stands earlier.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.source < self.dependent
    }
}
