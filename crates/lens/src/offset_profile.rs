//! Where around a match does a head look? A circuit can copy from elsewhere than one after it.

use std::fmt;

use headlight_heads::Score;

use crate::{LayerPattern, score::score_targets};

/// A place that the current token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Offset {
    /// So far after an earlier token equal to the current one: 0 is the duplicate itself, 1 what
    /// induction heads see.
    Match(i32),
    /// So far back from the current position.
    Distance(usize),
}

impl Offset {
    /// `match−3` … `match+3`, then `distance 0` … `distance 4`.
    pub fn all() -> impl Iterator<Item = Self> {
        (-3..=3).map(Self::Match).chain((0..=4).map(Self::Distance))
    }

    /// The keys at this place for query `q`, `None` if no earlier token equals the current one.
    fn targets(self, tokens: &[u32], q: usize) -> Option<Vec<usize>> {
        let matches: Vec<usize> = (0..q).filter(|&j| tokens[j] == tokens[q]).collect();
        if matches.is_empty() {
            return None;
        }
        let visible = |key: &usize| *key <= q;
        Some(match self {
            Self::Match(offset) => {
                let shifted = |j| usize::try_from(i64::try_from(j).ok()? + i64::from(offset)).ok();
                matches
                    .into_iter()
                    .filter_map(shifted)
                    .filter(visible)
                    .collect()
            }
            Self::Distance(distance) => q.checked_sub(distance).into_iter().collect(),
        })
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Match(0) => f.pad("match"),
            Self::Match(offset) if *offset < 0 => f.pad(&format!("match−{}", -offset)),
            Self::Match(offset) => f.pad(&format!("match+{offset}")),
            Self::Distance(distance) => f.pad(&format!("distance {distance}")),
        }
    }
}

/// Every head's mean weight at each [`Offset`], over the queries whose token has been there before.
/// The ceiling is 1 (less where a window hides the place), the null uniform attention on the same
/// rows. Empty if no token comes twice.
///
/// A head that looks two after the match and a later layer that shifts what it carries make the
/// same predictions as an induction head, and score nothing on `match+1`.
///
/// # Panics
/// If `tokens` are not as long as the patterns.
///
/// ```
/// use headlight_lens::{LayerPattern, Offset, offset_profile};
///
/// // One head, tokens 7 8 7: the last query has been at 0 and looks at the 8 after it.
/// let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1, 0.9, 0.0];
/// let profile = offset_profile(LayerPattern::new([1, 1, 3], &weights), &[vec![7, 8, 7]]);
/// let at = |offset| profile.iter().find(|(place, _)| *place == offset).unwrap().1[0];
/// assert!((at(Offset::Match(1)).value - 0.9).abs() < 1e-6);
/// assert!((at(Offset::Distance(1)).value - 0.9).abs() < 1e-6); // the same key, by another name
/// assert_eq!(at(Offset::Match(1)).null, 1.0 / 3.0);
/// ```
#[must_use]
pub fn offset_profile(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<(Offset, Vec<Score>)> {
    let score = |offset: Offset| {
        let scores = score_targets(&pattern, |sequence, q| offset.targets(&tokens[sequence], q))?;
        Some((offset, scores))
    };
    Offset::all().filter_map(score).collect()
}
