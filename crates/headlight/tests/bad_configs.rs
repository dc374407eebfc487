//! Configurations that cannot be right: one clear line, exit code 2, and nothing written.

mod common;

use std::fs;

use common::{SMALL, Workshop, assert_one_line};

#[test]
fn wrong_input_is_one_clear_line_and_nothing_is_written() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    // One of each kind; every key has its cases beside `Config::parse`.
    for (assignment, message) in [
        (
            "train.stepz=5",
            "train.stepz = 5: unknown key, did you mean steps?",
        ),
        (
            "train.steps=many",
            "train.steps = \"many\": must be a whole number, 0 or more",
        ),
        (
            "train.shards=3",
            "train.shards = 3: must divide train.batch_size = 8",
        ),
        (
            "task.name=repaet",
            "task.name = \"repaet\": unknown task, did you mean repeat?",
        ),
        ("steps", "must be KEY=VALUE, for example train.steps=500"),
    ] {
        let output = workshop.train(&config, &["--out", "run", "--set", assignment]);
        assert_one_line(&output, 2, &[&format!("--set {assignment}: {message}")]);
        assert!(!workshop.path("run").exists(), "{assignment} left a run");
    }
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    let workshop = Workshop::new();
    let broken = workshop.write("broken.toml", "seed = 0\n[task\n");
    assert_one_line(&workshop.train(&broken, &[]), 2, &["broken.toml:2"]);
    let empty = workshop.write("empty.toml", "");
    assert_one_line(
        &workshop.train(&empty, &[]),
        2,
        &["empty.toml", "task", "missing"],
    );
    let no_steps = workshop.write("no_steps.toml", &SMALL.replace("steps = 25", ""));
    assert_one_line(
        &workshop.train(&no_steps, &[]),
        2,
        &["no_steps.toml", "train.steps", "missing"],
    );
    let wrong = workshop.write(
        "wrong.toml",
        &SMALL.replace("d_model = 16", "d_modell = 16"),
    );
    assert_one_line(
        &workshop.train(&wrong, &[]),
        2,
        &["wrong.toml", "model.d_modell = 16", "did you mean d_model?"],
    );
    assert_one_line(
        &workshop.train(&workshop.path("nowhere.toml"), &[]),
        2,
        &["nowhere.toml", "cannot read"],
    );
    assert_one_line(
        &workshop.train(workshop.0.path(), &[]),
        2,
        &["is not a file"],
    );
    fs::write(workshop.path("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    assert_one_line(
        &workshop.train(&workshop.path("binary.toml"), &[]),
        2,
        &["binary.toml"],
    );
    assert_one_line(
        &workshop.train(&broken, &["--device", "cuda"]),
        2,
        &["broken.toml:2"],
    );
    let good = workshop.write("good.toml", SMALL);
    assert_one_line(
        &workshop.train(&good, &["--device", "tpu"]),
        2,
        &["--device tpu", "flex"],
    );
    assert!(!workshop.path("runs").exists());
}
