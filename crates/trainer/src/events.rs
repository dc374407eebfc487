//! Heads that take on a role, or lose it.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Role, RoleEvent};
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
        });
    }
    events
}

/// An event for a person.
pub fn in_words(event: &EventRow) -> String {
    let what = match event.event {
        RoleEvent::Emerged => "looks like",
        RoleEvent::Lost => "no longer looks like",
    };
    format!(
        "step {}: {} {what}: {} (score {:.2})",
        event.step, event.head, event.role, event.value
    )
}
