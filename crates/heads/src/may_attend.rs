//! Which keys of a pattern are masked: not the same as a weight of 0.

use std::ops::Range;

/// Which keys a query may attend to.
///
/// ```
/// use headlight_heads::MayAttend;
///
/// let keys = |may_attend: MayAttend| [0, 1, 2, 3].map(|query| may_attend.keys(query, 4));
/// assert_eq!(keys(MayAttend::All), [0..4, 0..4, 0..4, 0..4]);
/// assert_eq!(keys(MayAttend::causal(None)), [0..1, 0..2, 0..3, 0..4]);
/// assert_eq!(keys(MayAttend::causal(Some(2))), [0..1, 0..2, 1..3, 2..4]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayAttend {
    /// All keys.
    All,
    /// Those up to the query.
    Causal,
    /// Those up to the query, at most so many.
    Window(usize),
}

impl MayAttend {
    /// No query sees the future; with a window, nor what is that far before it.
    #[must_use]
    pub fn causal(window: Option<usize>) -> Self {
        window.map_or(Self::Causal, Self::Window)
    }

    /// The keys of one query, out of `length`.
    #[must_use]
    pub fn keys(self, query: usize, length: usize) -> Range<usize> {
        match self {
            Self::All => 0..length,
            Self::Causal => 0..query + 1,
            Self::Window(width) => (query + 1).saturating_sub(width)..query + 1,
        }
    }
}
