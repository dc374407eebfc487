//! How sure a number is.

use serde::{Deserialize, Serialize};

use crate::number;

/// 95 % of a normal distribution lie within so many standard deviations.
const Z: f64 = 1.959_963_984_540_054;

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

    /// Of a share of `of` independent trials, `right` of which are right (Wilson 1927): with z = 1.96 and
    /// p = right/of, `(p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n)`. It has a width even where
    /// all trials are right. Without trials it is 0 to 1.
    ///
    /// ```
    /// use headlight_heads::Interval;
    ///
    /// let all_right = Interval::of_share(10, 10);
    /// assert!((all_right.low - 0.7225).abs() < 1e-4 && (all_right.high - 1.0).abs() < 1e-12);
    /// ```
    #[must_use]
    pub fn of_share(right: usize, of: usize) -> Self {
        if of == 0 {
            return Self {
                low: 0.0,
                high: 1.0,
            };
        }
        let n = of as f64;
        let share = right as f64 / n;
        let squared = Z * Z / n;
        let middle = share + squared / 2.0;
        let half = Z * (share * (1.0 - share) / n + squared / (4.0 * n)).sqrt();
        Self {
            low: ((middle - half) / (1.0 + squared)).max(0.0),
            high: ((middle + half) / (1.0 + squared)).min(1.0),
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
