//! The two tasks of words and text, as their users meet them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use headlight_heads::{SequenceKind, first_largest};
use headlight_inspect::Subject;
use headlight_run::Config;
use headlight_trainer::Setup;
use serde_json::Value;
use tempfile::TempDir;

const SMALL: &str = r"
    model = { n_layers = 1, n_heads = 2, d_model = 16, n_ctx = 24 }
    train = { steps = 4, batch_size = 4, learning_rate = 1e-3 }
";

fn program(name: &str, directory: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin(name)
        .unwrap()
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn write(directory: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    fs::write(directory.path().join(name), text).unwrap();
}

#[test]
fn a_text_is_trained_on_and_asked_about_in_its_own_characters() {
    let directory = TempDir::new().unwrap();
    write(&directory, "text.txt", "the lamp burns well\n".repeat(30));
    write(
        &directory,
        "text.toml",
        format!("task = {{ name = \"text\", path = \"text.txt\" }}\n{SMALL}"),
    );
    let trained = program("train", directory.path(), &["text.toml", "--out", "run"]);
    assert!(
        trained.status.success(),
        "{}",
        String::from_utf8_lossy(&trained.stderr)
    );

    let summary: Value =
        serde_json::from_slice(&fs::read(directory.path().join("run/summary.json")).unwrap())
            .unwrap();
    assert!(
        summary["floor"].is_null(),
        "nobody knows the floor of a text"
    );
    assert!(String::from_utf8_lossy(&trained.stdout).contains("floor unknown"));
    let inspect =
        |arguments: &[&str]| program("inspect", directory.path(), &[&["run"], arguments].concat());
    assert_eq!(
        json(&inspect(&["evaluate", "--json"]))["loss"],
        summary["loss"]
    );

    let prompt =
        |prompt: &str| inspect(&["pattern", "--head", "L0H0", "--prompt", prompt, "--json"]);
    assert_eq!(
        json(&prompt("a b\n"))["tokens"],
        serde_json::json!(["a", "␣", "b", "\\n"])
    );
    for (text, part) in [
        ("lamp!", "!: is no token"),
        ("", "empty"),
        (&"a".repeat(25), "25 tokens"),
    ] {
        let refused = prompt(text);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && error.contains(part),
            "{error}"
        );
    }

    write(&directory, "binary.bin", [b'a', 0, b'b']);
    for (assignment, parts) in [
        ("task.path=binary.bin", ["binary.bin:1", "NUL"]),
        ("task.path=nowhere", ["nowhere", "cannot read"]),
        (
            "task.tokens=charcters",
            ["task.tokens = \"charcters\"", "characters, bytes, words"],
        ),
        ("model.n_ctx=100", ["text.txt", "n_ctx + 1 = 101"]),
    ] {
        let refused = program(
            "train",
            directory.path(),
            &["text.toml", "--out", "other", "--set", assignment],
        );
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && error.trim_end().lines().count() == 1,
            "{error}"
        );
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(!directory.path().join("other").exists());
    }
}

#[test]
fn four_heads_learn_to_agree_and_their_relations_are_logged() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../configs/grammar_four_heads.toml");
    let config = Config::load(
        &path,
        &["train.steps=900".to_owned(), "log.every=900".to_owned()],
    )
    .unwrap();
    let directory = TempDir::new().unwrap();
    let setup = Setup::prepare(config, "flex").unwrap();
    let run = setup.create(&directory.path().join("run"), false).unwrap();
    let summary = setup.run(&run).unwrap();

    let floor = summary.floor.unwrap();
    assert!(
        floor < summary.loss && summary.loss < floor + 0.2,
        "{} against {floor}",
        summary.loss
    );
    let accuracy = |kind: &str| summary.breakdown[kind].accuracy;
    assert!(
        accuracy("agreement, nearest noun the subject") >= 0.99,
        "{:?}",
        summary.breakdown
    );
    assert!(
        accuracy("agreement, nearest noun not the subject") >= 0.8,
        "{:?}",
        summary.breakdown
    );
    let evaluation = Subject::open(run.path(), "flex")
        .unwrap()
        .evaluate(None)
        .unwrap();
    assert_eq!(evaluation.breakdown, summary.breakdown);

    // Some head looks from where the verb is predicted to its subject, twice as much as distance
    // explains.
    let rows = run.heads().unwrap();
    let last = rows
        .iter()
        .filter(|row| row.step == 900 && row.on == SequenceKind::Task);
    let scores = last.map(|row| row.relations["next verb→subject"]);
    let best = first_largest(scores, |relation| relation.score.interval.low).unwrap();
    assert!(
        best.score.interval.low > 2.0 * best.score.null.max(best.distance_null),
        "{best:?}"
    );
    assert!(
        rows.iter()
            .all(|row| (row.on == SequenceKind::Task) != row.relations.is_empty())
    );
}
