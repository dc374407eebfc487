//! The scores that heads have, by name.

use crate::{Measure, named::named};

/// The name of a head's score.
///
/// This is the one list of scores: a score that is not in [`all`](Self::all) is not read from files.
///
/// ```
/// use headlight_heads::{Measure, ScoreName};
///
/// assert_eq!(ScoreName::from(Measure::Induction).name(), "induction");
/// assert_eq!("mean distance".parse(), Ok(ScoreName::MeanDistance));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScoreName {
    /// The weight on the target keys of a measure. Only such a score can be a [`Role`](crate::Role).
    Measure(Measure),
    /// 0 when a head looks at one key, 1 (null and ceiling at once) when it looks at all equally.
    /// It says how sharp a head is, not at what it looks, so it is no role.
    Entropy,
    /// How far back a head looks, in tokens. The ceiling is the mean of the furthest that a query
    /// sees, and the null half of it.
    MeanDistance,
}

impl ScoreName {
    /// All scores: those of the measures in the order of tables, then the others.
    pub fn all() -> impl Iterator<Item = Self> {
        Measure::all()
            .into_iter()
            .map(Self::Measure)
            .chain([Self::Entropy, Self::MeanDistance])
    }

    /// The name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measure(measure) => measure.name(),
            Self::Entropy => "entropy",
            Self::MeanDistance => "mean distance",
        }
    }

    /// How the score is computed.
    #[must_use]
    pub fn formula(self) -> &'static str {
        match self {
            Self::Measure(measure) => measure.formula(),
            Self::Entropy => {
                "mean over queries that see n ≥ 2 keys of −Σ A ln A / ln n; 1 is evenly spread, 0 is one token"
            }
            Self::MeanDistance => "mean over q ≥ 1 of Σ A[q, k]·(q − k), in tokens",
        }
    }

    /// What a head with a high score does, as the predicate of a sentence about it.
    #[must_use]
    pub fn does(self) -> &'static str {
        match self {
            Self::Measure(measure) => measure.does(),
            Self::Entropy => "spreads its attention",
            Self::MeanDistance => "looks far back",
        }
    }
}

impl From<Measure> for ScoreName {
    fn from(measure: Measure) -> Self {
        Self::Measure(measure)
    }
}

named!(ScoreName, "score");
