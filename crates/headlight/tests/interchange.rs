//! Interchange training: it puts a program into chosen parts, and without it the program is learned
//! elsewhere.

mod common;

use std::{fs, path::PathBuf};

use common::{Workshop, assert_ok, assert_one_line, json};
use serde_json::Value;

/// The run of a second.
const HISTOGRAM: &str = r#"
seed = 1
[task]
name = "program"
program = "histogram"
length = 6
[model]
n_layers = 1
n_heads = 4
d_model = 16
n_ctx = 7
feed_forward = "relu"
[interchange.alignment]
"1/(1+count)" = "L0H2"
count = "feed-forward 0"
[train]
steps = 30
batch_size = 16
learning_rate = 5e-3
shards = 2
[log]
every = 15
patterns_every = 30
"#;

/// The configuration that ships.
fn shipped(name: &str) -> PathBuf {
    let configs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    configs.join(name)
}

fn interchange(workshop: &Workshop, run: &str) -> Value {
    json(&workshop.inspect(run, &["interchange", "--json"]))
}

fn area(found: &Value, method: &str) -> f64 {
    let methods = found["methods"].as_array().unwrap().iter();
    let found = methods
        .into_iter()
        .find(|of| of["method"] == method)
        .unwrap();
    found["auroc"]["mean"].as_f64().unwrap()
}

#[test]
fn swaps_train_a_program_into_the_parts_that_are_named() {
    let workshop = Workshop::new();
    for name in ["known_fraction", "control_known_fraction"] {
        let config = shipped(&format!("{name}.toml"));
        assert_ok(&workshop.train(&config, &["--set", "train.steps=300", "--out", name]));
    }
    let (known, control) = (
        interchange(&workshop, "known_fraction"),
        interchange(&workshop, "control_known_fraction"),
    );
    for found in [&known, &control] {
        assert!(found["accuracy"].as_f64().unwrap() > 0.98, "{found}");
    }
    let share = |found: &Value, name: &str| found[name].as_f64().unwrap();
    assert!(share(&known, "interchange_accuracy") > 0.95, "{known}");
    assert!(share(&known, "strictness") > 0.95, "{known}");
    assert!(share(&control, "interchange_accuracy") < 0.8, "{control}");
    for method in ["patched", "mean-ablated", "EAP-IG"] {
        assert_eq!(area(&known, method), 1.0, "{method}: {known}");
    }
    // What training logs is what the verb finds.
    let last: Value = fs::read_to_string(workshop.path("known_fraction/metrics.jsonl"))
        .unwrap()
        .lines()
        .last()
        .map(|line| serde_json::from_str(line).unwrap())
        .unwrap();
    let logged = &last["breakdown"]["interchange accuracy"]["accuracy"];
    assert_eq!(logged, &known["interchange_accuracy"]);
    assert_eq!(
        &last["breakdown"]["strictness"]["accuracy"],
        &known["strictness"]
    );
}

#[test]
fn swaps_that_weigh_nothing_change_no_bit_of_the_weights() {
    let workshop = Workshop::new();
    let (before, after) = HISTOGRAM.split_once("[interchange.alignment]").unwrap();
    let (_alignment, train) = after.split_once("[train]").unwrap();
    let without = workshop.write("without.toml", &format!("{before}[train]{train}"));
    let with = workshop.write("with.toml", HISTOGRAM);
    assert_ok(&workshop.train(&without, &["--out", "without"]));
    let untrained = [
        "--set",
        "interchange.weight=0",
        "--set",
        "interchange.strictness=0",
    ];
    assert_ok(&workshop.train(&with, &[&["--out", "with"], &untrained[..]].concat()));
    let weights =
        |run: &str| fs::read(workshop.path(run).join("last/weights.safetensors")).unwrap();
    assert!(weights("without") == weights("with"));
}

#[test]
fn a_run_without_an_alignment_and_an_unknown_variable_are_one_line() {
    let workshop = Workshop::trained("run");
    let output = workshop.inspect("run", &["interchange"]);
    assert_one_line(&output, 2, &["run", "has no table [interchange]"]);
    let config = workshop.write(
        "known.toml",
        &HISTOGRAM.replace("count = \"feed", "counts = \"feed"),
    );
    let output = workshop.train(&config, &["--out", "known"]);
    let expected = "interchange.alignment.counts = feed-forward 0: histogram has no such variable; there are: \
                    1/(1+count), count";
    assert_one_line(&output, 2, &[expected]);
}
