//! The example as a program: it trains its task to the floor, the control shows that the floor takes
//! attention, and the same sequences as a file give the same numbers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

fn own_task(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own_task"))
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[track_caller]
fn done(output: Output) -> String {
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line on standard error of a program that was told something wrong.
#[track_caller]
fn refused(output: Output) -> String {
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let message = error.replace('\n', " ");
    let (_, message) = message.split_once("error: ").unwrap();
    message.trim_end().to_owned()
}

fn config() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("backcopy.toml");
    path.to_str().unwrap().to_owned()
}

fn train(folder: &TempDir, out: &str, settings: &[&str]) {
    let config = config();
    let mut arguments = vec!["train", &config, "--out", out];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    done(own_task(folder, &arguments));
}

fn json(folder: &TempDir, arguments: &[&str]) -> Value {
    let arguments = [&["inspect"], arguments, &["--json"]].concat();
    serde_json::from_str(&done(own_task(folder, &arguments))).unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_task_is_learned_to_its_floor_and_the_control_has_another() {
    let folder = TempDir::new().unwrap();
    let few = ["train.steps=250", "log.every=250"];
    train(&folder, "run", &few);
    train(&folder, "control", &[few[0], few[1], "task.backcopy=false"]);
    let task = json(&folder, &["run", "evaluate"]);
    let control = json(&folder, &["control", "evaluate"]);
    let [floor, without] = [&task, &control].map(|run| number(&run["floor"]));
    // Some of the tokens of the task are sure, none of the control.
    assert!(without - floor > 0.2, "{floor}, {without}");
    // The model knows what comes after triggers: it is far below what the chain alone allows.
    let [loss, loss_of_control] = [&task, &control].map(|run| number(&run["loss"]));
    assert!(
        floor < loss && loss < without - 0.1,
        "{loss}, {floor}, {without}"
    );
    assert!(without < loss_of_control, "{loss_of_control}, {without}");
    // Whoever is not at a trigger has nothing to look for, and looks at the first token.
    let first = |run: &Value| {
        let heads = run["heads"].as_array().unwrap().iter();
        let score = heads.map(|head| number(&head["scores"]["first token"]["value"]));
        score.fold(0.0, f64::max)
    };
    assert!(
        first(&task) > first(&control) + 0.05,
        "{} {}",
        first(&task),
        first(&control)
    );

    // What the same sequences are as a file of one line each.
    let on = as_sequences(&folder, "run");
    let file = json(&folder, &["run", "evaluate", "--on", &on]);
    for key in [
        "loss",
        "accuracy",
        "exact",
        "floor",
        "chance",
        "breakdown",
        "heads",
    ] {
        assert_eq!(file[key], task[key], "{key}");
    }
}

/// A configuration whose task is the file of sequences that a run was measured on.
fn as_sequences(folder: &TempDir, run: &str) -> String {
    let lines = fs::read(folder.path().join(run).join("validation.jsonl")).unwrap();
    fs::write(folder.path().join("sequences.jsonl"), lines).unwrap();
    let text = fs::read_to_string(config()).unwrap();
    let (before, rest) = text.split_once("[task]").unwrap();
    let (_, after) = rest.split_once("[model]").unwrap();
    let text = format!(
        "{before}[task]\nname = 'sequences'\npath = 'sequences.jsonl'\nvalidation = 'sequences.jsonl'\n\n[model]{after}"
    );
    fs::write(folder.path().join("sequences.toml"), text).unwrap();
    "sequences.toml".to_owned()
}

#[test]
fn a_run_on_the_file_begins_with_the_same_tables_as_a_run_on_the_task() {
    let folder = TempDir::new().unwrap();
    let few = ["train.steps=2", "train.warmup=0", "log.every=1"];
    train(&folder, "task", &few);
    let on = as_sequences(&folder, "task");
    let mut arguments = vec!["train", &on, "--out", "file"];
    for setting in &few {
        arguments.extend(["--set", setting]);
    }
    done(own_task(&folder, &arguments));
    let rows = |run: &str, name: &str| -> Vec<Value> {
        let path: PathBuf = folder.path().join(run).join(name);
        let text = fs::read_to_string(path).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
        rows.filter(|row: &Value| row["step"] == 0).collect()
    };
    for name in ["metrics.jsonl", "heads.jsonl"] {
        let begun = rows("task", name);
        assert!(!begun.is_empty());
        assert_eq!(rows("file", name), begun, "{name}");
    }
}

#[test]
fn the_run_carries_the_task_and_the_program_and_goes_on() {
    let folder = TempDir::new().unwrap();
    let few = ["train.steps=2", "train.warmup=0", "log.every=1"];
    train(&folder, "run", &few);
    let written = fs::read_to_string(folder.path().join("run/config.toml")).unwrap();
    assert!(
        written.contains(
            "[task]\nname = \"backcopy\"\nprogram = \"own_task\"\nbackcopy = true\nchain = 0\n"
        ),
        "{written}"
    );
    // The configuration of the run is one for this program.
    let evaluated = json(&folder, &["run", "evaluate", "--on", "run/config.toml"]);
    assert_eq!(evaluated["task"], "backcopy");
    let again = ["train", "run/config.toml", "--out", "run", "--resume"];
    done(own_task(&folder, &again));

    let config = config();
    let wrong = |setting: &str| {
        refused(own_task(
            &folder,
            &["train", &config, "--out", "x", "--set", setting],
        ))
    };
    assert_eq!(
        wrong("task.trigers=2"),
        "--set task.trigers=2: task.trigers = 2: unknown key, did you mean triggers?"
    );
    assert_eq!(
        wrong("task.triggers=-1"),
        "--set task.triggers=-1: task.triggers = -1: must be a whole number, 0 or more"
    );
    assert!(wrong("task.triggers=0").contains("task.triggers = 0: must be at least 1"));
    assert_eq!(
        wrong("task.name=backcpy"),
        "--set task.name=backcpy: task.name = \"backcpy\": unknown task, did you mean backcopy?"
    );
    assert!(!folder.path().join("x").exists());
}
