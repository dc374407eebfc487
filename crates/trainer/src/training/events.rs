//! Heads that take on a role, or lose it.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Role};
use headlight_run::EventRow;
use headlight_watch::Observation;

/// What changed in the heads' roles on the probe: a role that was not there before, or one that is
/// gone.
pub fn role_events(
    known: &mut BTreeMap<HeadName, String>,
    step: usize,
    probe: &Observation,
) -> Vec<EventRow> {
    let mut events = Vec::new();
    for (head, scores) in &probe.heads {
        let now = Role::of(scores);
        let name = now.name();
        let (event, role) = match known.get(head) {
            Some(before) if now == Role::Mixed => ("role_lost", before.clone()),
            Some(before) if before == name => continue,
            None if now == Role::Mixed => continue,
            _ => ("role_emerged", name.to_owned()),
        };
        if now == Role::Mixed {
            known.remove(head);
        } else {
            known.insert(*head, role.clone());
        }
        let value = scores.get(&role).map_or(f64::NAN, |score| score.value);
        events.push(EventRow {
            step,
            event: event.to_owned(),
            head: *head,
            role,
            value,
        });
    }
    events
}

/// An event for a person.
pub fn in_words(event: &EventRow) -> String {
    let what = if event.event == "role_lost" {
        "no longer looks like"
    } else {
        "looks like"
    };
    format!(
        "step {}: {} {what}: {} (score {:.2})",
        event.step, event.head, event.role, event.value
    )
}
