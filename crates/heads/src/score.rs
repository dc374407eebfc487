//! A head score, and what stands beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A head score: never a number alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The mean over all rows the score speaks of.
    pub value: f64,
    /// What uniform attention scores on the same rows.
    pub null: f64,
    /// The largest value there is.
    pub ceiling: f64,
    /// The lower end of the 95 % interval, by bootstrap over sequences.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Scores by name.
pub type Scores = BTreeMap<String, Score>;

/// A score against a gold relation, beside both of its nulls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelationScore {
    /// The weight from the dependent word to its source; its null is uniform attention.
    #[serde(flatten)]
    pub score: Score,
    /// What the same head gives at the same distance to words that are no source.
    pub distance_null: f64,
    /// How many pairs of words the means are over.
    pub rows: usize,
}

/// Relation scores by name.
pub type RelationScores = BTreeMap<String, RelationScore>;
