//! The stock programs on runs that lack something: a task that is built in, logs.

mod common;

use std::fs;

use common::{SMALL, Workshop, assert_ok, assert_one_line, json};
use headlight_inspect::Need;

/// A run as another program would have made it.
fn foreign() -> Workshop {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    let path = workshop.path("run/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("[task]").unwrap();
    let (_, after) = rest.split_once("[model]").unwrap();
    let task = "[task]\nname = \"my_task\"\nprogram = \"my_program\"\nlength = 3\n\n[model]";
    fs::write(path, format!("{before}{task}{after}")).unwrap();
    workshop
}

/// The word `d` in two senses, twice each.
const WORDS: &str = r#"
{"text": "a c d", "word": "d", "sense": "one", "cue": "a"}
{"text": "a e d", "word": "d", "sense": "one", "cue": "a"}
{"text": "b c d", "word": "d", "sense": "two", "cue": "b"}
{"text": "b e d", "word": "d", "sense": "two", "cue": "b"}
"#;

/// The arguments of a verb that can be left with its defaults but for what it demands.
fn options(verb: &str) -> Vec<&str> {
    let demanded: &[&str] = match verb {
        "predict" => &["--prompt", "a b"],
        "export" => &["--to", "exported"],
        "why" => &["--head", "L0H0"],
        "activations" => &["--to", "activations.safetensors"],
        "senses" => &["--words", "words.jsonl"],
        _ => &[],
    };
    [&[verb], demanded].concat()
}

const SAID: &str =
    "task.name = \"my_task\": is not built in; it is a task of the program my_program";

#[test]
fn every_verb_that_needs_no_code_of_the_task_works_and_says_whose_it_is() {
    let workshop = foreign();
    workshop.write("words.jsonl", WORDS.trim());
    for verb in headlight_inspect::verbs() {
        // `serve` never ends.
        let needs_another_task = [Need::Relations, Need::Program, Need::Alignment]
            .iter()
            .any(|need| verb.needs().contains(need));
        if verb.name() == "serve" || needs_another_task {
            continue;
        }
        let output = workshop.inspect("run", &options(verb.name()));
        assert_ok(&output);
        let error = String::from_utf8(output.stderr).unwrap();
        let error = error.replace('\n', " ");
        assert!(error.contains(SAID), "{}: {error}", verb.name());
    }
    let evaluated = json(&workshop.inspect("run", &["evaluate", "--json"]));
    assert_eq!(evaluated["task"], "my_task");
}

#[test]
fn training_on_it_is_refused_in_one_line() {
    let workshop = foreign();
    let config = workshop.path("run/config.toml");
    let before = fs::read(&config).unwrap();
    assert_one_line(&workshop.train(&config, &["--out", "other"]), 2, &[SAID]);
    assert_one_line(
        &workshop.train(&config, &["--out", "run", "--resume"]),
        2,
        &[SAID],
    );
    let small = workshop.path("small.toml");
    assert_one_line(
        &workshop.train(&small, &["--out", "run", "--resume"]),
        2,
        &["the run was begun with"],
    );
    assert!(!workshop.path("other").exists());
    assert_eq!(fs::read(&config).unwrap(), before);
}

#[test]
fn a_verb_needs_what_it_says_it_needs_and_no_other_file() {
    let workshop = Workshop::trained("run");
    workshop.write("words.jsonl", WORDS.trim());
    for name in ["metrics.jsonl", "heads.jsonl", "uses.jsonl", "timing.jsonl"] {
        fs::remove_file(workshop.path("run").join(name)).unwrap();
    }
    for verb in headlight_inspect::verbs() {
        if verb.name() == "serve" {
            continue;
        }
        let output = workshop.inspect("run", &options(verb.name()));
        if verb.needs().is_empty() {
            assert_ok(&output);
        } else {
            assert_one_line(&output, 2, &["run"]);
        }
    }
}
