//! `log.heads`: which heads a run watches.

use headlight_heads::{HeadName, Measure, ScoreName};
use headlight_run::{Error, RunDirectory, WatchedHeads};
use headlight_watch::Observation;

use crate::measure::Measured;

/// The heads that are watched; `None`: all.
#[derive(Debug, Clone)]
pub struct HeadsToWatch(Option<Vec<HeadName>>);

impl HeadsToWatch {
    /// All heads of the model.
    pub const ALL: Self = Self(None);

    /// As asked for, at step 0: a number takes the strongest on the probe.
    pub fn of(asked: Option<&WatchedHeads>, probe: &Observation) -> Self {
        Self(match asked {
            None => None,
            Some(WatchedHeads::Named(heads)) => Some(heads.clone()),
            Some(WatchedHeads::Number(count)) => Some(strongest(*count, probe)),
        })
    }

    /// Those that a run has watched so far, if it does not watch all.
    pub fn of_run(asked: Option<&WatchedHeads>, run: &RunDirectory) -> Result<Self, Error> {
        if asked.is_none() {
            return Ok(Self(None));
        }
        let mut heads: Vec<HeadName> = run.heads()?.iter().map(|row| row.head).collect();
        heads.sort_unstable();
        heads.dedup();
        Ok(Self(Some(heads)))
    }

    /// What was measured, of these heads.
    pub fn seen(&self, measured: Measured) -> Measured {
        match &self.0 {
            None => measured,
            Some(heads) => measured.only(heads),
        }
    }
}

/// `count` heads of a probe: the strongest of each measure, then the second of each, and so on.
fn strongest(count: usize, probe: &Observation) -> Vec<HeadName> {
    let mut by_measure = Vec::new();
    for measure in Measure::all() {
        let name = ScoreName::from(measure);
        let mut heads = Vec::new();
        for (head, scores) in &probe.heads {
            if let Some(score) = scores.get(&name) {
                heads.push((score.share(), *head));
            }
        }
        heads.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        by_measure.push(heads);
    }
    let mut taken = Vec::new();
    for turn in 0..probe.heads.len() {
        for heads in &by_measure {
            if let Some((_, head)) = heads.get(turn)
                && taken.len() < count
                && !taken.contains(head)
            {
                taken.push(*head);
            }
        }
    }
    taken.sort_unstable();
    taken
}
