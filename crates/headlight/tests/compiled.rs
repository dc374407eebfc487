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
    &["program"],
    &["program", "--prompt", "<s> a b a"],
    &["pattern"],
    &["ablate"],
    &["paths"],
    &["positions"],
    &["shared"],
    &["patch"],
    &["swap"],
    &["lens"],
    &["circuits"],
    &["circuit"],
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
    // Not the folder that is there for one command.
    assert_one_line(
        &relations,
        2,
        &["compiled:induction: ", "has no gold relations"],
    );
    let report = workshop.inspect("compiled:induction", &["report"]);
    assert_one_line(&report, 2, &["headlight compile NAME --to DIR"]);
    assert_ok(&workshop.inspect("compiled:induction", &["report", "--out", "page.html"]));
    assert!(workshop.path("page.html").is_file());
}

#[test]
fn a_program_stands_beside_what_was_found_in_its_model() {
    let workshop = Workshop::new();
    let prompt = ["program", "--prompt", "<s> a b a", "--json"];
    let program = json(&workshop.inspect("compiled:induction", &prompt));
    let line = &program["lines"][2];
    assert_eq!(
        [
            &line["variable"],
            &line["how"],
            &line["part"],
            &line["read_by"]
        ],
        [
            &serde_json::json!("previous"),
            &serde_json::json!("tokens at the only key with indices = query.indices − 1, else '-'"),
            &serde_json::json!("L0H0"),
            &serde_json::json!(["keys of L1H0"]),
        ]
    );
    // Values of tokens, indices, previous and next, as the stream of the model holds them.
    let expected = serde_json::json!([
        ["", "a", "b", "a"],
        ["", "0", "1", "2"],
        ["-", "-", "a", "b"],
        ["-", "-", "-", "b"],
    ]);
    assert_eq!(program["traces"][0]["values"], expected);
    for (head, role) in ["previous token", "induction"].into_iter().enumerate() {
        let head = &program["heads"][head];
        assert_eq!(
            (&head["must_look_like"], &head["role_is"]),
            (&role.into(), &"found".into())
        );
        assert_eq!(head["use_is"], "found");
    }
    // It attends half to the start, so no score comes past half of the way.
    let counting = json(&workshop.inspect("compiled:random_7", &["program", "--json"]));
    let head = &counting["heads"][0];
    assert_eq!(
        (&head["looks_like"], &head["role_is"]),
        (&"mixed".into(), &"missed".into())
    );

    let trained = workshop.write(
        "small.toml",
        "task = { name = 'repeat' }
         model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }
         train = { steps = 1, batch_size = 2, learning_rate = 1e-3 }",
    );
    assert_ok(&workshop.train(&trained, &["--out", "trained"]));
    let refused = workshop.inspect("trained", &["program"]);
    assert_one_line(&refused, 2, &["trained: ", "not compiled from a program"]);
}

#[test]
fn directions_have_their_names_in_what_is_exported() {
    let workshop = Workshop::new();
    let to = [
        "activations",
        "--sites",
        "hook_embed",
        "--to",
        "embed.safetensors",
    ];
    assert_ok(&workshop.inspect("compiled:identity", &to));
    let file = fs::read(workshop.path("embed.safetensors")).unwrap();
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&file).unwrap();
    let directions = &metadata.metadata().as_ref().unwrap()["directions"];
    assert!(
        directions
            .starts_with(r#"["start","tokens:a","tokens:b","tokens:c","tokens:d","indices:0","#),
        "{directions}"
    );
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
