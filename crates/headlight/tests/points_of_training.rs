//! `inspect --at`: a run is looked at as it was at a checkpoint, at its best, or at its end.

mod common;

use std::{fs, process::Output};

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

/// Every verb but `serve` and `learn`, with what it needs.
const VERBS: [&[&str]; 21] = [
    &["heads"],
    &["pattern"],
    &["ablate"],
    &["paths"],
    &["predict", "--prompt", "a b c a"],
    &["swap"],
    &["lens"],
    &["circuits"],
    &["circuit", "--method", "eap"],
    &["circuit", "--method", "atp-star"],
    &["why", "--head", "L1H0"],
    &["detect"],
    &["offsets"],
    &["phases"],
    &["generate", "--tokens", "4"],
    &["export", "--to", "exported"],
    &["curves"],
    &["scores"],
    &["report"],
    &["evaluate"],
    &["patch", "--prompt", "a b a", "--corrupted", "a c a"],
];

/// What every verb does, as text and as JSON.
fn every_verb(workshop: &Workshop, more: &[&str]) -> Vec<(&'static str, Output)> {
    let mut outputs = Vec::new();
    for verb in VERBS {
        for json in [&[][..], &["--json"]] {
            let output = workshop.inspect("run", &[verb, more, json].concat());
            outputs.push((verb[0], output));
            let _ = fs::remove_dir_all(workshop.path("exported"));
        }
    }
    outputs
}

/// Checks that every verb opens the run, and says `note` on standard error.
#[track_caller]
fn assert_every_verb_opens(workshop: &Workshop, more: &[&str], note: &str) {
    for (verb, output) in every_verb(workshop, more) {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        // With these few weights the model may answer both prompts alike.
        let same_answer = verb == "patch" && error.contains("is the answer to both prompts");
        assert!(output.status.success() || same_answer, "{verb}: {error}");
        assert!(error.contains(note), "{verb}: {error}");
    }
}

#[test]
fn every_verb_opens_a_stopped_run_and_every_point_of_a_run() {
    let workshop = Workshop::trained("run");
    for point in ["best", "last", "step-10"] {
        assert_every_verb_opens(&workshop, &["--at", point], "");
        let page = workshop.path(&format!("run/report-{point}.html"));
        assert!(page.is_file(), "{point}");
    }
    let [report, summary] = ["run/report.html", "run/summary.json"].map(|file| workshop.path(file));
    let told: Value = serde_json::from_str(&fs::read_to_string(&summary).unwrap()).unwrap();
    // At the end, measuring gives what training wrote.
    let last = json(&workshop.inspect("run", &["report", "--json", "--at", "last"]));
    for number in ["loss", "accuracy", "floor", "chance", "steps"] {
        assert_eq!(last["run"][number], told[number], "{number}");
    }

    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_file(summary).unwrap();
    fs::remove_file(&report).unwrap();
    let note = "run has not ended; this is its checkpoint step-20";
    assert_every_verb_opens(&workshop, &[], note);
    assert!(report.is_file());
    let stopped = json(&workshop.inspect("run", &["report", "--json"]));
    let chosen = json(&workshop.inspect("run", &["report", "--json", "--at", "step-20"]));
    assert_eq!(stopped, chosen);
    assert_eq!(stopped["run"]["steps"], 20);
}

#[test]
fn a_run_that_diverged_is_looked_at_by_its_best_weights_and_names_the_bad_step() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", common::SMALL);
    // Seen in a gradient, with checkpoints before it; seen in a measurement, without any.
    for (checkpoint, log, other_point) in [(1, 10, "step-1"), (100, 1, "best")] {
        let set = [
            "train.learning_rate=1e38".to_owned(),
            format!("checkpoint.every={checkpoint}"),
            format!("log.every={log}"),
        ];
        let set: Vec<&str> = set
            .iter()
            .flat_map(|assignment| ["--set", assignment])
            .collect();
        let output = workshop.train(
            &config,
            &[&["--out", "run", "--overwrite"], &set[..]].concat(),
        );
        assert_eq!(output.status.code(), Some(1));
        let rows = fs::read_to_string(workshop.path("run/metrics.jsonl")).unwrap();
        let rows: Vec<Value> = rows
            .lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        let bad = rows.last().unwrap();
        let step = bad["step"].as_u64().unwrap();
        for number in ["validation", "accuracy", "exact"] {
            assert_eq!(bad[number], "NaN", "{bad}");
            assert!(rows[0][number].is_number(), "{}", rows[0]);
        }
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            error.contains(&format!("run: step {step}: loss ")),
            "{error}"
        );

        let note = format!(
            "run diverged: its loss at step {step} is no number; these are its best weights, of step 0"
        );
        assert_every_verb_opens(&workshop, &[], &note);
        let curves = workshop.inspect("run", &["curves"]);
        let text = String::from_utf8_lossy(&curves.stdout).into_owned();
        assert!(
            text.contains(&format!("At step {step} the loss is no number.")),
            "{text}"
        );
        let report = json(&workshop.inspect("run", &["report", "--json"]));
        let left_out = report["left_out"].to_string();
        assert!(
            left_out.contains(&format!("step {step}, at which the loss is no number")),
            "{left_out}"
        );
        // Weights of 1e38 lead to no numbers; that is shown or refused.
        for (verb, output) in every_verb(&workshop, &["--at", other_point]) {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 2)),
                "{verb}: {error}"
            );
        }
    }
}

#[test]
fn a_run_without_weights_says_so_in_one_line() {
    let workshop = Workshop::trained("run");
    for weights in ["last", "best", "checkpoints"] {
        fs::remove_dir_all(workshop.path("run").join(weights)).unwrap();
    }
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    let expected =
        "run: has no weights: training stopped before its first checkpoint (checkpoint.every = 10)";
    for verb in ["pattern", "lens", "report", "evaluate"] {
        assert_one_line(&workshop.inspect("run", &[verb]), 2, &[expected]);
    }
    assert_ok(&workshop.inspect("run", &["curves"]));
}
