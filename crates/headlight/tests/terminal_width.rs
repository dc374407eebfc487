//! Every view keeps within the terminal that it is printed in, whatever the tokens are.

mod common;

use std::process::Output;

use assert_cmd::Command;
use common::{SMALL, Workshop, assert_ok};
use unicode_width::UnicodeWidthStr;

/// The verbs that print tables, prose and pictures.
const VIEWS: &[&[&str]] = &[
    &["heads"],
    &["pattern"],
    &["ablate", "--heads", "L0H0,L1H1"],
    &["paths"],
    &["positions"],
    &["positions", "--head", "L1H0"],
    &["shared", "--by", "zero"],
    &["patch"],
    &["predict", "--prompt", "猫は🐈犬", "--off", "L0H1"],
    &["swap"],
    &["lens"],
    &["circuits", "--head", "L1H0"],
    &["circuit"],
    &["why", "--head", "L1H0"],
    &[
        "why",
        "--head",
        "L1H0",
        "--prompt",
        "猫は🐈犬",
        "--toward",
        "犬🐈",
    ],
    &["detect"],
    &["offsets"],
    &["phases"],
    &["evaluate"],
    &["curves"],
    &["scores"],
    &["scores", "--head", "L1H1"],
];

fn inspect(workshop: &Workshop, columns: usize, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("inspect").unwrap();
    let command = command.current_dir(workshop.path("")).arg("run");
    let command = command.args(arguments);
    command
        .env("COLUMNS", columns.to_string())
        .output()
        .unwrap()
}

#[track_caller]
fn lines_within(output: &Output, columns: usize) -> Vec<String> {
    assert_ok(output);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for line in text.lines() {
        let width = line.width();
        assert!(
            width <= columns,
            "{width} of {columns} columns: {line}\n\n{text}"
        );
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
    text.lines().map(str::to_owned).collect()
}

/// A run on a text whose letters take two columns, or none, beside such that take one.
fn wide_letters() -> Workshop {
    let workshop = Workshop::new();
    let text = "猫は🐈です。犬は🐕です。cafe\u{301} ❤\u{fe0f} naïve 猫と犬。\n".repeat(40);
    workshop.write("text.txt", &text);
    let (_, rest) = SMALL.split_once("[model]").unwrap();
    let task = "[task]\nname = \"text\"\npath = \"text.txt\"\ntokens = \"characters\"\n";
    let config = format!("seed = 3\n{task}[model]{rest}").replace("n_ctx = 16", "n_ctx = 48");
    let config = workshop.write("wide.toml", &config);
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    workshop
}

#[test]
fn every_view_keeps_within_eighty_a_hundred_and_a_hundred_and_forty_columns() {
    let workshop = wide_letters();
    for columns in [80, 100, 140] {
        for view in VIEWS {
            let lines = lines_within(&inspect(&workshop, columns, view), columns);
            assert!(lines.len() > 5, "{view:?}");
        }
    }
    // A narrower one is no reason to stop either.
    for view in VIEWS {
        assert_ok(&inspect(&workshop, 20, view));
    }
}

#[test]
fn a_narrow_terminal_leaves_out_the_least_important_scores_and_names_them() {
    let workshop = wide_letters();
    let heads = |columns: usize| lines_within(&inspect(&workshop, columns, &["heads"]), columns);
    let header = |lines: &[String]| -> Vec<String> {
        let header = lines
            .iter()
            .find(|line| line.starts_with(" head "))
            .unwrap();
        header.split_whitespace().map(str::to_owned).collect()
    };
    let wide = heads(140);
    assert_eq!(
        header(&wide)[header(&wide).len() - 5..],
        ["previous", "current", "first", "duplicate", "induction"]
    );
    assert!(!wide.iter().any(|line| line.starts_with("Left out")));
    let narrow = heads(50);
    let names = header(&narrow);
    assert!(
        names.contains(&"induction".to_owned()) && !names.contains(&"current".to_owned()),
        "{names:?}"
    );
    let note = narrow
        .iter()
        .position(|line| line.starts_with("Left out: current, first"));
    let note = narrow[note.unwrap()..][..3].join(" ");
    assert!(
        note.contains("--json") && note.contains("columns"),
        "{note}"
    );
}

#[test]
fn without_a_terminal_or_a_word_of_its_width_a_view_has_a_hundred_columns() {
    let workshop = Workshop::trained("run");
    let default = workshop.inspect("run", &["heads"]);
    lines_within(&default, 100);
    assert_eq!(default.stdout, inspect(&workshop, 100, &["heads"]).stdout);
    assert_ne!(default.stdout, inspect(&workshop, 80, &["heads"]).stdout);
    // What is no width is not one.
    for columns in ["0", "-5", "wide"] {
        let mut command = Command::cargo_bin("inspect").unwrap();
        let command = command.current_dir(workshop.path("")).arg("run");
        let output = command.env("COLUMNS", columns).output().unwrap();
        assert_eq!(output.stdout, default.stdout, "{columns}");
    }
}

#[test]
fn relations_and_what_train_prints_keep_within_eighty_columns() {
    let workshop = Workshop::new();
    let (_, rest) = SMALL.split_once("[model]").unwrap();
    let config = format!("seed = 3\n[task]\nname = \"grammar\"\n[model]{rest}");
    let config = config
        .replace("n_ctx = 16", "n_ctx = 32")
        .replace("n_heads = 2", "n_heads = 8");
    workshop.write("grammar.toml", &config);
    let mut train = Command::cargo_bin("train").unwrap();
    let train = train.current_dir(workshop.path(""));
    let train = train.args(["grammar.toml", "--out", "run"]);
    let printed = train.env("COLUMNS", "80").output().unwrap();
    lines_within(&printed, 80);
    for columns in [80, 100, 140] {
        let view = inspect(&workshop, columns, &["relations"]);
        let lines = lines_within(&view, columns);
        let notes = lines.iter().filter(|line| line.starts_with("Left out"));
        assert_eq!(
            notes.count(),
            if columns < 105 { 2 } else { 1 },
            "{lines:#?}"
        );
    }
}

#[test]
fn what_several_seeds_have_in_common_keeps_within_eighty_columns() {
    let workshop = Workshop::new();
    workshop.write("small.toml", SMALL);
    let mut train = Command::cargo_bin("train").unwrap();
    let train = train.current_dir(workshop.path(""));
    let train = train.args(["small.toml", "--out", "run", "--seeds", "0..5"]);
    let printed = train.env("COLUMNS", "80").output().unwrap();
    let lines = lines_within(&printed, 80);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("Left out") && line.contains("seed 4")),
        "{lines:#?}"
    );
}
