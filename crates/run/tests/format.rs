//! Runs of other formats, older and newer, are refused.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use headlight_run::{
    Checkpoint, CheckpointState, Config, Data, Error, ErrorKind, FORMAT, RunData, RunDirectory,
    Summary, VERSION, Weights,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const CONFIG: &str = "
    task = { name = 'repeat' }
    model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }
    train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }
";

fn config() -> Config {
    Config::parse(CONFIG, "a.toml", &[]).unwrap()
}

/// A run with a summary and a checkpoint.
fn written(path: &Path) {
    let run = RunDirectory::create(path, &config(), &RunData::default(), false).unwrap();
    let summary = Summary {
        format: FORMAT,
        task: "repeat".to_owned(),
        device: "flex".to_owned(),
        steps: 1,
        seconds: 0.5,
        tokens_per_second: 128.0,
        loss: 4.0,
        accuracy: 0.1,
        exact: 0.0,
        floor: None,
        bayes: Some(1.0),
        best_accuracy: None,
        chance: 0.1,
        breakdown: BTreeMap::new(),
        heads: Vec::new(),
    };
    let state = CheckpointState {
        format: FORMAT,
        version: VERSION.to_owned(),
        device: "flex".to_owned(),
        step: 1,
        ended: true,
        seconds: 0.5,
        best: None,
        measured_since_best: 0,
        roles: BTreeMap::new(),
        ranges: BTreeMap::new(),
        moments: 3,
        counts: BTreeMap::new(),
        logs: BTreeMap::new(),
    };
    let checkpoint = Checkpoint {
        state,
        weights: vec![1, 2, 3],
        optimizer: vec![4, 5],
    };
    run.write_summary(&summary).unwrap();
    run.write_checkpoint(Weights::Last, &checkpoint).unwrap();
}

/// Puts `new` in the place of `old` in a file of the checkpoint, and writes its SHA-256 anew.
fn edit_state(run: &Path, old: &str, new: &str) {
    let (state, sums) = (run.join("last/state.json"), run.join("last/SHA256SUMS"));
    edit(&state, old, new);
    let mut line = String::new();
    for byte in Sha256::digest(fs::read(state).unwrap()) {
        write!(line, "{byte:02x}").unwrap();
    }
    let others = fs::read_to_string(&sums).unwrap();
    let others = others.lines().filter(|line| !line.ends_with("state.json"));
    let lines: Vec<String> = others
        .map(str::to_owned)
        .chain([line + "  state.json"])
        .collect();
    fs::write(sums, lines.join("\n") + "\n").unwrap();
}

fn edit(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
    fs::write(file, text.replace(old, new)).unwrap();
}

#[track_caller]
fn assert_refused<T>(read: Result<T, Error>, format: u32, file: &str) {
    let error = read.err().expect("another format is refused");
    let line = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Version, "{line}");
    for part in [
        file,
        &format!("is of format {format};"),
        &format!("reads format {FORMAT}"),
        &format!("Headlight {VERSION}"),
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(line.lines().count(), 1, "{line}");
}

fn resumed(path: &Path) -> Result<RunDirectory, Error> {
    RunDirectory::resume(path, &config(), &Data::default())
}

#[test]
fn a_run_of_another_format_is_refused_with_both_formats() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run");
    written(&path);
    drop(resumed(&path).unwrap());
    let run = RunDirectory::open(&path).unwrap();
    let mut before = FORMAT;
    for format in [FORMAT + 1, 1] {
        let [old, new] = [before, format].map(|format| format!("  \"format\": {format},\n"));
        // Whatever else another program has written there.
        let new = new + "  \"news\": [],\n";
        edit(&path.join("summary.json"), &old, &new);
        assert_refused(run.summary(), format, "run/summary.json");
        edit_state(&path, &old, &new);
        assert_refused(run.checkpoint(Weights::Last), format, "run/last/state.json");
        fs::write(path.join("format"), format!("{format}\n")).unwrap();
        assert_refused(RunDirectory::open(&path), format, "run");
        assert_refused(resumed(&path), format, "run");
        before = format;
    }
    // Runs from before formats were counted.
    fs::remove_file(path.join("format")).unwrap();
    assert_refused(RunDirectory::open(&path), 1, "run");
}

#[test]
fn a_format_that_is_no_number_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run");
    written(&path);
    for text in ["", "one", "-1", "1 2", &"1".repeat(65)] {
        fs::write(path.join("format"), text).unwrap();
        let error = RunDirectory::open(&path).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Damaged | ErrorKind::TooLarge)
                && error.place().ends_with("format"),
            "{text:?}: {error}"
        );
    }
}
