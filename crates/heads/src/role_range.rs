//! Where in a sequence a head holds a role.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Interval, Measure};

/// Consecutive queries at which a head holds a role: it looks one back at positions 2 to 27, say,
/// and not after them.
///
/// The range was found on one half of the sequences. Everything else was measured on the other.
///
/// ```
/// use headlight_heads::{Interval, Measure, RoleRange};
///
/// let range = RoleRange {
///     role: Measure::PreviousToken,
///     first: 2,
///     last: 27,
///     share: 0.9,
///     low: 0.88,
///     high: 0.92,
///     last_low: 25,
///     last_high: 28,
///     writes: Some(0.11),
/// };
/// assert_eq!(range.to_string(), "previous token, positions 2–27");
/// assert!(range.holds(27) && !range.holds(28));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoleRange {
    /// What the head does there.
    pub role: Measure,
    /// The first query, counted from 0.
    pub first: usize,
    /// The last query.
    pub last: usize,
    /// The mean of (score − null)/(ceiling − null) over these queries.
    pub share: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end of its 95 % interval.
    pub high: f64,
    /// The earliest query at which the range may end, by a simultaneous 95 % band.
    pub last_low: usize,
    /// The latest query at which the range may end.
    pub last_high: usize,
    /// The root mean square of what the head writes there, over that of the stream. None where it
    /// was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<f64>,
}

impl RoleRange {
    /// Whether query `position` lies inside.
    #[must_use]
    pub fn holds(&self, position: usize) -> bool {
        (self.first..=self.last).contains(&position)
    }

    /// The 95 % interval of the share.
    #[must_use]
    pub fn interval(&self) -> Interval {
        Interval {
            low: self.low,
            high: self.high,
        }
    }
}

impl fmt::Display for RoleRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role, first, last, ..
        } = self;
        f.pad(&format!("{role}, positions {first}–{last}"))
    }
}
