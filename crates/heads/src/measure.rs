//! Which keys a head would attend to if it did one thing and nothing else.

use std::fmt;

/// A kind of attention, defined by its target keys: for query `q` over tokens `x`, the keys whose
/// weights count.
///
/// The score of a head is the mean, over the queries that have a target, of the weight on the
/// targets. Its ceiling is 1. On the same queries uniform causal attention scores the mean of
/// `targets / (q + 1)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// `A[q, q−1]`, for q ≥ 1.
    PreviousToken,
    /// `A[q, q]`, for q ≥ 1.
    CurrentToken,
    /// `A[q, 0]`, for q ≥ 1.
    FirstToken,
    /// `Σ A[q, j]` over earlier `j` with `x_j = x_q`: where was this token before?
    DuplicateToken,
    /// `Σ A[q, j]` over `j` with `x_{j−1} = x_q`, `j − 1 < q`: what followed it last time? (Olsson
    /// et al. 2022)
    Induction,
}

impl Measure {
    /// All measures, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::PreviousToken,
        Self::CurrentToken,
        Self::FirstToken,
        Self::DuplicateToken,
        Self::Induction,
    ];

    /// The name in files and tables; a head's role bears the same name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreviousToken => "previous token",
            Self::CurrentToken => "current token",
            Self::FirstToken => "first token",
            Self::DuplicateToken => "duplicate token",
            Self::Induction => "induction",
        }
    }

    /// The target keys of query `q`; none if the measure says nothing about this query.
    ///
    /// ```
    /// use headlight_heads::Measure;
    ///
    /// let tokens = [7, 8, 9, 7]; // query 3 sees a 7, which stood at 0 and was followed by the token at 1
    /// assert_eq!(Measure::DuplicateToken.targets(&tokens, 3), [0]);
    /// assert_eq!(Measure::Induction.targets(&tokens, 3), [1]);
    /// assert_eq!(Measure::PreviousToken.targets(&tokens, 3), [2]);
    /// assert!(Measure::Induction.targets(&tokens, 2).is_empty());
    /// ```
    #[must_use]
    pub fn targets(self, tokens: &[u32], q: usize) -> Vec<usize> {
        self.each_target(tokens, q).collect()
    }

    /// [`targets`](Self::targets), one by one.
    pub fn each_target(self, tokens: &[u32], q: usize) -> impl Iterator<Item = usize> + '_ {
        let (places, only_equal, shift) = match self {
            _ if q == 0 => (0..0, false, 0),
            Self::PreviousToken => (q - 1..q, false, 0),
            Self::CurrentToken => (q..q + 1, false, 0),
            Self::FirstToken => (0..1, false, 0),
            Self::DuplicateToken => (0..q, true, 0),
            Self::Induction => (0..q, true, 1),
        };
        places
            .filter(move |&j| !only_equal || tokens[j] == tokens[q])
            .map(move |j| j + shift)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
