//! Runs side by side, as their users meet them.

mod common;

use std::fs;

use assert_cmd::Command;
use common::{SMALL, Workshop, assert_ok, assert_one_line, json};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

/// A run, the same with one layer, and the first with three seeds.
fn workshop() -> Workshop {
    let workshop = Workshop::new();
    let two = workshop.write("two.toml", SMALL);
    let one = workshop.write("one.toml", &SMALL.replace("n_layers = 2", "n_layers = 1"));
    assert_ok(&workshop.train(&two, &["--out", "runs/two"]));
    assert_ok(&workshop.train(&one, &["--out", "runs/one"]));
    assert_ok(&workshop.train(&two, &["--out", "runs/all", "--seeds", "3..6"]));
    workshop
}

fn summary(workshop: &Workshop, run: &str) -> Value {
    let text = fs::read(workshop.path(run).join("summary.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn accuracy(workshop: &Workshop, run: &str) -> f64 {
    summary(workshop, run)["accuracy"].as_f64().unwrap()
}

#[test]
fn two_runs_are_told_apart_by_their_keys_and_their_numbers_and_the_heads_by_their_roles() {
    let workshop = workshop();
    let two = json(&workshop.inspect("runs/two", &["runs/one", "heads", "--json"]));
    assert_eq!(two["keys"], json!([["model.n_layers", ["2", "1"]]]));
    let accuracies = &two["measures"][0];
    assert_eq!(accuracies["name"], "accuracy");
    let [first, second] = ["runs/two", "runs/one"].map(|run| accuracy(&workshop, run));
    let difference = &accuracies["differences"][1];
    let number = |value: &Value| value.as_f64().unwrap();
    assert!((number(&accuracies["sides"][0]["mean"]) - first).abs() < 1e-9);
    assert!((number(&difference["mean"]) - (second - first)).abs() < 1e-6);
    assert!(number(&difference["low"]) <= second - first);
    assert!(number(&difference["high"]) >= second - first);
    // The same task and seed: both were measured on the same sequences.
    assert_eq!(difference["over"], "same_sequences");

    // Each head with a role stands once, in the run that it is of.
    for (at, run) in ["runs/two", "runs/one"].into_iter().enumerate() {
        let heads = summary(&workshop, run)["heads"].as_array().unwrap().clone();
        let with_role = heads.iter().filter(|head| head["role"] != "mixed").count();
        let roles = two["roles"].as_array().unwrap().iter();
        let told: usize = roles
            .map(|role| role["sides"][at]["heads"][0].as_array().unwrap().len())
            .sum();
        assert_eq!(told, with_role, "{run}");
    }

    // A run is as good as itself, surely.
    let same = json(&workshop.inspect("runs/two", &["runs/two", "heads", "--json"]));
    let difference = &same["measures"][0]["differences"][1];
    assert_eq!(
        [&difference["mean"], &difference["low"], &difference["high"]].map(|n| number(n).abs()),
        [0.0; 3]
    );
    assert_eq!(same["keys"], json!([]));
}

#[test]
fn a_folder_of_seeds_is_one_subject_and_has_a_page_with_links_to_each_run() {
    let workshop = workshop();
    let seeds = json(&workshop.inspect("runs/all", &["heads", "--json"]));
    let values = &seeds["measures"][0]["sides"][0]["values"];
    let runs = [3, 4, 5].map(|seed| accuracy(&workshop, &format!("runs/all/seed-{seed}")));
    assert_eq!(values, &json!(runs));
    // Seed 3 is the seed of the file.
    assert_eq!(runs[0], accuracy(&workshop, "runs/two"));

    // Training has written the page; the verb writes it again, to the same bytes.
    let page = workshop.path("runs/all/report.html");
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.contains(r#""report":"seed-4/report.html""#));
    assert_ok(&workshop.inspect("runs/all", &["report"]));
    assert!(fs::read_to_string(&page).unwrap() == written);

    // Three seeds beside one run: there is no interval of a difference between them.
    let mixed = json(&workshop.inspect("runs/all", &["runs/one", "--json"]));
    assert_eq!(mixed["measures"][0]["differences"], json!([null, null]));
    let output = workshop.inspect("runs/two", &["runs/one", "report"]);
    assert_ok(&output);
    let page = fs::read_to_string(workshop.path("runs/two-and-one.html")).unwrap();
    assert!(page.contains("<title>two and one</title>"));
    assert!(page.contains(r#""report":"one/report.html""#));
}

#[test]
fn several_seeds_on_both_sides_differ_by_welchs_t() {
    let workshop = Workshop::new();
    let two = workshop.write("two.toml", SMALL);
    assert_ok(&workshop.train(&two, &["--out", "a", "--seeds", "0..2"]));
    assert_ok(&workshop.train(&two, &["--out", "b", "--seeds", "2..4"]));
    let both = json(&workshop.inspect("a", &["b", "--json"]));
    let difference = &both["measures"][0]["differences"][1];
    assert_eq!(difference["over"], "seeds");
    let values = |side: usize| -> Vec<f64> {
        serde_json::from_value(both["measures"][0]["sides"][side]["values"].clone()).unwrap()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let expected = mean(&values(1)) - mean(&values(0));
    assert!((difference["mean"].as_f64().unwrap() - expected).abs() < 1e-12);
}

#[test]
fn curves_have_every_run_and_all_views_keep_within_eighty_columns() {
    let workshop = workshop();
    let curves = json(&workshop.inspect("runs/all", &["runs/one", "curves", "--json"]));
    let accuracies = &curves[0];
    assert_eq!(accuracies["name"], "accuracy");
    assert_eq!(accuracies["runs"].as_array().unwrap().len(), 4);
    let last = accuracies["runs"][3]["points"].as_array().unwrap().last();
    assert_eq!(last.unwrap(), &json!([25, accuracy(&workshop, "runs/one")]));
    for arguments in [
        &["runs/all", "heads"][..],
        &["runs/two", "runs/one", "heads"],
        &["runs/all", "runs/one", "curves"],
    ] {
        let mut command = Command::cargo_bin("inspect").unwrap();
        let command = command.current_dir(workshop.0.path()).args(arguments);
        let output = command.env("COLUMNS", "80").output().unwrap();
        assert_ok(&output);
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            assert!(line.width() <= 80, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_said_in_one_line() {
    let workshop = Workshop::trained("run");
    for (arguments, parts) in [
        (
            &["run", "ablate"][..],
            &["ablate takes one run", "heads, curves and report"][..],
        ),
        (&["headz"], &["headz", "no run and no verb", "heads"]),
        (&["run", "--at", "best"], &["--at best", "one run"]),
        (&["run", "report", "--by", "zero"], &["--by", "zero"]),
    ] {
        assert_one_line(&workshop.inspect("run", arguments), 2, parts);
    }
    fs::create_dir(workshop.path("empty")).unwrap();
    assert_one_line(
        &workshop.inspect("empty", &["heads"]),
        2,
        &["empty", "not a run directory"],
    );
}
