//! Several seeds of one configuration, as their users meet them.

mod common;

use std::fs;

use common::{SMALL, Workshop, assert_ok, assert_one_line};
use serde_json::Value;

#[test]
fn seeds_side_by_side_are_the_runs_they_would_be_alone() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let output = workshop.train(&config, &["--seeds", "3..6", "--out", "all"]);
    assert_ok(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("seed 4: step 10/25"));
    assert_ok(&workshop.train(&config, &["--set", "seed=4", "--out", "alone"]));
    for file in [
        "metrics.jsonl",
        "heads.jsonl",
        "uses.jsonl",
        "last/weights.safetensors",
    ] {
        let read = |run: &str| fs::read(workshop.path(run).join(file)).unwrap();
        assert!(read("all/seed-4") == read("alone"), "{file} differs");
    }

    let summary: Value =
        serde_json::from_slice(&fs::read(workshop.path("all/seeds.json")).unwrap()).unwrap();
    let loss = &summary["measures"]["loss"];
    let values: Vec<f64> = loss["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    let mean = values.iter().sum::<f64>() / 3.0;
    assert!((loss["mean"].as_f64().unwrap() - mean).abs() < 1e-12 && values[0] != values[1]);
    assert!(loss["low"].as_f64().unwrap() < mean && mean < loss["high"].as_f64().unwrap());
    let alone: Value =
        serde_json::from_slice(&fs::read(workshop.path("alone/summary.json")).unwrap()).unwrap();
    assert_eq!(values[1], alone["loss"].as_f64().unwrap());
}

#[test]
fn nothing_is_written_where_one_of_the_runs_is_there_already() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    fs::create_dir_all(workshop.path("all/seed-1")).unwrap();
    assert_one_line(
        &workshop.train(&config, &["--seeds", "0..2", "--out", "all"]),
        2,
        &["seed-1", "exists already"],
    );
    assert!(!workshop.path("all/seed-0").exists());
    let backwards = workshop.train(&config, &["--seeds", "2..0"]);
    assert!(
        backwards.status.code() == Some(2)
            && String::from_utf8_lossy(&backwards.stderr).contains("0..4")
    );
}
