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
