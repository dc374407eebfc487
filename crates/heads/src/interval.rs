//! How sure a number is.

use serde::{Deserialize, Serialize};

use crate::number;

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    #[serde(with = "number")]
    pub low: f64,
    /// Its upper end.
    #[serde(with = "number")]
    pub high: f64,
}

impl Interval {
    /// The interval of a number that is certain.
    #[must_use]
    pub const fn point(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// Half of its width: the number after ±.
    ///
    /// ```
    /// use headlight_heads::Interval;
    ///
    /// let interval = Interval { low: 0.25, high: 0.75 };
    /// assert_eq!(interval.half(), 0.25);
    /// assert!(interval.is_below(Interval::point(0.8)) && !interval.is_below(Interval::point(0.7)));
    /// ```
    #[must_use]
    pub fn half(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether all of it lies below all of `other`.
    #[must_use]
    pub fn is_below(self, other: Self) -> bool {
        self.high < other.low
    }
}
