//! A head score, and what stands beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Interval, ScoreName, number};

/// A head score: never a number alone.
///
/// Files have the ends of the interval as `low` and `high` beside the other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenScore")]
pub struct Score {
    /// The mean over all rows the score speaks of.
    #[serde(with = "number")]
    pub value: f64,
    /// What uniform attention scores on the same rows.
    #[serde(with = "number")]
    pub null: f64,
    /// The largest value there is.
    #[serde(with = "number")]
    pub ceiling: f64,
    /// By bootstrap over sequences.
    #[serde(flatten)]
    pub interval: Interval,
}

/// A score as it is read. With `flatten` serde would keep every number of the object until it knows
/// which ones are an interval's, and a hostile file has many.
#[derive(Deserialize)]
struct WrittenScore {
    #[serde(with = "number")]
    value: f64,
    #[serde(with = "number")]
    null: f64,
    #[serde(with = "number")]
    ceiling: f64,
    #[serde(with = "number")]
    low: f64,
    #[serde(with = "number")]
    high: f64,
}

impl From<WrittenScore> for Score {
    fn from(written: WrittenScore) -> Self {
        let WrittenScore {
            value,
            null,
            ceiling,
            low,
            high,
        } = written;
        Self {
            value,
            null,
            ceiling,
            interval: Interval { low, high },
        }
    }
}

impl Score {
    /// How far the value is on the way from the null to the ceiling: 0 is the null, 1 the ceiling.
    /// Not finite where the ceiling is the null.
    ///
    /// ```
    /// use headlight_heads::{Interval, Score};
    ///
    /// let score = Score { value: 0.625, null: 0.25, ceiling: 1.0, interval: Interval::point(0.625) };
    /// assert_eq!(score.share(), 0.5);
    /// ```
    #[must_use]
    pub fn share(&self) -> f64 {
        (self.value - self.null) / (self.ceiling - self.null)
    }
}

/// Scores by name, in the order of the names.
pub type Scores = BTreeMap<ScoreName, Score>;

/// A score against a gold relation, beside both of its nulls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelationScore {
    /// The weight from the dependent word to its source; its null is uniform attention.
    #[serde(flatten)]
    pub score: Score,
    /// What the same head gives at the same distance to words that are no source.
    #[serde(with = "number")]
    pub distance_null: f64,
    /// How many pairs of words the means are over.
    pub rows: usize,
}

/// Relation scores by the name of the relation. A task names its relations, so they are text.
pub type RelationScores = BTreeMap<String, RelationScore>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;

    const WRITTEN: &str = r#"{"value":0.75,"null":0.25,"ceiling":1.0,"low":0.5,"high":0.875}"#;

    #[test]
    fn a_score_is_five_numbers_in_files() {
        let score: Score = serde_json::from_str(WRITTEN).unwrap();
        let interval = Interval {
            low: 0.5,
            high: 0.875,
        };
        assert_eq!((score.value, score.interval), (0.75, interval));
        assert_eq!(serde_json::to_string(&score).unwrap(), WRITTEN);
    }

    #[test]
    fn a_score_that_is_no_number_is_read_back() {
        let text = WRITTEN
            .replace("0.75", r#""NaN""#)
            .replace("0.875", r#""inf""#);
        let score: Score = serde_json::from_str(&text).unwrap();
        assert!(score.value.is_nan() && score.interval.high == f64::INFINITY);
        assert_eq!(serde_json::to_string(&score).unwrap(), text);
        let error = serde_json::from_str::<Score>(&text.replace("NaN", "nan")).unwrap_err();
        let expected = r#"invalid value: string "nan", expected a number, "NaN", "inf" or "-inf""#;
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn scores_stand_in_the_order_of_their_names() {
        let score: Score = serde_json::from_str(WRITTEN).unwrap();
        let scores: Scores = ScoreName::all().map(|name| (name, score)).collect();
        let json = serde_json::to_string(&scores).unwrap();
        let is_score = |text: &&str| text.parse::<ScoreName>().is_ok();
        let written: Vec<&str> = json.split('"').filter(is_score).collect();
        let mut names: Vec<&str> = ScoreName::all().map(ScoreName::name).collect();
        assert_ne!(written, names, "tables have an order of their own");
        names.sort_unstable();
        assert_eq!(written, names);
        let read: Scores = serde_json::from_str(&json).unwrap();
        assert_eq!(read[&Measure::Induction.into()], score);
    }
}
