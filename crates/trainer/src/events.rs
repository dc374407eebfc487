//! Heads that take on a role, or lose it.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Measure, Role, RoleEvent, Scores};
use headlight_run::EventRow;
use headlight_watch::Observation;

/// What changed in the heads' roles on the probe: a role that was not there before, or one that is
/// gone.
pub fn role_events(
    known: &mut BTreeMap<HeadName, Role>,
    step: usize,
    probe: &Observation,
) -> Vec<EventRow> {
    let mut events = Vec::new();
    for (head, scores) in &probe.heads {
        let now = Role::of(scores);
        let before = known.get(head).copied().unwrap_or(Role::Mixed);
        if now == before {
            continue;
        }
        let (event, role) = match now {
            Role::Mixed => {
                known.remove(head);
                (RoleEvent::Lost, before)
            }
            Role::Of(_) => {
                known.insert(*head, now);
                (RoleEvent::Emerged, now)
            }
        };
        events.push(EventRow {
            step,
            event,
            head: *head,
            role,
            value: score_of(role, scores),
            positions: None,
        });
    }
    events
}

/// What changed in the ranges of positions at which heads hold a role that they do not have as a
/// whole.
pub fn range_events(
    known: &mut BTreeMap<HeadName, Vec<Measure>>,
    step: usize,
    probe: &Observation,
) -> Vec<EventRow> {
    let mut events = Vec::new();
    for ((head, scores), ranges) in probe.heads.iter().zip(&probe.ranges) {
        let before = known.remove(head).unwrap_or_default();
        let mut now = Vec::new();
        for measure in Measure::all() {
            let role = Role::Of(measure);
            // A range that has grown into the role of the whole head is not lost.
            if Role::of(scores) == role {
                continue;
            }
            let range = ranges.iter().find(|range| range.role == measure);
            now.extend(range.map(|_| measure));
            let event = match (before.contains(&measure), range) {
                (false, Some(_)) => RoleEvent::RangeEmerged,
                (true, None) => RoleEvent::RangeLost,
                _ => continue,
            };
            events.push(EventRow {
                step,
                event,
                head: *head,
                role,
                value: score_of(role, scores),
                positions: range.map(|range| (range.first, range.last)),
            });
        }
        if !now.is_empty() {
            known.insert(*head, now);
        }
    }
    events
}

/// The score that makes the role.
fn score_of(role: Role, scores: &Scores) -> f64 {
    let score = role.score().and_then(|name| scores.get(&name));
    score.map_or(f64::NAN, |score| score.value)
}

/// An event for a person.
pub fn in_words(event: &EventRow) -> String {
    let what = match event.event {
        RoleEvent::Emerged | RoleEvent::RangeEmerged => "looks like",
        RoleEvent::Lost => "no longer looks like",
        RoleEvent::RangeLost => "no longer looks, at any range of positions, like",
    };
    let positions = match event.positions {
        Some((first, last)) => format!(" at positions {first}–{last}"),
        None => String::new(),
    };
    format!(
        "step {}: {} {what}: {}{positions} (score {:.2})",
        event.step, event.head, event.role, event.value
    )
}

#[cfg(test)]
mod tests {
    use headlight_heads::{Interval, RoleRange, Score, SequenceKind};
    use headlight_run::PatternFile;

    use super::*;

    /// One head with this previous-token score, which holds the role at these positions.
    fn probe(score: f64, range: Option<(usize, usize)>) -> Observation {
        let score = Score {
            value: score,
            null: 0.0,
            ceiling: 1.0,
            interval: Interval::point(score),
        };
        let range = range.map(|(first, last)| RoleRange {
            role: Measure::PreviousToken,
            first,
            last,
            share: 0.9,
            low: 0.8,
            high: 1.0,
            last_low: last,
            last_high: last,
            writes: None,
        });
        Observation {
            kind: SequenceKind::Probe,
            heads: vec![(
                HeadName { layer: 0, head: 0 },
                [(Measure::PreviousToken.into(), score)].into(),
            )],
            distances: Vec::new(),
            relations: Vec::new(),
            writes: Vec::new(),
            ranges: vec![range.into_iter().collect()],
            checks: Vec::new(),
            patterns: PatternFile::quantise([1, 1, 1, 1], &[1.0], vec![vec![0]]),
        }
    }

    #[test]
    fn a_range_comes_goes_and_is_not_lost_when_it_becomes_the_role() {
        let mut known = BTreeMap::new();
        let mut events = |score, range| -> Vec<(RoleEvent, Option<(usize, usize)>)> {
            let events = range_events(&mut known, 50, &probe(score, range));
            events
                .iter()
                .map(|event| (event.event, event.positions))
                .collect()
        };
        assert_eq!(events(0.2, None), []);
        let emerged = |first, last| [(RoleEvent::RangeEmerged, Some((first, last)))];
        assert_eq!(events(0.3, Some((4, 17))), emerged(4, 17));
        assert_eq!(events(0.3, Some((3, 20))), []); // it may grow
        assert_eq!(events(0.3, None), [(RoleEvent::RangeLost, None)]);
        assert_eq!(events(0.3, Some((4, 17))), emerged(4, 17));
        assert_eq!(events(0.7, Some((2, 63))), []);
        assert_eq!(events(0.7, None), []);
        // The whole role is gone, and the range is what remains of it.
        assert_eq!(events(0.4, Some((2, 30))), emerged(2, 30));
    }
}
