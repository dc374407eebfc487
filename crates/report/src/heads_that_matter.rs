//! The heads that the report begins with: those that hold a role, and those without which the model
//! answers less.

use headlight_heads::{HeadName, HeadSet, Measure, Reader, Role, RoleEvent, SequenceKind};
use headlight_run::{HeadsUse, UsesRow};
use serde::{Deserialize, Serialize};

use crate::{ReportData, role_look::measures_as_told};

/// More heads of one kind are counted, not listed.
const MOST_OF_A_KIND: usize = 8;

/// Heads that look alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadGroup {
    /// What they look like, as a whole or at some positions; `mixed` for heads that look like
    /// nothing and are needed.
    pub role: Role,
    /// The heads, first layer first.
    pub heads: Vec<HeadThatMatters>,
    /// How many more there are.
    pub more: usize,
    /// What is left without all that hold the role as a whole, where there are several.
    pub together: Option<Without>,
}

/// One head, in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadThatMatters {
    /// The head.
    pub head: HeadName,
    /// The first and the last query at which it holds the role, where it does not as a whole.
    pub positions: Option<(usize, usize)>,
    /// Whether the role is sure, of so many heads and measures that were looked at.
    pub is_sure: bool,
    /// It took on the role after the first of these steps, and by the second.
    pub formed: Option<(usize, usize)>,
    /// Its score on the probe at the end.
    pub score: Option<SeenScore>,
    /// What is left without it alone.
    pub without: Option<Without>,
    /// What it is worth where the other heads that hold its role are off, where that was measured.
    pub beside_others: Option<BesideOthers>,
}

/// What a head is worth where the others that hold its role are off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum BesideOthers {
    /// Nothing is lost without it: it has the pattern of its role only.
    PatternOnly,
    /// So much accuracy is lost without it: it does the work of its role then.
    Backup(f64),
}

/// A score and what it is read against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeenScore {
    /// The mean over all rows.
    pub value: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What evenly spread attention scores.
    pub null: f64,
}

/// What is left of the task without some heads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The heads that are off.
    pub heads: Vec<HeadName>,
    /// Accuracy.
    pub accuracy: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How far accuracy falls; none where the fall is not sure.
    pub fall: Option<f64>,
    /// The readers through which it falls, the most first.
    pub through: Vec<Reader>,
}

/// The heads that matter at the end, in the order in which roles are told.
#[must_use]
pub fn heads_that_matter(data: &ReportData) -> Vec<HeadGroup> {
    let mut groups = Vec::new();
    for measure in measures_as_told() {
        groups.extend(group(data, Role::Of(measure), &holders(data, measure)));
    }
    groups.extend(group(data, Role::Mixed, &needed_without_role(data)));
    groups
}

/// A head and the positions at which it holds a role, where it does not as a whole.
type Holder = (HeadName, Option<(usize, usize)>);

/// The heads that hold a role: as a whole, or at some positions and no other as a whole.
fn holders(data: &ReportData, measure: Measure) -> Vec<Holder> {
    let mut holders = Vec::new();
    for (index, (head, role)) in data.heads.iter().enumerate() {
        let ranges = data.positions.get(index).map(|held| &held.ranges[..]);
        let range = ranges
            .unwrap_or_default()
            .iter()
            .find(|range| range.role == measure);
        match (role, range) {
            (Role::Of(own), _) if *own == measure => holders.push((*head, None)),
            (Role::Mixed, Some(range)) => holders.push((*head, Some((range.first, range.last)))),
            _ => {}
        }
    }
    holders
}

/// The heads that look like nothing anywhere, and without which alone accuracy falls.
fn needed_without_role(data: &ReportData) -> Vec<Holder> {
    let mut needed = Vec::new();
    for (index, (head, role)) in data.heads.iter().enumerate() {
        let has_range = data
            .positions
            .get(index)
            .is_some_and(|held| !held.ranges.is_empty());
        let falls = without(data, &[*head]).is_some_and(|without| without.fall.is_some());
        if *role == Role::Mixed && !has_range && falls {
            needed.push((*head, None));
        }
    }
    needed
}

fn group(data: &ReportData, role: Role, holders: &[Holder]) -> Option<HeadGroup> {
    let mut heads: Vec<HeadThatMatters> = holders
        .iter()
        .map(|holder| in_one_line(data, role, holder))
        .collect();
    if heads.is_empty() {
        return None;
    }
    let more = heads.len().saturating_sub(MOST_OF_A_KIND);
    if more > 0 {
        heads.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        heads.truncate(MOST_OF_A_KIND);
        heads.sort_by_key(|line| line.head);
    }
    let whole: Vec<HeadName> = holders
        .iter()
        .filter(|(_, positions)| positions.is_none())
        .map(|(head, _)| *head)
        .collect();
    let are_several = whole.len() > 1 && role != Role::Mixed;
    Some(HeadGroup {
        role,
        heads,
        more,
        together: are_several.then(|| without(data, &whole)).flatten(),
    })
}

impl HeadThatMatters {
    /// By how much it is to be shown: what it costs, then what it scores, which is at most 1.
    fn weight(&self) -> f64 {
        let cost = self.without.as_ref().and_then(|without| without.fall);
        let score = self.score.map(|score| score.value);
        10.0 * cost.unwrap_or(0.0) + score.unwrap_or(0.0)
    }
}

fn in_one_line(data: &ReportData, role: Role, &(head, positions): &Holder) -> HeadThatMatters {
    let index = data.heads.iter().position(|(other, _)| *other == head);
    let check = index.and_then(|index| data.positions.get(index)?.check);
    HeadThatMatters {
        head,
        positions,
        is_sure: check.is_none_or(|check| check.is_sure),
        formed: formed(data, head, role, positions.is_some()),
        score: index.and_then(|index| seen_score(data, role, index)),
        without: without(data, &[head]),
        beside_others: beside_others(data, head),
    }
}

/// Between which measurements a head took on a role that it still holds.
fn formed(data: &ReportData, head: HeadName, role: Role, is_range: bool) -> Option<(usize, usize)> {
    let emerged = if is_range {
        RoleEvent::RangeEmerged
    } else {
        RoleEvent::Emerged
    };
    let event = data
        .events
        .iter()
        .rfind(|event| event.event == emerged && event.head == head && event.role == role)?;
    Some((measured_before(data, event.step), event.step))
}

/// The last measurement before `step`.
pub(crate) fn measured_before(data: &ReportData, step: usize) -> usize {
    let steps = data.metrics.iter().map(|row| row.step);
    steps.filter(|before| *before < step).max().unwrap_or(0)
}

fn seen_score(data: &ReportData, role: Role, index: usize) -> Option<SeenScore> {
    let Role::Of(measure) = role else {
        return None;
    };
    let series = data
        .scores
        .iter()
        .find(|series| series.on == SequenceKind::Probe && series.name == measure.name())?;
    let last = data.steps.len().checked_sub(1)?;
    let [value, low, high] = series.at(last, index, data.heads.len())?.map(f64::from);
    Some(SeenScore {
        value,
        low,
        high,
        null: series.null,
    })
}

fn beside_others(data: &ReportData, head: HeadName) -> Option<BesideOthers> {
    let row = data.uses.last()?;
    if row.is_pattern_only(head) {
        return Some(BesideOthers::PatternOnly);
    }
    let backup = row
        .missed
        .iter()
        .find(|missed| missed.head == head && missed.is_backup())?;
    Some(BesideOthers::Backup(backup.cost))
}

/// What is left without exactly these heads, where that was measured at the end.
fn without(data: &ReportData, heads: &[HeadName]) -> Option<Without> {
    let row = data.uses.last()?;
    let uses = row.uses.iter().find(|uses| is_of(uses, heads))?;
    let left = uses.ablated?;
    Some(Without {
        heads: heads.to_vec(),
        accuracy: left.accuracy,
        low: left.interval.low,
        high: left.interval.high,
        fall: row.fall(&left),
        through: readers(row, uses),
    })
}

fn is_of(uses: &HeadsUse, heads: &[HeadName]) -> bool {
    uses.name != HeadSet::Layer && uses.heads == heads && uses.ablated.is_some()
}

fn readers(row: &UsesRow, uses: &HeadsUse) -> Vec<Reader> {
    let falls = row.falls_through(uses).into_iter();
    falls.map(|(reader, _)| reader).collect()
}
