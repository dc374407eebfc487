//! What heads are used as, as rows: what is left of the run's task when they are interfered with.

use std::collections::BTreeMap;

use headlight_heads::{Ablation, HeadName, HeadSet, Interval, Measure, Reader, number};
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

impl Left {
    /// How far accuracy falls from `untouched`; `None` if not by at least 0.02, or if the two
    /// intervals meet.
    #[must_use]
    pub fn fall_from(&self, untouched: &Self) -> Option<f64> {
        let fall = untouched.accuracy - self.accuracy;
        let is_sure = self.interval.is_below(untouched.interval);
        (fall >= SMALLEST_FALL && is_sure).then_some(fall)
    }
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

/// A head that holds a role, and what is lost without it where the other heads of the role are off
/// already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Missed {
    /// The head.
    pub head: HeadName,
    /// The role, which it may hold at some positions only.
    pub role: Measure,
    /// The other heads that hold it.
    pub others: Vec<HeadName>,
    /// The accuracy without the others.
    pub without_others: f64,
    /// The accuracy that is lost without the head too.
    pub cost: f64,
    /// The lower end of the cost's 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The accuracy that could be lost: what remains without the others, less what remains without
    /// any head.
    pub to_lose: f64,
}

impl Missed {
    /// Whether the head has the pattern of its role only: without the others something could be
    /// lost, and without it nothing is.
    #[must_use]
    pub fn is_pattern_only(&self) -> bool {
        self.high < SMALLEST_FALL && self.to_lose >= SMALLEST_FALL
    }

    /// Whether the head does the work of its role where the others are off.
    #[must_use]
    pub fn is_backup(&self) -> bool {
        !self.others.is_empty() && self.low > 0.0 && self.cost >= SMALLEST_FALL
    }
}

/// Some heads, and what is left when what they do is replaced.
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
    /// What stands in place of ablated heads. Hidden from one kind of reader, heads leave their
    /// mean.
    #[serde(default)]
    pub by: Ablation,
    /// The model as it is.
    pub untouched: Left,
    /// Each head alone, the heads of each role together, and the heads of each layer together.
    pub uses: Vec<HeadsUse>,
    /// Each head that holds a role beside the others that hold it; at the end of training.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
}

impl UsesRow {
    /// The heads that some test marks as needed: accuracy falls without them, alone or with the
    /// others of their role, or with their output hidden from a reader.
    #[must_use]
    pub fn needed(&self) -> Vec<HeadName> {
        let of_heads = |uses: &&HeadsUse| uses.name != HeadSet::Layer;
        let mut needed = Vec::new();
        for uses in self.uses.iter().filter(of_heads) {
            let mut left = uses.ablated.iter().chain(uses.through.values());
            if left.any(|left| self.fall(left).is_some()) {
                needed.extend_from_slice(&uses.heads);
            }
        }
        needed.sort();
        needed.dedup();
        needed
    }

    /// Whether `head` has only the pattern of a role.
    #[must_use]
    pub fn is_pattern_only(&self, head: HeadName) -> bool {
        let of_head = |missed: &&Missed| missed.head == head;
        self.missed
            .iter()
            .find(of_head)
            .is_some_and(Missed::is_pattern_only)
    }

    /// How far accuracy falls from `untouched`; `None` if not by at least 0.02, or if the two
    /// intervals meet.
    #[must_use]
    pub fn fall(&self, left: &Left) -> Option<f64> {
        left.fall_from(&self.untouched)
    }

    /// What `head` is used as: who needs what it writes, and by how much accuracy falls without it.
    /// Where nothing falls without it alone: `pattern only`; or the same of all heads that look like
    /// it, said to be of the set; or `backup`, with the fall where the other heads that hold a role
    /// with it are off; none where nothing is seen.
    #[must_use]
    pub fn used_as(&self, head: HeadName) -> Option<String> {
        let mut alone = None;
        let mut in_set = None;
        for uses in &self.uses {
            if !uses.heads.contains(&head) || uses.ablated.is_none() {
                continue;
            }
            let first = if uses.heads.len() == 1 {
                &mut alone
            } else {
                &mut in_set
            };
            if first.is_none() {
                *first = self.readers(uses);
            }
        }
        if alone.is_some() {
            return alone;
        }
        if self.is_pattern_only(head) {
            return Some("pattern only".to_owned());
        }
        if let Some(readers) = in_set {
            return Some(format!("{readers} (set)"));
        }
        let is_backup = |missed: &&Missed| missed.head == head && missed.is_backup();
        let missed = self.missed.iter().find(is_backup)?;
        Some(format!("backup −{:.2}", missed.cost))
    }

    /// The readers through whom alone accuracy falls when they do not see what the heads write, and
    /// how far, the most first.
    #[must_use]
    pub fn falls_through(&self, uses: &HeadsUse) -> Vec<(Reader, f64)> {
        let through = uses.through.iter();
        let falls = through.filter_map(|(reader, left)| Some((*reader, self.fall(left)?)));
        let mut falls: Vec<(Reader, f64)> = falls.collect();
        falls.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        falls
    }

    /// `keys, queries −0.80`: through which single readers accuracy falls, the most first, and by
    /// how much it falls when all are kept from what the heads write; `all −0.30` where it falls
    /// through no single one.
    fn readers(&self, uses: &HeadsUse) -> Option<String> {
        let whole = self.fall(uses.ablated.as_ref()?)?;
        let falls = self.falls_through(uses).into_iter();
        let readers: Vec<&str> = falls.map(|(reader, _)| reader.name()).collect();
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
    use headlight_heads::Role;

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

    fn missed(head: usize, high: f64, to_lose: f64) -> Missed {
        Missed {
            head: HeadName { layer: 0, head },
            role: Measure::Induction,
            others: vec![HeadName { layer: 0, head: 9 }],
            without_others: to_lose,
            cost: high,
            low: high,
            high,
            to_lose,
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
            by: Ablation::Mean,
            untouched: left(0.99),
            uses: rows,
            missed: vec![
                missed(2, 0.001, 0.9),
                missed(4, 0.0, 0.01),
                missed(5, 0.3, 0.9),
            ],
        };
        let used_as = |head| row.used_as(HeadName { layer: 0, head });
        // .02 through logits is inside the intervals.
        assert_eq!(used_as(0).as_deref(), Some("keys −0.79"));
        assert_eq!(used_as(1).as_deref(), Some("logits −0.89 (set)"));
        // Without the others of its set nothing is lost by taking it away too.
        assert_eq!(used_as(2).as_deref(), Some("pattern only"));
        assert_eq!(used_as(3).as_deref(), Some("all −0.49"));
        // Without the others nothing is left that it could be missed for.
        assert_eq!(used_as(4), None);
        assert_eq!(used_as(5).as_deref(), Some("backup −0.30"));
        let needed: Vec<usize> = row.needed().iter().map(|head| head.head).collect();
        assert_eq!(needed, [0, 1, 2, 3]);
    }
}
