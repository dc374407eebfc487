//! Does context help? The loss late in a sequence beside the loss early in it (Olsson et al. 2022,
//! "In-context Learning and Induction Heads", section "Models undergo a phase change"), and the
//! step at which a measure makes its way.

use std::ops::Range;

/// The first and the last quarter of the positions at which anything is scored.
///
/// The in-context score is the mean loss over `late` minus that over `early`: below 0 where context
/// helps. What else makes late targets easier, the task's own grammar of positions for one, is in
/// it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarters {
    /// The first quarter.
    pub early: Range<usize>,
    /// The last quarter.
    pub late: Range<usize>,
}

impl Quarters {
    /// For sequences of one length; `None` where fewer than four positions are scored.
    ///
    /// ```
    /// use headlight_lens::Quarters;
    ///
    /// // Of ten positions the last eight are scored.
    /// let scored = vec![[[false; 2].as_slice(), &[true; 8]].concat()];
    /// let quarters = Quarters::of(&scored).unwrap();
    /// assert_eq!((quarters.early, quarters.late), (2..4, 8..10));
    /// assert_eq!(Quarters::of(&[vec![true; 3]]), None);
    /// ```
    #[must_use]
    pub fn of(scored: &[impl AsRef<[bool]>]) -> Option<Self> {
        let positions = scored
            .iter()
            .map(|row| row.as_ref().len())
            .max()
            .unwrap_or(0);
        let any = |position: &usize| {
            scored
                .iter()
                .any(|row| row.as_ref().get(*position) == Some(&true))
        };
        let first = (0..positions).find(any)?;
        let end = (0..positions).rfind(any)? + 1;
        let quarter = (end - first) / 4;
        (quarter > 0).then(|| Self {
            early: first..first + quarter,
            late: end - quarter..end,
        })
    }
}

/// The first of these steps at which a measure is at least half of the way from its first to its
/// last value; `None` where it ends where it began.
///
/// ```
/// use headlight_lens::half_way;
///
/// assert_eq!(half_way(&[(0, 0.0), (50, 0.1), (100, 0.6), (150, 0.9)]), Some(100));
/// assert_eq!(half_way(&[(0, 4.0), (50, 1.9), (100, 2.5), (150, 0.0)]), Some(50)); // downwards, and first
/// assert_eq!(half_way(&[(0, 1.0), (50, 2.0), (100, 1.0)]), None);
/// ```
#[must_use]
pub fn half_way(points: &[(usize, f64)]) -> Option<usize> {
    let (&(_, first), &(_, last)) = (points.first()?, points.last()?);
    let way = last - first;
    let passed = |&&(_, value): &&(usize, f64)| (value - first) / way >= 0.5;
    (way != 0.0).then(|| points.iter().find(passed).map(|&(step, _)| step))?
}
