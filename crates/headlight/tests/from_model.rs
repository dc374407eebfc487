//! A model of another tool learns on: `model.from`.

mod common;

use std::{collections::BTreeMap, fs, path::Path, process::Output};

use common::{Workshop, assert_ok, assert_one_line, json};
use headlight_run::sha256;
use serde_json::Value;

const CONFIG: &str = r#"
task = { name = "text", path = "sea.txt" }
model = { from = "model.gguf", n_ctx = 14 }
train = { steps = 6, batch_size = 2, learning_rate = 1e-3, shards = 1 }
log = { every = 3, patterns_every = 6, heads = 3 }
checkpoint = { every = 2 }
"#;

const TEXT: &str = "The keeper lit the lamp. The lamp was bright, and the sea was dark.\n\
    The keeper saw the sea, and the sea saw the lamp; nobody saw the keeper.\n";

const PROMPT: &str = "the light of the lamp";

/// A workshop with a model of 2 layers of 4 heads, a text and a configuration.
fn workshop() -> Workshop {
    let workshop = Workshop::new();
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../residual/tests/fixtures/gguf/llama.gguf");
    fs::copy(fixture, workshop.path("model.gguf")).unwrap();
    workshop.write("sea.txt", &TEXT.repeat(12));
    workshop.write("a.toml", CONFIG);
    workshop
}

fn train(workshop: &Workshop, arguments: &[&str]) -> Output {
    workshop.train(&workshop.path("a.toml"), arguments)
}

/// The JSON that a verb prints.
fn told(workshop: &Workshop, subject: &str, verb: &[&str]) -> Value {
    json(&workshop.inspect(subject, &[verb, &["--json"]].concat()))
}

fn rows(workshop: &Workshop, log: &str) -> Vec<Value> {
    let text = fs::read_to_string(workshop.path("run").join(log)).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

#[test]
fn training_begins_with_the_weights_and_the_tokens_of_the_model() {
    let workshop = workshop();
    // Steps so small that they change no weight.
    assert_ok(&train(
        &workshop,
        &["--out", "run", "--set", "train.learning_rate=1e-30"],
    ));
    for verb in [
        &["predict", "--prompt", PROMPT] as &[&str],
        &["pattern", "--prompt", PROMPT],
        &[
            "generate",
            "--prompt",
            PROMPT,
            "--tokens",
            "4",
            "--temperature",
            "0",
        ],
        &["circuits"],
    ] {
        assert_eq!(
            told(&workshop, "run", verb),
            told(&workshop, "model.gguf", verb),
            "{verb:?}"
        );
    }
    let written = fs::read_to_string(workshop.path("run/config.toml")).unwrap();
    let hash = sha256(&fs::read(workshop.path("model.gguf")).unwrap());
    for line in [
        "from = \"model.gguf\"",
        &format!("from_sha256 = \"{hash}\""),
        "tokens = \"model\"",
        "initialization = \"from\"",
        "n_ctx = 14",
        "heads = 3",
    ] {
        assert!(written.contains(line), "{line}\n{written}");
    }
    // What is written down is a configuration of the same run.
    let resolved = workshop.path("run/config.toml");
    assert_ok(&workshop.train(&resolved, &["--out", "run", "--resume"]));
}

#[test]
fn it_learns_and_goes_on_to_the_same_bits() {
    let workshop = workshop();
    assert_ok(&train(
        &workshop,
        &["--out", "run", "--set", "train.steps=30"],
    ));
    let metrics = rows(&workshop, "metrics.jsonl");
    let loss = |row: &Value| row["validation"].as_f64().unwrap();
    assert!(loss(metrics.last().unwrap()) < loss(&metrics[0]) - 0.02);
    let last = "last/weights.safetensors";
    let reference: BTreeMap<&str, Vec<u8>> = ["heads.jsonl", "metrics.jsonl", "uses.jsonl", last]
        .map(|name| (name, fs::read(workshop.path("run").join(name)).unwrap()))
        .into();

    // As if it had been killed after step 8.
    let run = workshop.path("run");
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_dir_all(run.join("last")).unwrap();
    for step in 9..=30 {
        let _ = fs::remove_dir_all(run.join(format!("checkpoints/step-{step}")));
    }
    let resume = ["--out", "run", "--resume", "--set", "train.steps=30"];
    assert_ok(&train(&workshop, &resume));
    for (name, bytes) in &reference {
        assert!(
            fs::read(run.join(name)).unwrap() == *bytes,
            "{name} differs"
        );
    }

    // The model may have moved, but not changed.
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::rename(workshop.path("model.gguf"), workshop.path("moved.gguf")).unwrap();
    assert_one_line(
        &train(&workshop, &resume),
        2,
        &["model.gguf", "no such file"],
    );
    let moved = [&resume[..], &["--set", "model.from=moved.gguf"]].concat();
    assert_ok(&train(&workshop, &moved));
    fs::remove_file(run.join("summary.json")).unwrap();
    let mut bytes = fs::read(workshop.path("moved.gguf")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(workshop.path("moved.gguf"), bytes).unwrap();
    assert_one_line(
        &train(&workshop, &moved),
        2,
        &["model.from_sha256", "the run was begun with"],
    );
}

#[test]
fn the_run_needs_neither_the_model_nor_the_text() {
    let workshop = workshop();
    assert_ok(&train(&workshop, &["--out", "run"]));
    let verbs: [&[&str]; 22] = [
        &["heads"],
        &["heads", "--at", "best"],
        &["pattern"],
        &["pattern", "--prompt", PROMPT],
        &["ablate"],
        &["paths"],
        &["positions"],
        &["shared"],
        &["predict", "--prompt", PROMPT],
        &["swap"],
        &["lens"],
        &["circuits"],
        &["circuit", "--pairs", "key"],
        &["why", "--head", "L0H1"],
        &["detect"],
        &["offsets"],
        &["phases"],
        &["generate"],
        &["curves"],
        &["scores"],
        &["report"],
        &["evaluate"],
    ];
    let all = || verbs.map(|verb| told(&workshop, "run", verb));
    let before = all();
    fs::remove_file(workshop.path("model.gguf")).unwrap();
    fs::remove_file(workshop.path("sea.txt")).unwrap();
    for (verb, (before, after)) in verbs.iter().zip(before.iter().zip(all())) {
        assert!(*before == after, "{verb:?}");
    }
    assert_ok(&workshop.inspect("run", &["export", "--to", "folder"]));
    let prompt = ["predict", "--prompt", PROMPT];
    let of_folder = told(&workshop, "folder", &prompt);
    assert_eq!(of_folder, told(&workshop, "run", &prompt));
}

#[test]
fn a_folder_learns_on_too() {
    let workshop = workshop();
    assert_ok(&workshop.inspect("model.gguf", &["export", "--to", "folder"]));
    let from = [
        "--set",
        "model.from=folder",
        "--set",
        "train.learning_rate=1e-30",
    ];
    assert_ok(&train(&workshop, &[&["--out", "run"], &from[..]].concat()));
    let prompt = ["predict", "--prompt", PROMPT];
    let of_file = told(&workshop, "model.gguf", &prompt);
    assert_eq!(told(&workshop, "run", &prompt), of_file);
    let mut lines = Vec::new();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let hash = sha256(&fs::read(workshop.path("folder").join(name)).unwrap());
        lines.push(format!("{hash}  {name}\n"));
    }
    let written = fs::read_to_string(workshop.path("run/config.toml")).unwrap();
    assert!(
        written.contains(&sha256(lines.concat().as_bytes())),
        "{written}"
    );
    fs::remove_file(workshop.path("folder/tokenizer.json")).unwrap();
    let refused = train(&workshop, &[&["--out", "other"], &from[..]].concat());
    assert_one_line(&refused, 2, &["folder: has no tokenizer.json"]);
}

#[test]
fn so_many_heads_are_watched_as_were_asked_for() {
    let workshop = workshop();
    assert_ok(&train(&workshop, &["--out", "run"]));
    let heads_of = |rows: &[Value]| {
        let mut heads: Vec<String> = rows
            .iter()
            .map(|row| row["head"].as_str().unwrap().to_owned())
            .collect();
        heads.sort();
        heads.dedup();
        heads
    };
    let logged = rows(&workshop, "heads.jsonl");
    let watched = heads_of(&logged);
    assert_eq!(watched.len(), 3);
    // Three measurements, each on the probe and on the task.
    assert_eq!(logged.len(), 3 * 3 * 2);
    assert_eq!(
        heads_of(told(&workshop, "run", &["heads"]).as_array().unwrap()),
        watched
    );
    for row in rows(&workshop, "uses.jsonl") {
        for uses in row["uses"].as_array().unwrap() {
            for head in uses["heads"].as_array().unwrap() {
                assert!(watched.iter().any(|known| head == known), "{uses}");
            }
        }
    }
    // Every head has its pattern, and can be looked at.
    assert_ok(&workshop.inspect("run", &["pattern", "--head", "L1H3"]));
    let named = [
        "--out",
        "run",
        "--overwrite",
        "--set",
        "log.heads=['L1H3', 'L0H2']",
    ];
    assert_ok(&train(&workshop, &named));
    assert_eq!(heads_of(&rows(&workshop, "heads.jsonl")), ["L0H2", "L1H3"]);
}

#[test]
fn whatever_contradicts_the_model_is_refused_by_name() {
    let workshop = workshop();
    for (set, parts) in [
        (
            "model.n_layers=3",
            ["model.n_layers = 3", "has 2; leave the key out"],
        ),
        (
            "model.norm='layer_norm'",
            ["model.norm = \"layer_norm\"", "has \"rms_norm\""],
        ),
        ("model.window=8", ["model.window = 8", "has none"]),
        (
            "model.initialization='gpt2'",
            ["model.initialization = \"gpt2\"", "has \"from\""],
        ),
        (
            "model.from_sha256='00'",
            ["model.from_sha256 = \"00\"", "leave the key out"],
        ),
        (
            "model.preset='llama'",
            ["model.preset = \"llama\"", "does not go with model.from"],
        ),
        (
            "model.n_ctx=100000",
            ["model.n_ctx = 100000", "is longer than the model"],
        ),
        ("model.n_ctx=0", ["model.n_ctx = 0", "must be at least 1"]),
        (
            "model.n_layer=2",
            ["model.n_layer = 2", "did you mean n_layers?"],
        ),
        ("model.from=3", ["model.from = 3", "must be text in quotes"]),
        (
            "model.from='nowhere'",
            ["nowhere", "there is no such file or folder"],
        ),
        ("model.from='sea.txt'", ["sea.txt: is no GGUF file", ""]),
        (
            "model.from='.'",
            [".: is no folder of a model", "config.json"],
        ),
        (
            "task.tokens='characters'",
            ["task.tokens = characters", "the tokenizer of the model"],
        ),
        (
            "task={name='grammar'}",
            ["task.name = \"grammar\"", "set task.name = \"text\""],
        ),
        ("log.heads=9", ["log.heads = 9", "must be between 1 and 8"]),
        (
            "log.heads=['L2H0']",
            ["log.heads = L2H0", "the last head is L1H3"],
        ),
        (
            "log.heads=['L0H0', 'L0H0']",
            ["log.heads = L0H0", "is named twice"],
        ),
        (
            "log.heads='all'",
            [
                "log.heads = \"all\"",
                "a number of heads or a list of their names",
            ],
        ),
    ] {
        let refused = train(&workshop, &["--out", "run", "--set", set]);
        let twice = "sea.txt: sea.txt";
        assert!(!String::from_utf8_lossy(&refused.stderr).contains(twice));
        assert_one_line(&refused, 2, &parts);
        assert!(!workshop.path("run").exists(), "{set}");
    }
    // What repeats the model does not contradict it.
    for set in [
        "model.n_layers=2",
        "model.norm='rms_norm'",
        "model.rotary_base=500",
    ] {
        assert_ok(&train(
            &workshop,
            &["--out", "run", "--overwrite", "--set", set],
        ));
    }
    let alone = workshop.write(
        "b.toml",
        &CONFIG.replace(
            "from = \"model.gguf\", ",
            "n_layers = 1, n_heads = 4, d_model = 8, ",
        ),
    );
    let tokens = workshop.train(&alone, &["--set", "task.tokens='model'"]);
    assert_one_line(&tokens, 2, &["task.tokens = model", "set model.from"]);
    let weights = workshop.train(&alone, &["--set", "model.initialization='from'"]);
    assert_one_line(
        &weights,
        2,
        &["model.initialization = from", "set model.from"],
    );
}
