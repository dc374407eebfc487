//! The binaries as their users meet them.

mod common;

use std::{collections::BTreeMap, fs, path::Path, process::Stdio};

use assert_cmd::Command;
use common::{SMALL, Workshop, assert_ok, assert_one_line, json};
use headlight_heads::Measure;
use serde_json::Value;

#[test]
fn a_run_is_not_overwritten_unless_asked_and_other_directories_never() {
    let workshop = Workshop::trained("run");
    let config = workshop.path("small.toml");
    let before = fs::read(workshop.path("run/metrics.jsonl")).unwrap();
    assert_one_line(
        &workshop.train(&config, &["--out", "run", "--set", "seed=4"]),
        2,
        &["run", "--overwrite"],
    );
    assert_eq!(
        fs::read(workshop.path("run/metrics.jsonl")).unwrap(),
        before
    );

    assert_ok(&workshop.train(&config, &["--out", "run", "--set", "seed=4", "--overwrite"]));
    assert_ne!(
        fs::read(workshop.path("run/metrics.jsonl")).unwrap(),
        before
    );

    fs::create_dir(workshop.path("mine")).unwrap();
    workshop.write("mine/letter.txt", "keep me");
    assert_one_line(
        &workshop.train(&config, &["--out", "mine", "--overwrite"]),
        2,
        &["mine", "left alone"],
    );
    assert_eq!(
        fs::read_to_string(workshop.path("mine/letter.txt")).unwrap(),
        "keep me"
    );
}

/// Whatever reads standard error may go away, and a disk may be full: a run needs neither.
#[cfg(unix)]
#[test]
fn a_run_whose_standard_error_has_no_reader_is_whole() {
    let workshop = Workshop::trained("run");
    let train = |out: &str, arguments: &[&str], error: Stdio| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_train"));
        command
            .current_dir(workshop.path(""))
            .arg("small.toml")
            .args(["--out", out])
            .args(arguments)
            .env("RUST_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(error)
            .output()
            .unwrap()
    };
    let no_reader = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full_disk = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .map_or_else(|_| no_reader(), Stdio::from);
    for (out, arguments, error) in [
        ("unread", &[][..], no_reader()),
        ("full", &[], full_disk),
        ("screen", &["--screen"], no_reader()),
        // There is nothing to do, and that is said.
        ("unread", &["--resume"], no_reader()),
    ] {
        let output = train(out, arguments, error);
        assert_eq!(output.status.code(), Some(0), "{out} {arguments:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("accuracy"));
        for file in ["metrics.jsonl", "heads.jsonl", "last/weights.safetensors"] {
            let bytes = |run: &str| fs::read(workshop.path(run).join(file)).unwrap();
            assert!(bytes(out) == bytes("run"), "{out}/{file}");
        }
        assert!(workshop.path(out).join("report.html").is_file());
    }
    let output = train("unread", &["--resume", "--overwrite"], no_reader());
    assert_eq!(output.status.code(), Some(2), "wrong input stays wrong");
}

#[cfg(unix)]
#[test]
fn a_result_that_nobody_reads_is_no_failure_and_one_that_is_lost_is() {
    let workshop = Workshop::trained("run");
    let run = |program: &str, arguments: &[&str], out: Stdio| {
        let mut command = std::process::Command::new(program);
        command
            .current_dir(workshop.path(""))
            .args(arguments)
            .stdout(out)
            .stderr(Stdio::piped())
            .output()
            .unwrap()
    };
    let (train, inspect) = (env!("CARGO_BIN_EXE_train"), env!("CARGO_BIN_EXE_inspect"));
    let no_reader = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for arguments in [
        &["run", "heads"][..],
        &["run", "generate"],
        &["run", "pattern"],
    ] {
        assert_ok(&run(inspect, arguments, no_reader()));
    }
    assert_ok(&run(train, &["small.toml", "--out", "unread"], no_reader()));
    assert!(workshop.path("unread/summary.json").is_file());

    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let full = || Stdio::from(full.try_clone().unwrap());
    for (program, arguments) in [
        (inspect, &["run", "heads"][..]),
        (train, &["small.toml", "--out", "full"]),
    ] {
        let output = run(program, arguments, full());
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("error: standard output: "), "{error}");
    }
    assert!(workshop.path("full/report.html").is_file());
}

#[test]
fn warnings_bring_no_colours_into_a_file() {
    let workshop = Workshop::trained("run");
    // No weights of any point of training are left.
    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_dir_all(workshop.path("run/checkpoints")).unwrap();
    let heads = workshop.inspect("run", &[]);
    assert_ok(&heads);
    let warning = String::from_utf8(heads.stderr).unwrap();
    assert!(warning.contains("without scores on shuffled"), "{warning}");
    assert!(!warning.contains('\u{1b}'), "{warning:?}");
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let workshop = Workshop::trained("one");
    let config = workshop.path("small.toml");
    assert_ok(&workshop.train(&config, &["--out", "two"]));
    for file in [
        "config.toml",
        "vocabulary.json",
        "metrics.jsonl",
        "heads.jsonl",
        "last/weights.safetensors",
        "checkpoints/step-10/weights.safetensors",
        "patterns/step-0/probe.safetensors",
        "patterns/step-20/task.safetensors",
        "patterns/step-25/probe.safetensors",
    ] {
        let bytes = |run: &str| {
            fs::read(workshop.path(run).join(file)).unwrap_or_else(|_| panic!("{run}/{file}"))
        };
        assert!(!bytes("one").is_empty());
        assert!(bytes("one") == bytes("two"), "{file} differs");
    }
    assert_ok(&workshop.train(&config, &["--out", "other", "--set", "seed=4"]));
    let weights =
        |run: &str| fs::read(workshop.path(run).join("last/weights.safetensors")).unwrap();
    assert!(weights("one") != weights("other"));
}

#[test]
fn inspect_prints_heads_patterns_and_evaluations() {
    let workshop = Workshop::trained("run");
    let summary: Value =
        serde_json::from_slice(&fs::read(workshop.path("run/summary.json")).unwrap()).unwrap();
    for key in [
        "task",
        "device",
        "steps",
        "seconds",
        "tokens_per_second",
        "loss",
        "accuracy",
        "floor",
        "chance",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }

    let mut heads = json(&workshop.inspect("run", &["heads", "--json"]));
    for head in heads.as_array_mut().unwrap() {
        let shuffled = head.as_object_mut().unwrap().remove("shuffled").unwrap();
        assert!((0.0..1.0).contains(&shuffled["induction"]["value"].as_f64().unwrap()));
    }
    assert_eq!(heads, summary["heads"]);
    assert_eq!(heads.as_array().unwrap().len(), 4);
    let score = &heads[3]["scores"]["induction"];
    assert_eq!(heads[3]["head"], "L1H1");
    let number = |key: &str| score[key].as_f64().unwrap();
    assert!(
        number("low") <= number("value")
            && number("value") <= number("high")
            && number("ceiling") == 1.0
    );
    let text = workshop.inspect("run", &[]);
    assert_ok(&text);
    assert_eq!(text.stdout, workshop.inspect("run", &["heads"]).stdout);
    assert!(String::from_utf8_lossy(&text.stdout).contains("L1H1"));

    let pattern = json(&workshop.inspect(
        "run",
        &[
            "pattern", "--head", "L0H1", "--prompt", "a b  c a", "--json",
        ],
    ));
    assert_eq!(pattern["tokens"], serde_json::json!(["a", "b", "c", "a"]));
    for (query, row) in pattern["pattern"].as_array().unwrap().iter().enumerate() {
        let row: Vec<f64> = row
            .as_array()
            .unwrap()
            .iter()
            .map(|weight| weight.as_f64().unwrap())
            .collect();
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        assert!(row[query + 1..].iter().all(|&weight| weight == 0.0));
    }
    let picture = workshop.inspect("run", &["pattern", "--head", "L0H1", "--prompt", "a b c a"]);
    assert_ok(&picture);
    assert!(
        !picture.stdout.contains(&0x1b),
        "no colour codes into a pipe"
    );

    let generate =
        |arguments: &[&str]| workshop.inspect("run", &[&["generate"], arguments].concat());
    let written = json(&generate(&[
        "--prompt",
        "a b c",
        "--temperature",
        "0",
        "--json",
    ]));
    assert_eq!(written["prompt"], serde_json::json!(["a", "b", "c"]));
    assert_eq!(written["tokens"].as_array().unwrap().len(), 13);
    assert_eq!(
        written["ending"],
        "the context is full: the model has learned 16 positions"
    );
    let text = generate(&["--prompt", "a b c", "--temperature", "0"]);
    assert_ok(&text);
    let names: Vec<&str> = written["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(
        String::from_utf8_lossy(&text.stdout).starts_with(&format!("a b c {}", names.join(" ")))
    );
    // Several prompts of different length: each gets what it gets alone.
    let several = ["a b c", "d", "b a d c b a d c b a d c b a d c"];
    let prompts = several.iter().flat_map(|prompt| ["--prompt", prompt]);
    let mut arguments: Vec<&str> = prompts.chain(["--seed", "3", "--json"]).collect();
    let together = json(&generate(&arguments));
    for (at, prompt) in several.into_iter().enumerate() {
        let alone = json(&generate(&["--prompt", prompt, "--seed", "3", "--json"]));
        assert_eq!(together[at], alone);
    }
    assert_eq!(together[2]["tokens"], serde_json::json!([]), "it was full");
    arguments.pop();
    let text = generate(&arguments);
    assert_ok(&text);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let blocks: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert_eq!(blocks.len(), 6, "a text and its ending for each: {text}");
    assert!(blocks[2].starts_with("d ") && blocks[4].trim_end() == several[2]);
    let few = json(&generate(&[
        "--tokens", "3", "--seed", "5", "--top-k", "4", "--top-p", "0.9", "--json",
    ]));
    assert_eq!(
        (
            few["prompt"].as_array().unwrap().len(),
            few["tokens"].as_array().unwrap().len()
        ),
        (8, 3)
    );

    let ablations = json(&workshop.inspect(
        "run",
        &[
            "ablate",
            "--heads",
            "L0H0,L1H1",
            "--all",
            "--by",
            "zero",
            "--json",
        ],
    ));
    let heads = summary["heads"].as_array().unwrap().len();
    assert_eq!(ablations["alone"].as_array().unwrap().len(), heads);
    let chosen = ablations["sets"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&chosen["name"], chosen["heads"][1].as_str()),
        (&serde_json::json!("chosen"), Some("L1H1"))
    );
    let alone = json(&workshop.inspect(
        "run",
        &["ablate", "--heads", "L0H0,L1H1", "--by", "zero", "--json"],
    ));
    assert_eq!(alone["alone"].as_array().unwrap().len(), 0);
    let [set] = &alone["sets"].as_array().unwrap()[..] else {
        panic!("{alone}");
    };
    assert_eq!(set["performance"], chosen["performance"]);
    assert_ok(&workshop.inspect("run", &["ablate", "--by", "resample"]));
    assert_one_line(
        &workshop.inspect("run", &["ablate", "--heads", "L7H0"]),
        2,
        &["L7H0", "no such head"],
    );
    let paths = json(&workshop.inspect("run", &["paths", "--json"]));
    // The first layer and each of its heads, hidden from three inputs of the second.
    assert_eq!(
        paths["paths"].as_array().unwrap().len(),
        3 * (1 + heads / 2)
    );
    assert_ok(&workshop.inspect("run", &["paths"]));
    let lens = json(&workshop.inspect("run", &["lens", "--json"]));
    assert_eq!(lens["depths"][2]["site"], "blocks.1.hook_resid_post");
    assert_eq!(lens["depths"][2]["performance"], ablations["untouched"]);
    assert_ok(&workshop.inspect("run", &["lens"]));
    let offsets = json(&workshop.inspect("run", &["offsets", "--json"]));
    assert_eq!(offsets[1]["profile"].as_array().unwrap().len(), 12);
    assert_eq!(
        offsets[1]["scores"]["induction"]["value"],
        summary["heads"][1]["scores"]["induction"]["value"]
    );

    let export = |arguments: &[&str]| workshop.inspect("run", &[&["export"], arguments].concat());
    assert_ok(&export(&["--to", "exported"]));
    assert!(
        workshop
            .path("exported/transformer_lens.safetensors")
            .is_file()
    );
    assert!(
        !workshop.path("exported/model.safetensors").exists(),
        "attention alone is of no family"
    );
    assert_one_line(&export(&["--to", "exported"]), 2, &["exists already"]);
    assert_one_line(
        &export(&["--to", "folder", "--format", "huggingface"]),
        2,
        &["no family of transformers", "gpt2", "feed-forward"],
    );
    assert!(!workshop.path("folder").exists());
    let rows = json(&workshop.inspect("run", &["curves", "--json"]));
    assert_eq!(rows[3]["step"], 25);
    assert_eq!(rows[3]["accuracy"], summary["accuracy"]);
    assert_eq!(rows[3]["exact"], summary["exact"]);
    assert_ok(&workshop.inspect("run", &["curves", "--svg", "curves.svg"]));
    let svg = fs::read_to_string(workshop.path("curves.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("validation") && !svg.contains("training set"),
        "{svg}"
    );
    let drawn = String::from_utf8(workshop.inspect("run", &["curves"]).stdout).unwrap();
    assert!(
        drawn.contains("* accuracy on the validation set, null 0.083")
            && drawn.contains("o loss on the validation set"),
        "{drawn}"
    );

    let on = json(&workshop.inspect("run", &["evaluate", "--on", "small.toml", "--json"]));
    assert!(
        (on["accuracy"].as_f64().unwrap() - summary["accuracy"].as_f64().unwrap()).abs() < 1e-9
    );
    assert!((on["loss"].as_f64().unwrap() - summary["loss"].as_f64().unwrap()).abs() < 1e-6);
}

#[test]
fn a_finite_training_set_is_measured_beside_the_validation_set() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let sets = [
        "task={ name = 'modular_addition', modulus = 7 }",
        "model.n_ctx=3",
        "train.batch_size=14",
    ];
    let arguments: Vec<&str> = ["--out", "run"]
        .into_iter()
        .chain(sets.iter().flat_map(|set| ["--set", set]))
        .collect();
    assert_ok(&workshop.train(&config, &arguments));
    let rows = json(&workshop.inspect("run", &["curves", "--json"]));
    // 14 pairs are trained on, the other 35 are validated on.
    let count = |key: &str, of: f64| rows[3][key].as_f64().unwrap() * of;
    for pairs in [count("training_accuracy", 14.0), count("accuracy", 35.0)] {
        assert!((pairs - pairs.round()).abs() < 1e-9, "{pairs}");
    }
    let drawn = String::from_utf8(workshop.inspect("run", &["curves"]).stdout).unwrap();
    assert!(
        drawn.contains("* accuracy on the training set")
            && drawn.contains("o accuracy on the validation set")
    );
}

/// The rows by their columns; no field has a comma.
fn rows_of_csv(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|line| header.iter().cloned().zip(line).collect())
        .collect()
}

#[test]
fn every_table_of_a_verb_is_a_file_for_other_programs() {
    let workshop = Workshop::trained("run");
    let output = workshop.inspect("run", &["heads", "--csv", "heads.csv"]);
    assert_ok(&output);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("Written to heads.csv, heads."), "{said}");
    let heads = json(&workshop.inspect("run", &["heads", "--json"]));
    let rows = rows_of_csv(&fs::read_to_string(workshop.path("heads.csv")).unwrap());
    assert_eq!(rows.len(), 4);
    for (row, head) in rows.iter().zip(heads.as_array().unwrap()) {
        assert_eq!(row["head"], head["head"].as_str().unwrap());
        assert_eq!(row["role"], head["role"].as_str().unwrap());
    }
    let scores = rows_of_csv(&fs::read_to_string(workshop.path("heads.scores.csv")).unwrap());
    for row in &scores {
        let head = heads.as_array().unwrap().iter();
        let head = head
            .clone()
            .find(|head| head["head"] == row["head"].as_str())
            .unwrap();
        for column in ["value", "null", "ceiling", "low", "high"] {
            let number = &head["scores"][row["name"].as_str()][column];
            assert_eq!(row[column], number.to_string(), "{row:?}");
        }
    }
    assert_one_line(
        &workshop.inspect("run", &["heads", "--csv", "nowhere/heads.csv"]),
        2,
        &["nowhere/heads"],
    );
    assert_one_line(
        &workshop.inspect("run", &["serve", "--csv", "a.csv"]),
        2,
        &["--csv: a.csv: serve has no tables"],
    );
}

#[test]
fn pictures_are_files_with_their_numbers_beside_them() {
    let workshop = Workshop::trained("run");
    let files = ["--svg", "a.svg", "--png", "a.png", "--csv", "a.csv"];
    let pictures: [&[&str]; 4] = [
        &["pattern", "--head", "L1H0", "--prompt", "a b c"],
        &["pattern"],
        &["curves"],
        &["scores"],
    ];
    let csvs = pictures.map(|picture| {
        assert_ok(&workshop.inspect("run", &[picture, &files].concat()));
        assert!(
            fs::read(workshop.path("a.png"))
                .unwrap()
                .starts_with(b"\x89PNG")
        );
        assert!(
            fs::read_to_string(workshop.path("a.svg"))
                .unwrap()
                .starts_with("<svg")
        );
        fs::read_to_string(workshop.path("a.csv")).unwrap()
    });
    // A query and each key up to it: 3 · 4 / 2 pairs of one head, 16 · 17 / 2 of each of four.
    assert_eq!(
        [&csvs[0], &csvs[1]].map(|csv| csv.lines().count() - 1),
        [6, 4 * 136]
    );
    let pattern = json(&workshop.inspect(
        "run",
        &["pattern", "--head", "L1H0", "--prompt", "a b c", "--json"],
    ));
    let rows = rows_of_csv(&csvs[0]);
    let row = &rows[4];
    let places =
        ["head", "query", "key", "query_token", "key_token"].map(|name| row[name].as_str());
    assert_eq!(places, ["L1H0", "2", "1", "c", "b"]);
    let weight: f64 = row["weight"].parse().unwrap();
    assert!((weight - pattern["pattern"][2][1].as_f64().unwrap()).abs() < 1e-7);
    // Steps 0, 10, 20 and 25; on the probe and on the task, of four heads.
    assert_eq!(
        [&csvs[2], &csvs[3]].map(|csv| csv.lines().count() - 1),
        [4, 4 * 2 * 4]
    );
    // Every score of every head has a row beside it.
    let scores = fs::read_to_string(workshop.path("a.scores.csv")).unwrap();
    let rows = rows_of_csv(&scores);
    let measured = Measure::BUILT_IN.map(Measure::name);
    let measured = rows
        .iter()
        .filter(|row| measured.contains(&row["name"].as_str()));
    assert_eq!(measured.count(), 4 * 2 * 4 * Measure::BUILT_IN.len());
    let first = &json(&workshop.inspect("run", &["scores", "--json"]))[0];
    let first_row = &rows[0];
    assert_eq!(first_row["head"], first["head"].as_str().unwrap());
    let score = &first["scores"][first_row["name"].as_str()]["value"];
    assert_eq!(first_row["value"], score.to_string());
    assert_one_line(
        &workshop.inspect("run", &["curves", "--svg", "nowhere/a.svg"]),
        2,
        &["nowhere/a.svg"],
    );
}

#[test]
fn every_picture_shows_that_a_window_masks_what_is_too_far_back() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    assert_ok(&workshop.train(&config, &["--out", "run", "--set", "model.window=3"]));
    let pattern = |arguments: &[&str]| {
        let prompted = ["pattern", "--head", "L0H1", "--prompt", "a b c d e"];
        let output = workshop.inspect("run", &[&prompted, arguments].concat());
        assert_ok(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    pattern(&["--svg", "a.svg", "--csv", "a.csv"]);
    let masked = |query: usize, key: usize| key > query || query - key >= 3;

    let text = pattern(&[]);
    for (query, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}  ")))
            .unwrap();
        let cells: Vec<char> = row.chars().step_by(2).collect();
        assert!(
            (0..=query).all(|key| (cells[key] == ' ') == masked(query, key))
                && cells.len() == query + 1,
            "{text}"
        );
    }

    let csv = fs::read_to_string(workshop.path("a.csv")).unwrap();
    let number = |text: &str| text.parse::<usize>().unwrap();
    let place = |row: &BTreeMap<String, String>| (number(&row["query"]), number(&row["key"]));
    let seen: Vec<(usize, usize)> = rows_of_csv(&csv).iter().map(place).collect();
    let expected = (0..5).flat_map(|query| (0..5).map(move |key| (query, key)));
    assert_eq!(
        seen,
        expected
            .filter(|&(query, key)| !masked(query, key))
            .collect::<Vec<_>>()
    );

    // `M2 4h1v1h-1z`: in the row of query 4, a cell from key 2 on.
    let svg = fs::read_to_string(workshop.path("a.svg")).unwrap();
    let paths = svg
        .split(" d=\"M")
        .skip(2)
        .flat_map(|path| path.split('"').next().unwrap().split('M'));
    let mut drawn = Vec::new();
    for run in paths {
        let numbers: Vec<usize> = run
            .split([' ', 'h', 'v'])
            .take(3)
            .map(|number| number.parse().unwrap())
            .collect();
        drawn.extend((numbers[0]..numbers[0] + numbers[2]).map(|key| (numbers[1], key)));
    }
    drawn.sort_unstable();
    assert_eq!(drawn, seen);
    assert!(
        svg.contains("masked: after the query or too far before it"),
        "{svg}"
    );
}

#[test]
fn inspect_reads_circuits_from_the_weights() {
    let workshop = Workshop::trained("run");
    let circuits =
        |arguments: &[&str]| workshop.inspect("run", &[&["circuits"], arguments].concat());
    let tables = json(&circuits(&["--json"]));
    assert_eq!(tables["heads"].as_array().unwrap().len(), 4);
    let pairs = tables["compositions"].as_array().unwrap();
    // Two heads, two behind them, three inputs.
    assert_eq!(pairs.len(), 12);
    for pair in pairs {
        let number = |value: &Value| value.as_f64().unwrap();
        let (score, random) = (&pair["score"], &pair["score"]["random"]);
        let z = (number(&score["value"]) - number(&random["mean"])) / number(&random["deviation"]);
        assert!((number(&score["z"]) - z).abs() < 1e-9, "{pair}");
        assert_eq!(
            pair["own_token"].is_null(),
            pair["input"] != "key",
            "{pair}"
        );
    }
    assert!(tables["chosen"].is_null());
    assert_eq!(tables, json(&circuits(&["--json"])), "the draws are seeded");
    let chosen = json(&circuits(&["--head", "L1H0", "--json"]));
    assert_eq!(chosen["compositions"].as_array().unwrap().len(), 6);
    assert_eq!(
        chosen["chosen"]["ov"]["directions"][0]["ends"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_ok(&circuits(&[]));
    assert!(
        String::from_utf8(circuits(&["--head", "L1H0"]).stdout)
            .unwrap()
            .contains("L1H0, W_E·W_QK·W_Eᵀ")
    );
    assert_one_line(
        &circuits(&["--head", "L2H0"]),
        2,
        &["--head L2H0", "no such head"],
    );
}

#[test]
fn inspect_has_the_numbers_that_another_tool_is_compared_by() {
    let workshop = Workshop::trained("run");
    let detect = |arguments: &[&str]| workshop.inspect("run", &[&["detect"], arguments].concat());
    let heads = json(&detect(&["--prompt", "a b c d", "--json"]));
    assert_eq!(heads[3]["head"], "L1H1");
    // No token comes twice: no weight can be where the detector looks.
    assert_eq!(
        heads[3]["induction_head"],
        serde_json::json!({"mul": 0.0, "abs": 0.0})
    );
    assert!(heads[3]["previous_token_head"]["mul"].as_f64().unwrap() > 0.0);
    assert_ok(&detect(&[]));

    let lens = |prompt: &str| workshop.inspect("run", &["lens", "--prompt", prompt, "--json"]);
    let one = &json(&lens("a b"))["depths"][2]["performance"];
    assert!(
        [0.0, 1.0].contains(&one["accuracy"].as_f64().unwrap()),
        "of one next token: {one}"
    );
    assert!(one["loss_elsewhere"].is_null());
    assert_one_line(&lens("a"), 2, &["--prompt", "nothing comes next"]);
    assert_one_line(&lens("a nowhere"), 2, &["nowhere"]);
}

#[test]
fn inspect_refuses_what_is_not_there() {
    let workshop = Workshop::trained("run");
    assert_one_line(
        &workshop.inspect("nowhere", &[]),
        2,
        &["nowhere", "no such run"],
    );
    assert_one_line(&workshop.inspect(".", &[]), 2, &["not a run directory"]);
    let pattern = |head: &str, prompt: &str| {
        workshop.inspect("run", &["pattern", "--head", head, "--prompt", prompt])
    };
    assert_one_line(&pattern("L2H0", "a"), 2, &["--head L2H0", "L1H1"]);
    assert_one_line(&pattern("L0H0", "a zebra"), 2, &["--prompt", "zebra"]);
    assert_one_line(&pattern("L0H0", " "), 2, &["--prompt", "empty"]);
    assert_one_line(&pattern("L0H0", &"a ".repeat(17)), 2, &["17 tokens", "16"]);
    assert_eq!(pattern("head", "a").status.code(), Some(2));

    let generate =
        |arguments: &[&str]| workshop.inspect("run", &[&["generate"], arguments].concat());
    assert_one_line(
        &generate(&["--prompt", "a zebra"]),
        2,
        &["--prompt", "zebra"],
    );
    assert_one_line(&generate(&["--stop", "zebra"]), 2, &["--stop", "zebra"]);
    assert_one_line(&generate(&["--temperature=-1"]), 2, &["temperature", "-1"]);
    assert_one_line(
        &generate(&["--tokens", "99999999999"]),
        2,
        &["--tokens", "65536"],
    );
    assert_one_line(&generate(&["--top-p", "0"]), 2, &["top-p", "0"]);

    let longer = workshop.write("longer.toml", &SMALL.replace("n_ctx = 16", "n_ctx = 32"));
    let on = |path: &Path| workshop.inspect("run", &["evaluate", "--on", path.to_str().unwrap()]);
    assert_one_line(&on(&longer), 2, &["longer.toml", "model.n_ctx = 32"]);
    let other = workshop.write(
        "other.toml",
        &SMALL.replace("vocabulary = 12", "vocabulary = 13"),
    );
    assert_one_line(&on(&other), 2, &["other.toml", "13 tokens", "12"]);

    let weights = workshop.path("run/last/weights.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    assert_one_line(
        &pattern("L0H0", "a"),
        2,
        &["weights.safetensors", "damaged"],
    );
}

#[test]
fn the_usage_of_every_verb_says_where_the_run_stands() {
    let workshop = Workshop::new();
    let inspect = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("inspect").unwrap();
        let output = command
            .current_dir(workshop.path(""))
            .args(arguments)
            .output();
        output.unwrap()
    };
    let help = |verb: &str| String::from_utf8(inspect(&[verb, "--help"]).stdout).unwrap();
    let all = help("--help");
    let verbs = all
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in verbs {
        let usage = match verb {
            "help" => continue,
            "learn" => "Usage: inspect learn [OPTIONS]",
            "export" => "Usage: inspect <RUN> export [OPTIONS] --to <DIR>\n",
            "activations" => "Usage: inspect <RUN> activations [OPTIONS] --to <FILE>\n",
            "predict" => "Usage: inspect <RUN> predict [OPTIONS] --prompt <PROMPT>\n",
            "senses" => "Usage: inspect <RUN> senses [OPTIONS] --words <WORDS>\n",
            "why" => "Usage: inspect <RUN> why [OPTIONS] --head <HEAD>\n",
            verb => &format!("Usage: inspect <RUN> {verb} [OPTIONS]\n"),
        };
        assert!(help(verb).contains(usage), "{}", help(verb));
    }

    let wrong = inspect(&["pattern", "runs/induction", "--json"]);
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        message.contains("RUN stands before the verb: inspect runs/induction pattern"),
        "{message}"
    );
    let both = Command::cargo_bin("headlight")
        .unwrap()
        .args(["inspect", "pattern", "runs/induction"])
        .output()
        .unwrap();
    let message = String::from_utf8(both.stderr).unwrap();
    assert!(
        message.contains("the verb: headlight inspect runs/induction pattern"),
        "{message}"
    );
    let unknown = inspect(&["runs/induction", "pattern", "--nothing"]);
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(
        message.contains("unexpected argument '--nothing'"),
        "{message}"
    );
    assert_one_line(&inspect(&["pattern"]), 2, &["no run is named"]);
}

#[test]
fn without_a_terminal_the_screen_gives_way_to_lines_that_say_what_is_left() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let output = workshop.train(&config, &["--out", "run", "--screen"]);
    assert_ok(&output);
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        lines.contains("--screen: standard error is no terminal; going on without it"),
        "{lines}"
    );
    let progress = lines
        .lines()
        .find(|line| line.starts_with("step 10/25  loss "))
        .expect("a line every 10 steps");
    for part in ["accuracy ", " tokens/s", " left"] {
        assert!(progress.contains(part), "{progress}");
    }
    assert!(!lines.contains('\u{1b}'), "nothing is drawn: {lines}");
}

#[test]
fn every_run_has_one_tensorboard_file_for_each_process() {
    let workshop = Workshop::trained("run");
    let files: Vec<_> = fs::read_dir(workshop.path("run/tensorboard"))
        .unwrap()
        .map(|file| file.unwrap())
        .collect();
    assert_eq!(files.len(), 1);
    assert!(
        files[0]
            .file_name()
            .to_string_lossy()
            .starts_with("events.out.tfevents.")
    );
    let bytes = fs::read(files[0].path()).unwrap();
    for tag in [
        &b"loss/validation"[..],
        b"update/gradient norm",
        b"previous token/L1H1",
        b"induction/uniform",
    ] {
        assert!(bytes.windows(tag.len()).any(|window| window == tag));
    }
}
