//! `inspect --at`: a run is looked at as it was at a checkpoint, at its best, or at its end.

mod common;

use std::fs;

use common::{Workshop, assert_ok, assert_one_line, json};
use serde_json::Value;

/// The scores of each head at `step` on the probe, as the run logged them.
fn logged(workshop: &Workshop, step: u64) -> Vec<Value> {
    let text = fs::read_to_string(workshop.path("run/heads.jsonl")).unwrap();
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["step"] == step && row["on"] == "probe")
        .map(|row| row["scores"].clone())
        .collect()
}

fn heads_at(workshop: &Workshop, point: &str) -> Vec<Value> {
    let heads = json(&workshop.inspect("run", &["heads", "--json", "--at", point]));
    let heads = heads.as_array().unwrap().iter();
    heads.map(|head| head["scores"].clone()).collect()
}

#[test]
fn heads_at_a_point_are_those_that_the_run_logged_there() {
    let workshop = Workshop::trained("run");
    for (point, step) in [("step-10", 10), ("step-20", 20), ("last", 25)] {
        let expected = logged(&workshop, step);
        assert_eq!(expected.len(), 4, "{point}");
        assert_eq!(heads_at(&workshop, point), expected, "{point}");
    }
    assert_ne!(heads_at(&workshop, "step-10"), heads_at(&workshop, "last"));

    let pattern = |point| {
        let arguments = ["pattern", "--head", "L1H0", "--json", "--at", point];
        json(&workshop.inspect("run", &arguments))
    };
    assert_ne!(pattern("step-10"), pattern("step-20"));
    assert_ok(&workshop.inspect("run", &["ablate", "--at", "best"]));
}

#[test]
fn a_point_that_is_not_there_is_refused_in_one_line() {
    let workshop = Workshop::trained("run");
    let missing = workshop.inspect("run", &["heads", "--at", "step-7"]);
    assert_one_line(&missing, 2, &["checkpoints/step-7"]);
    let unknown = workshop.inspect("run", &["heads", "--at", "end"]);
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        error.contains("end is none of best, last and step-N"),
        "{error}"
    );
}

#[test]
fn a_stopped_run_is_looked_at_by_its_newest_checkpoint_and_says_so() {
    let workshop = Workshop::trained("run");
    // As a run looks that was killed after step 20.
    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    let prompt = ["predict", "--prompt", "a b c a", "--json"];
    let stopped = workshop.inspect("run", &prompt);
    let note = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(
        note.contains("run has not ended; this is its checkpoint step-20"),
        "{note}"
    );
    let chosen = [&prompt[..], &["--at", "step-20"]].concat();
    assert_eq!(json(&stopped), json(&workshop.inspect("run", &chosen)));
    assert_ok(&workshop.inspect("run", &["pattern"]));
    assert_ok(&workshop.inspect("run", &["ablate"]));
}
