//! The stock programs on a run whose task is not built in.

mod common;

use std::fs;

use common::{SMALL, Workshop, assert_ok, assert_one_line, json};

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

const SAID: &str =
    "task.name = \"my_task\": is not built in; it is a task of the program my_program";

#[test]
fn every_verb_that_needs_no_code_of_the_task_works_and_says_whose_it_is() {
    let workshop = foreign();
    for verb in headlight_inspect::verbs() {
        let options: &[&str] = match verb.name() {
            "serve" | "relations" => continue, // never ends; needs gold relations
            "predict" => &["--prompt", "a b"],
            "export" => &["--to", "exported"],
            "activations" => &["--to", "activations.safetensors"],
            _ => &[],
        };
        let output = workshop.inspect("run", &[&[verb.name()], options].concat());
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
