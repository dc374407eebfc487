//! Compiled programs as runs: `headlight compile NAME --to DIR`, and `inspect compiled:NAME`.

mod common;

use std::{fs, process::Output};

use assert_cmd::Command;
use common::{Workshop, assert_ok, assert_one_line, json};
use serde_json::Value;

impl Workshop {
    fn compile(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("headlight").unwrap();
        command
            .current_dir(self.0.path())
            .arg("compile")
            .args(arguments)
            .output()
            .unwrap()
    }
}

/// The verbs that a compiled program has an answer to.
const VERBS: &[&[&str]] = &[
    &["heads"],
    &["pattern"],
    &["ablate"],
    &["paths"],
    &["positions"],
    &["shared"],
    &["patch"],
    &["swap"],
    &["lens"],
    &["circuits"],
    &["why", "--head", "L0H0"],
    &["detect"],
    &["offsets"],
    &["phases"],
    &["generate"],
    &["curves"],
    &["scores"],
    &["evaluate"],
    &["predict", "--prompt", "<s> a b a"],
    &["export", "--to", "exported"],
    &["activations", "--to", "activations.safetensors"],
];

#[test]
fn every_verb_looks_at_a_compiled_program() {
    let workshop = Workshop::new();
    for verb in VERBS {
        assert_ok(&workshop.inspect("compiled:induction", verb));
    }
    let relations = workshop.inspect("compiled:induction", &["relations"]);
    assert_one_line(&relations, 2, &["has no gold relations"]);
    let report = workshop.inspect("compiled:induction", &["report"]);
    assert_one_line(&report, 2, &["headlight compile NAME --to DIR"]);
}

#[test]
fn programs_answer_all_their_questions() {
    let workshop = Workshop::new();
    for name in ["identity", "reverse", "palindrome", "random_7"] {
        let evaluated = workshop.inspect(&format!("compiled:{name}"), &["evaluate", "--json"]);
        assert_eq!(json(&evaluated)["accuracy"], 1.0, "{name}");
    }
}

#[test]
fn a_compiled_run_says_what_is_true_of_it_and_what_its_heads_look_like() {
    let workshop = Workshop::new();
    assert_ok(&workshop.compile(&["induction", "--to", "run", "--length", "12"]));
    let truth = fs::read(workshop.path("run/truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    assert_eq!(truth["heads"], serde_json::json!(["L0H0", "L1H0"]));
    let edge = serde_json::json!({ "from": "L0H0", "to": "keys of L1H0", "carries": ["previous"] });
    assert!(
        truth["edges"].as_array().unwrap().contains(&edge),
        "{truth}"
    );
    assert!(workshop.path("run/report.html").is_file());

    let heads = json(&workshop.inspect("run", &["heads", "--json"]));
    let role = |head: usize| heads[head]["role"].clone();
    assert_eq!(
        [role(0), role(1)],
        ["previous token", "induction"],
        "{heads}"
    );
    // The path test finds the one edge between heads.
    let paths = json(&workshop.inspect("run", &["paths", "--json"])).to_string();
    assert!(paths.contains("L0H0"), "{paths}");
}

/// What a query's own part meets, over the probe: query, key, and the share of all such terms.
fn largest_match(program: &str, head: &str) -> (String, String, f64) {
    let workshop = Workshop::new();
    let subject = format!("compiled:{program}");
    let why = json(&workshop.inspect(&subject, &["why", "--head", head, "--json"]));
    let mut largest = (String::new(), String::new(), 0.0);
    let mut sizes = 0.0;
    for term in why["terms"].as_array().unwrap() {
        let [query, key] = ["query", "key"].map(|end| term[end].as_str().unwrap().to_owned());
        if query == "for every query" {
            continue;
        }
        let size = term["value"].as_f64().unwrap().abs();
        sizes += size;
        if size > largest.2 {
            largest = (query, key, size);
        }
    }
    largest.2 /= sizes;
    largest
}

#[test]
fn why_names_the_parts_that_write_the_variables_which_a_head_compares() {
    // The truth: L0H0 compares positions and writes `previous`, which L1H0 compares with the token.
    for (head, expected) in [
        ("L0H0", ["positions", "positions"]),
        ("L1H0", ["embedding", "L0H0"]),
    ] {
        let (query, key, share) = largest_match("induction", head);
        assert_eq!([query.as_str(), key.as_str()], expected, "{head}");
        assert!(share > 0.999, "{head}: {share}");
    }
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let workshop = Workshop::new();
    for run in ["a", "b"] {
        assert_ok(&workshop.compile(&["histogram", "--to", run]));
    }
    for file in [
        "last/weights.safetensors",
        "heads.jsonl",
        "metrics.jsonl",
        "truth.json",
    ] {
        let read = |run: &str| fs::read(workshop.path(&format!("{run}/{file}"))).unwrap();
        assert!(read("a") == read("b"), "{file}");
    }
}

#[test]
fn wrong_input_is_one_line_and_writes_nothing() {
    let workshop = Workshop::new();
    let refused = |arguments: &[&str], parts: &[&str]| {
        assert_one_line(&workshop.compile(arguments), 2, parts);
        assert!(!workshop.path("run").exists(), "{arguments:?}");
    };
    refused(
        &["inducton", "--to", "run"],
        &["compiled:inducton", "is no program", "induction"],
    );
    refused(
        &["induction", "--to", "run", "--length", "0"],
        &["inputs of 0 tokens; expected 1 to 64"],
    );
    refused(
        &["induction", "--to", "run", "--length", "65"],
        &["inputs of 65 tokens; expected 1 to 64"],
    );
    refused(
        &["induction", "--to", "run", "--coldness", "0"],
        &["coldness = 0: must be positive and finite"],
    );
    // 1/(1 + 63) and 1/(1 + 64) differ by 0.00024.
    refused(
        &["histogram", "--to", "run", "--length", "64"],
        &[
            "count: ",
            "belong to different classes and are closer than 0.001",
        ],
    );
    refused(
        &["sort", "--to", "run", "--length", "64"],
        &["sort: its model has d_ff ", ", more than 16384"],
    );
    let unknown = workshop.inspect("compiled:inducton", &["heads"]);
    assert_one_line(&unknown, 2, &["compiled:inducton", "is no program"]);

    assert_ok(&workshop.compile(&["identity", "--to", "run"]));
    let again = workshop.compile(&["identity", "--to", "run"]);
    assert_one_line(&again, 2, &["run", "exists already", "--overwrite"]);
    assert_ok(&workshop.compile(&["identity", "--to", "run", "--overwrite"]));
}
