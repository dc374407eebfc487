//! What stands in the place of a head that is off.

use crate::named::named;

/// What stands in place of the blend of values, `hook_z`, of a head that is off.
///
/// ```
/// use headlight_heads::Ablation;
///
/// assert_eq!("mean".parse(), Ok(Ablation::Mean));
/// assert_eq!(Ablation::default(), Ablation::Mean);
/// let error = "nothing".parse::<Ablation>().unwrap_err();
/// assert_eq!(error.to_string(), "nothing is no ablation, there are: zero, mean, resample");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ablation {
    /// The number 0. This also removes what the head adds everywhere, so later layers meet inputs
    /// that they have never seen.
    Zero,
    /// Its mean over sequences and positions. Only what differs from one place to another is lost.
    #[default]
    Mean,
    /// The blend of the same head in another sequence, at the same position.
    Resample,
}

impl Ablation {
    /// All of them, in the order of help texts.
    pub const ALL: [Self; 3] = [Self::Zero, Self::Mean, Self::Resample];

    /// The name in files and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Mean => "mean",
            Self::Resample => "resample",
        }
    }

    /// What stands in the head's place, for a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Zero => "0",
            Self::Mean => "its mean over sequences and positions",
            Self::Resample => "its blend in another sequence",
        }
    }

    fn all() -> [Self; Self::ALL.len()] {
        Self::ALL
    }
}

named!(Ablation, "ablation");
