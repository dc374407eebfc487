//! The task `sequences`: a task of one's own, without a line of Rust.

mod common;

use std::fmt::Write;

use common::{Workshop, assert_ok, assert_one_line, json};
use serde_json::json;

const CONFIG: &str = r#"
seed = 1
[task]
name = "sequences"
path = "train.jsonl"
validation = "valid.jsonl"
[model]
n_layers = 1
n_heads = 1
d_model = 16
n_ctx = 4
[train]
steps = 60
batch_size = 16
learning_rate = 1e-2
shards = 1
[log]
every = 20
"#;

/// A letter, a colour and the letter again: which letter comes again is certain, all else is not.
fn lines(from: usize, count: usize) -> String {
    let letters = ["a", "b", "c", "d"];
    let mut text = String::new();
    for at in from..from + count {
        let letter = letters[at % 4];
        let colour = ["red", "blue"][at / 4 % 2];
        let line = json!({
            "tokens": [letter, colour, letter],
            "scored": [1],
            "relations": [["again→letter", 1, 0]],
            "floor": [0.0, 0.0],
            "bayes": [2.0_f64.ln(), 0.0],
            "best_accuracy": [0.5, 1.0],
        });
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    workshop.write("train.jsonl", &lines(0, 64));
    workshop.write("valid.jsonl", &lines(3, 16));
    workshop.write("own.toml", CONFIG);
    workshop
}

#[test]
fn a_task_from_files_is_learned_to_its_floor_and_every_verb_knows_what_the_lines_said() {
    let workshop = workshop();
    let config = workshop.path("own.toml");
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(workshop.path("run/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["floor"], 0.0);
    assert!((summary["bayes"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(summary["accuracy"], 1.0);
    assert_eq!(summary["best_accuracy"], 1.0);

    // The files are not needed any more, except to train.
    std::fs::remove_file(workshop.path("train.jsonl")).unwrap();
    std::fs::remove_file(workshop.path("valid.jsonl")).unwrap();
    let relations = json(&workshop.inspect("run", &["relations", "--json"]));
    assert_eq!(relations["best"][0]["relation"], "again→letter");
    let predicted = json(&workshop.inspect("run", &["predict", "--prompt", "c red", "--json"]));
    assert_eq!(predicted["tokens"], json!(["c", "red"]));
    for verb in [
        "heads", "ablate", "lens", "generate", "report", "evaluate", "phases",
    ] {
        assert_ok(&workshop.inspect("run", &[verb]));
    }
    let gone = workshop.train(&config, &["--out", "other"]);
    assert_one_line(&gone, 2, &["train.jsonl"]);
}

#[test]
fn a_changed_file_is_refused_on_resume_and_a_wrong_line_before_training() {
    let workshop = workshop();
    let config = workshop.path("own.toml");
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    workshop.write("train.jsonl", &lines(1, 64));
    let resumed = workshop.train(&config, &["--out", "run", "--resume"]);
    assert_one_line(&resumed, 2, &["train.jsonl", "the run was begun with"]);

    let wrong = lines(0, 8) + "{\"tokens\":[\"a\",\"red\",\"x y\"]}\n";
    workshop.write("train.jsonl", &wrong);
    let refused = workshop.train(&config, &["--out", "other"]);
    assert_one_line(&refused, 2, &["train.jsonl:9", "task.path", "x y"]);
    assert!(!workshop.path("other").exists());
}

#[test]
fn moved_files_are_the_same_and_changed_ones_are_not() {
    let workshop = workshop();
    let config = workshop.path("own.toml");
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    std::fs::create_dir(workshop.path("moved")).unwrap();
    for name in ["train.jsonl", "valid.jsonl"] {
        std::fs::rename(workshop.path(name), workshop.path("moved").join(name)).unwrap();
    }
    let moved = [
        "--out",
        "run",
        "--resume",
        "--set",
        "task.path=moved/train.jsonl",
        "--set",
        "task.validation=moved/valid.jsonl",
    ];
    assert_ok(&workshop.train(&config, &moved));
    workshop.write("moved/valid.jsonl", &lines(0, 16));
    let refused = workshop.train(&config, &moved);
    assert_one_line(&refused, 2, &["valid.jsonl", "the run was begun with"]);
}

#[test]
fn the_sequences_that_a_run_keeps_are_a_task_with_the_same_numbers() {
    let workshop = Workshop::trained("run");
    let config = r#"
        task = { name = "sequences", path = "run/validation.jsonl", validation = "run/validation.jsonl", vocabulary = "run/vocabulary.json" }
        model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 16 }
        train = { steps = 1, batch_size = 8, learning_rate = 1e-3 }
    "#;
    workshop.write("kept.toml", config);
    let own = json(&workshop.inspect("run", &["evaluate", "--json"]));
    let kept = json(&workshop.inspect("run", &["evaluate", "--on", "kept.toml", "--json"]));
    for number in ["loss", "accuracy", "exact", "floor", "best_accuracy"] {
        assert!(own[number].is_number(), "{number}");
        assert_eq!(kept[number], own[number], "{number}");
    }
}
