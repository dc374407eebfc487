//! Heads that take on a role, or lose it.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Measure, Role, RoleEvent};
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
        let score = role.score().and_then(|name| scores.get(&name));
        events.push(EventRow {
            step,
            event,
            head: *head,
            role,
            value: score.map_or(f64::NAN, |score| score.value),
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
        for measure in Measure::ALL {
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
            let score = scores.get(&measure.into());
            events.push(EventRow {
                step,
                event,
                head: *head,
                role,
                value: score.map_or(f64::NAN, |score| score.value),
                positions: range.map(|range| (range.first, range.last)),
            });
        }
        if !now.is_empty() {
            known.insert(*head, now);
        }
    }
    events
}

/// An event for a person.
pub fn in_words(event: &EventRow) -> String {
    let what = match event.event {
        RoleEvent::Emerged => "looks like",
        RoleEvent::Lost => "no longer looks like",
        RoleEvent::RangeEmerged => "at some positions looks like",
        RoleEvent::RangeLost => "at no positions any more looks like",
    };
    let positions = match event.positions {
        Some((first, last)) => format!(", positions {first}–{last}"),
        None => String::new(),
    };
    format!(
        "step {}: {} {what}: {}{positions} (score {:.2})",
        event.step, event.head, event.role, event.value
    )
}
