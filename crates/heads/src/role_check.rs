//! How sure a role is where many heads were looked at.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// The test of a head's role: the null hypothesis is that the share, (score − null)/(ceiling −
/// null), is at most ½.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoleCheck {
    /// One-sided, by Student's t over the sequences.
    pub p: f64,
    /// Whether the role is among those that Benjamini and Hochberg's procedure keeps at q = 0.05,
    /// over all heads and measures.
    pub is_sure: bool,
    /// The lower end of the interval of the score, adjusted for the selection (false coverage
    /// rate 0.05).
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl RoleCheck {
    /// The adjusted interval of the score.
    #[must_use]
    pub fn interval(&self) -> Interval {
        Interval {
            low: self.low,
            high: self.high,
        }
    }
}
