//! What heads are used as, as rows: what is left of the run's task when they are interfered with.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, HeadSet, Interval, Reader, number};
use serde::{Deserialize, Serialize};

/// A fall of accuracy below this is not called one, however sure it is.
const SMALLEST_FALL: f64 = 0.02;

/// What is left after an intervention.
///
/// Files have the ends of the interval as `low` and `high` beside the other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenLeft")]
pub struct Left {
    /// On the targets that the task scores.
    #[serde(with = "number")]
    pub accuracy: f64,
    /// Of the accuracy, by bootstrap over sequences.
    #[serde(flatten)]
    pub interval: Interval,
    /// Mean over these targets, nats.
    #[serde(with = "number")]
    pub loss: f64,
}

/// What is left, as it is read. With `flatten` serde would keep every number of the object until it
/// knows which ones are an interval's, and a hostile file has many.
#[derive(Deserialize)]
struct WrittenLeft {
    #[serde(with = "number")]
    accuracy: f64,
    #[serde(with = "number")]
    low: f64,
    #[serde(with = "number")]
    high: f64,
    #[serde(with = "number")]
    loss: f64,
}

impl From<WrittenLeft> for Left {
    fn from(written: WrittenLeft) -> Self {
        let WrittenLeft {
            accuracy,
            low,
            high,
            loss,
        } = written;
        Self {
            accuracy,
            interval: Interval { low, high },
            loss,
        }
    }
}

/// Some heads, and what is left when what they do is replaced by its mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadsUse {
    /// One head, or several together.
    pub heads: Vec<HeadName>,
    /// What they have in common.
    pub name: HeadSet,
    /// Replaced for every reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablated: Option<Left>,
    /// Replaced for one kind of reader only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub through: BTreeMap<Reader, Left>,
}

/// A line of `uses.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsesRow {
    /// Updates done.
    pub step: usize,
    /// Sequences of the run's task that it is measured on.
    pub sequences: usize,
    /// The model as it is.
    pub untouched: Left,
    /// Each head alone, the heads of each role together, and the heads of each layer together.
    pub uses: Vec<HeadsUse>,
}

impl UsesRow {
    /// How far accuracy falls from `untouched`; `None` if not by at least .02, or if the two
    /// intervals meet.
    #[must_use]
    pub fn fall(&self, left: &Left) -> Option<f64> {
        let fall = self.untouched.accuracy - left.accuracy;
        let is_sure = left.interval.is_below(self.untouched.interval);
        (fall >= SMALLEST_FALL && is_sure).then_some(fall)
    }

    /// What `head` is used as: who needs what it writes, and by how much accuracy falls without it.
    /// Where nothing falls without it alone, the same of all heads that look like it, said to be of
    /// the set; none where nothing is seen.
    #[must_use]
    pub fn used_as(&self, head: HeadName) -> Option<String> {
        let with_head = |uses: &&HeadsUse| uses.heads.contains(&head) && uses.ablated.is_some();
        let (alone, sets): (Vec<&HeadsUse>, Vec<&HeadsUse>) = self
            .uses
            .iter()
            .filter(with_head)
            .partition(|uses| uses.heads.len() == 1);
        let alone = alone.iter().find_map(|uses| self.readers(uses));
        let set = || {
            sets.iter()
                .find_map(|uses| self.readers(uses))
                .map(|readers| format!("{readers} (set)"))
        };
        alone.or_else(set)
    }

    /// `keys, queries −.80`: through which single readers accuracy falls, the most first, and by
    /// how much it falls when all are kept from what the heads write; `all −.30` where it falls
    /// through no single one.
    fn readers(&self, uses: &HeadsUse) -> Option<String> {
        let whole = self.fall(uses.ablated.as_ref()?)?;
        let falls = uses
            .through
            .iter()
            .filter_map(|(reader, left)| Some((reader.name(), self.fall(left)?)));
        let mut falls: Vec<(&str, f64)> = falls.collect();
        falls.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let readers: Vec<&str> = falls.into_iter().map(|(reader, _)| reader).collect();
        let readers = if readers.is_empty() {
            "all".to_owned()
        } else {
            readers.join(", ")
        };
        Some(format!("{readers} −{whole:.2}"))
    }
}

#[cfg(test)]
mod tests {
    use headlight_heads::{Measure, Role};

    use super::*;

    fn left(accuracy: f64) -> Left {
        Left {
            accuracy,
            interval: Interval {
                low: accuracy - 0.01,
                high: accuracy + 0.01,
            },
            loss: 0.0,
        }
    }

    fn uses(heads: &[usize], ablated: f64, through: &[(Reader, f64)]) -> HeadsUse {
        HeadsUse {
            heads: heads
                .iter()
                .map(|&head| HeadName { layer: 0, head })
                .collect(),
            name: HeadSet::LooksLike(Role::Of(Measure::Induction)),
            ablated: Some(left(ablated)),
            through: through
                .iter()
                .map(|&(reader, accuracy)| (reader, left(accuracy)))
                .collect(),
        }
    }

    #[test]
    fn a_use_is_a_fall_beyond_the_intervals() {
        let rows = vec![
            uses(&[0], 0.2, &[(Reader::Keys, 0.3), (Reader::Logits, 0.97)]),
            uses(&[1], 0.985, &[]),
            uses(&[2], 0.98, &[]),
            uses(&[3], 0.5, &[(Reader::Keys, 0.99)]),
            uses(&[1, 2], 0.1, &[(Reader::Logits, 0.1)]),
        ];
        let row = UsesRow {
            step: 0,
            sequences: 1,
            untouched: left(0.99),
            uses: rows,
        };
        let used_as = |head| row.used_as(HeadName { layer: 0, head });
        // .02 through logits is inside the intervals.
        assert_eq!(used_as(0).as_deref(), Some("keys −0.79"));
        assert_eq!(used_as(1).as_deref(), Some("logits −0.89 (set)"));
        assert_eq!(used_as(3).as_deref(), Some("all −0.49"));
        assert_eq!(used_as(4), None);
    }
}
