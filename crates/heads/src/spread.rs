//! One measure over several seeds.

use serde::{Deserialize, Serialize};

/// One measure over several seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean over the seeds that have it.
    pub mean: f64,
    /// The lower end of the 95 % interval of the mean (Student's t); none for a single value.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Each seed's, in the order of the seeds.
    pub values: Vec<Option<f64>>,
}

/// One measure over several seeds that takes few values: a number of heads, a step that was logged.
/// It has a range and no interval: three values on a grid do not bear Student's t.
///
/// ```
/// use headlight_heads::Values;
///
/// let emerged = Values { values: vec![Some(250.0), None, Some(300.0)] };
/// assert_eq!(emerged.range(), Some((250.0, 300.0)));
/// assert_eq!((emerged.count(), Values { values: vec![None] }.range()), (2, None));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Values {
    /// Each seed's, in the order of the seeds; none of a seed without.
    pub values: Vec<Option<f64>>,
}

impl Values {
    /// The lowest and the highest value.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        let known = self.values.iter().copied().flatten();
        let lowest = known.clone().reduce(f64::min)?;
        Some((lowest, known.reduce(f64::max)?))
    }

    /// The number of seeds that have a value.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.iter().flatten().count()
    }
}
