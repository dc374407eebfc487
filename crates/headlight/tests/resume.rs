//! Whatever happens to a run, nothing is lost, and resumed it ends with the same bits.
#![cfg(target_os = "linux")]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use common::{SMALL, Workshop, assert_ok, assert_one_line};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Two heads take on a role on the way, at steps 90 and 115.
const EVENTFUL: &str = r#"
seed = 3
[task]
name = "lagged_markov"
states = 12
[model]
n_layers = 1
n_heads = 2
d_model = 16
n_ctx = 16
[train]
steps = 120
batch_size = 32
learning_rate = 3e-2
warmup = 5
shards = 2
[log]
every = 5
patterns_every = 30
[checkpoint]
every = 4
keep = 3
"#;

fn command(workshop: &Workshop, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_train"));
    command
        .current_dir(workshop.0.path())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Files that say when or how fast something was done.
const OF_THE_CLOCK: [&str; 7] = [
    "timing.jsonl",
    "summary.json",
    "state.json",
    "SHA256SUMS",
    "tensorboard",
    "report.html",
    // Has the name of the run, which differs here.
    "learn.html",
];

/// Every file below `directory` that must not depend on the clock or on how often the process died.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fn collect(root: &Path, directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                collect(root, &path, found);
            } else if !OF_THE_CLOCK.iter().any(|part| name.contains(part)) {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(directory, directory, &mut found);
    found
}

#[track_caller]
fn assert_same(run: &Path, reference: &BTreeMap<String, Vec<u8>>) {
    let found = files(run);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(reference));
    for (name, bytes) in reference {
        assert!(&found[name] == bytes, "{name} differs");
    }
}

fn is_writing_a_checkpoint(run: &Path) -> bool {
    let entries = fs::read_dir(run.join("checkpoints"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .into_iter()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(".tmp"))
}

#[test]
fn killed_at_25_instants_a_run_ends_with_the_same_bits() {
    let workshop = Workshop::new();
    let config = workshop.write("eventful.toml", EVENTFUL);
    assert_ok(&workshop.train(&config, &["--out", "reference"]));
    let reference = files(&workshop.path("reference"));
    for name in [
        "metrics.jsonl",
        "heads.jsonl",
        "events.jsonl",
        "last/weights.safetensors",
        "best/weights.safetensors",
        // A head took on a role there.
        "patterns/step-115/probe.safetensors",
    ] {
        assert!(!reference[name].is_empty(), "{name}");
    }
    assert_eq!(
        fs::read_to_string(workshop.path("reference/events.jsonl"))
            .unwrap()
            .lines()
            .count(),
        2
    );

    let mut rng = ChaCha8Rng::seed_from_u64(25);
    let (mut kills, mut in_checkpoints, mut run) = (0, 0, 0);
    while kills < 25 {
        let name = format!("run-{run}");
        let path = workshop.path(&name);
        let mut child = command(&workshop, &["eventful.toml", "--out", &name, "--resume"])
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(rng.random_range(0..600)));
        if kills % 3 == 0 {
            while !is_writing_a_checkpoint(&path) && child.try_wait().unwrap().is_none() {}
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            assert_same(&path, &reference);
            run += 1;
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        in_checkpoints += usize::from(is_writing_a_checkpoint(&path));
    }
    assert!(
        in_checkpoints >= 1,
        "no kill hit the writing of a checkpoint"
    );
    let last = format!("run-{run}");
    assert_ok(&workshop.train(&config, &["--out", &last, "--resume"]));
    assert_same(&workshop.path(&last), &reference);
}

#[test]
fn a_signal_writes_a_checkpoint_and_a_second_process_is_refused() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let endless = [
        "small.toml",
        "--out",
        "run",
        "--set",
        "train.steps=100000",
        "--set",
        "checkpoint.every=100000",
    ];
    let resumed = [&endless[..], &["--resume"]].concat();
    let metrics = workshop.path("run/metrics.jsonl");
    for (name, arguments) in [("-INT", &endless[..]), ("-TERM", &resumed)] {
        let mut child = command(&workshop, arguments).spawn().unwrap();
        while !metrics.exists() {
            assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended");
            sleep(Duration::from_millis(5));
        }
        assert_one_line(
            &workshop.train(&config, &resumed[1..]),
            2,
            &["run", "another process"],
        );
        let overwriting = [&endless[1..], &["--overwrite"]].concat();
        assert_one_line(
            &workshop.train(&config, &overwriting),
            2,
            &["run", "another process"],
        );
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
        assert_eq!(
            fs::read_dir(workshop.path("run/checkpoints"))
                .unwrap()
                .count(),
            1,
            "{name}"
        );
        // As if it had just begun, for the next signal.
        fs::remove_dir_all(workshop.path("run/checkpoints")).unwrap();
        fs::remove_file(&metrics).unwrap();
    }
}

#[test]
fn a_changed_configuration_is_refused_and_a_finished_run_says_so() {
    let workshop = Workshop::trained("run");
    let before = files(&workshop.path("run"));
    let resume = |arguments: &[&str]| {
        workshop.train(
            &workshop.path("small.toml"),
            &[&["--out", "run", "--resume"], arguments].concat(),
        )
    };
    let longer = resume(&["--set", "train.steps=50"]);
    assert_one_line(
        &longer,
        2,
        &["run: train.steps = 50", "begun with 25", "--out"],
    );
    assert_one_line(
        &resume(&["--set", "model.d_head=4"]),
        2,
        &["model.d_head = 4", "begun with nothing"],
    );
    assert_one_line(
        &resume(&["--set", "task.block=[3, 6]"]),
        2,
        &["task.block = [3, 6]", "begun with [3, 5]"],
    );
    let finished = resume(&[]);
    assert_ok(&finished);
    assert!(String::from_utf8_lossy(&finished.stderr).contains("run is finished"));
    assert!(String::from_utf8_lossy(&finished.stdout).contains("after 25 steps"));
    assert_eq!(resume(&["--overwrite"]).status.code(), Some(2));
    assert_same(&workshop.path("run"), &before);
}

/// A finished run made unfinished, with checkpoints at steps 10, 20 and 25 (`last`).
fn unfinished() -> (Workshop, BTreeMap<String, Vec<u8>>) {
    let workshop = Workshop::trained("run");
    let reference = files(&workshop.path("run"));
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    (workshop, reference)
}

fn resume(workshop: &Workshop) -> Output {
    workshop.train(&workshop.path("small.toml"), &["--out", "run", "--resume"])
}

#[test]
fn every_optimizer_goes_on_where_it_was() {
    let workshop = Workshop::new();
    for optimizer in ["muon", "sgd"] {
        let text = SMALL.replace(
            "warmup = 5",
            &format!("optimizer = \"{optimizer}\"\ndropout = 0.2\nattention_dropout = 0.2\nschedule = \"cosine\""),
        );
        let config = workshop.write("small.toml", &text);
        assert_ok(&workshop.train(&config, &["--out", "run", "--overwrite"]));
        let reference = files(&workshop.path("run"));
        fs::remove_file(workshop.path("run/summary.json")).unwrap();
        fs::remove_dir_all(workshop.path("run/last")).unwrap();
        fs::remove_dir_all(workshop.path("run/checkpoints/step-20")).unwrap();
        assert_ok(&resume(&workshop));
        assert_same(&workshop.path("run"), &reference);
    }
}

/// Steps 11 to 20 swap other parts than steps 1 to 10 would.
const SWAPPING: &str = r#"
seed = 3
[task]
name = "program"
program = "induction"
length = 6
[model]
n_layers = 2
n_heads = 3
d_model = 12
n_ctx = 7
[interchange.alignment]
previous = "L0H1"
next = "L1H2"
[train]
steps = 25
batch_size = 16
learning_rate = 1e-2
shards = 2
accumulate = 2
[log]
every = 10
patterns_every = 20
[checkpoint]
every = 10
"#;

#[test]
fn interchange_training_goes_on_where_it_was() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SWAPPING);
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    let reference = files(&workshop.path("run"));
    let metrics = String::from_utf8(reference["metrics.jsonl"].clone()).unwrap();
    assert!(metrics.contains("interchange accuracy") && metrics.contains("strictness"));
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    fs::remove_dir_all(workshop.path("run/last")).unwrap();
    fs::remove_dir_all(workshop.path("run/checkpoints/step-20")).unwrap();
    assert_ok(&resume(&workshop));
    assert_same(&workshop.path("run"), &reference);
}

/// What happens to the bytes of a file.
type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_is_used() {
    let truncate = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    let flip = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
    };
    let cases: [(&str, Damage); 6] = [
        ("weights.safetensors", &truncate),
        ("weights.safetensors", &flip),
        ("optimizer.safetensors", &flip),
        ("optimizer.safetensors", &Vec::clear),
        ("state.json", &flip),
        ("SHA256SUMS", &Vec::clear),
    ];
    let (workshop, reference) = unfinished();
    for (file, damage) in cases {
        for checkpoint in ["last", "checkpoints/step-20"] {
            let path = workshop.path("run").join(checkpoint).join(file);
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
        let output = resume(&workshop);
        assert_ok(&output);
        let error = String::from_utf8_lossy(&output.stderr);
        let named = error
            .lines()
            .filter(|line| line.contains("warning") && line.contains("damaged"))
            .count();
        assert_eq!(named, 2, "{file}: {error}");
        assert!(error.contains("going on after step 10"), "{file}: {error}");
        assert_same(&workshop.path("run"), &reference);
        fs::remove_file(workshop.path("run/summary.json")).unwrap();
    }
}

/// Copies one run's checkpoint into another's place.
fn put(workshop: &Workshop, from: &str, to: &str) {
    fs::remove_dir_all(workshop.path(to)).unwrap();
    let status = Command::new("cp")
        .arg("-r")
        .args([workshop.path(from), workshop.path(to)])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_foreign_or_an_empty_checkpoint_is_not_used() {
    let (workshop, reference) = unfinished();
    let config = workshop.path("small.toml");
    assert_ok(&workshop.train(&config, &["--out", "wide", "--set", "model.d_model=32"]));
    put(&workshop, "wide/last", "run/last");
    // Long enough for any checkpoint: what tells is the model.
    for log in ["metrics.jsonl", "heads.jsonl", "uses.jsonl", "timing.jsonl"] {
        let mut rows = fs::read(workshop.path("run").join(log)).unwrap();
        rows.extend([b' '; 10_000]);
        fs::write(workshop.path("run").join(log), rows).unwrap();
    }
    fs::remove_dir_all(workshop.path("run/checkpoints/step-20")).unwrap();
    fs::create_dir(workshop.path("run/checkpoints/step-20")).unwrap();
    let output = resume(&workshop);
    assert_ok(&output);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("checkpoint of step 25") && error.contains("shape"),
        "{error}"
    );
    assert!(
        error.contains("step-20") && error.contains("going on after step 10"),
        "{error}"
    );
    assert_same(&workshop.path("run"), &reference);

    // The logs are shorter than at any checkpoint: only the beginning is left.
    fs::remove_file(workshop.path("run/summary.json")).unwrap();
    fs::write(workshop.path("run/heads.jsonl"), "").unwrap();
    let output = resume(&workshop);
    assert_ok(&output);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        error.matches("heads.jsonl: has 0 bytes").count(),
        3,
        "{error}"
    );
    assert_same(&workshop.path("run"), &reference);
}

#[test]
fn what_cannot_be_written_is_one_line_and_leaves_the_last_checkpoint() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    // Nobody, root included, may make a directory there.
    assert_one_line(
        &workshop.train(&config, &["--out", "/proc/headlight/run"]),
        2,
        &["/proc/headlight", "cannot create"],
    );

    // A file-size limit is a disk that is full for the file that grows past it: heads.jsonl.
    let limited = |arguments: &str| {
        let script = format!(
            "trap '' XFSZ; ulimit -f 128; exec '{}' small.toml --set train.steps=200 --set log.every=5 --out run {arguments}",
            env!("CARGO_BIN_EXE_train")
        );
        let mut shell = Command::new("bash");
        shell
            .current_dir(workshop.0.path())
            .args(["-c", &script])
            .process_group(0);
        shell.output().unwrap()
    };
    let full = limited("");
    let error = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{error}");
    let last = error.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("error: ") && last.contains("run/heads.jsonl: cannot append"),
        "{error}"
    );
    let rows = fs::read_to_string(workshop.path("run/heads.jsonl")).unwrap();
    assert!(
        rows.lines().count() > 0
            && rows
                .lines()
                .all(|row| serde_json::from_str::<serde_json::Value>(row).is_ok())
    );

    let longer = ["--set", "train.steps=200", "--set", "log.every=5"];
    assert_ok(&workshop.train(
        &config,
        &[&["--out", "run", "--resume"], &longer[..]].concat(),
    ));
    assert_ok(&workshop.train(&config, &[&["--out", "reference"], &longer[..]].concat()));
    assert_same(&workshop.path("run"), &files(&workshop.path("reference")));

    let readable = fs::metadata(workshop.path("run/last"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(readable & 0o500, 0o500);
}

#[test]
fn a_full_disk_ends_training_with_one_line_where_a_small_one_can_be_mounted() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let disk = workshop.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=272k", "tmpfs"])
        .arg(&disk)
        .output();
    if !mount.is_ok_and(|mounted| mounted.status.success()) {
        // Without the right to mount, the file-size limit of the test above stands for it.
        return;
    }
    let output = workshop.train(&config, &["--out", "disk/run"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let newest = fs::read_dir(disk.join("run/checkpoints")).map_or(0, Iterator::count);
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error
            .lines()
            .last()
            .is_some_and(|line| line.contains("No space left on device")),
        "{error}"
    );
    assert!(newest >= 1, "{error}");
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_names_the_tensor() {
    let workshop = Workshop::new();
    let config = workshop.write("small.toml", SMALL);
    let arguments = [
        "--out",
        "run",
        "--set",
        "train.learning_rate=1e38",
        "--set",
        "checkpoint.every=1",
    ];
    let output = workshop.train(&config, &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let last = error.lines().last().unwrap_or_default();
    for part in ["run: step 2", "blocks.0.ln1.hook_", "seed 3, step 2, row 0"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(
        workshop
            .path("run/checkpoints/step-1/weights.safetensors")
            .is_file()
    );
    assert!(!workshop.path("run/summary.json").exists());
}

/// Puts `new` in the place of the key `format` of `last/state.json`, with its SHA-256 beside it.
fn write_format_of_last(workshop: &Workshop, new: &str) {
    let state = workshop.path("run/last/state.json");
    let text = fs::read_to_string(&state).unwrap();
    assert!(text.contains(FORMAT), "{text}");
    fs::write(state, text.replace(FORMAT, new)).unwrap();
    let sums = "sha256sum state.json *.safetensors > SHA256SUMS";
    let summed = Command::new("sh")
        .args(["-c", sums])
        .current_dir(workshop.path("run/last"))
        .status()
        .unwrap();
    assert!(summed.success());
}

/// How `state.json` and `summary.json` begin.
const FORMAT: &str = "{\n  \"format\": 2,";

#[test]
fn a_run_of_another_format_is_refused_and_left_as_it_is() {
    let (workshop, _) = unfinished();
    // Only its newest checkpoint is of a newer program: the older ones are not used in its place.
    write_format_of_last(&workshop, "{\n  \"format\": 3,");
    let before = files(&workshop.path("run"));
    let output = resume(&workshop);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let last = error.lines().last().unwrap_or_default();
    for part in ["run/last/state.json", "format 3", "reads format 2"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert_same(&workshop.path("run"), &before);

    for format in [3, 1] {
        fs::write(workshop.path("run/format"), format!("{format}\n")).unwrap();
        assert_wholly_refused(&workshop, format);
    }
    // A run from before formats were counted.
    fs::remove_file(workshop.path("run/format")).unwrap();
    assert_wholly_refused(&workshop, 1);
}

#[track_caller]
fn assert_wholly_refused(workshop: &Workshop, format: u32) {
    let before = files(&workshop.path("run"));
    let is = format!("error: run: is of format {format};");
    for verb in ["heads", "curves", "report"] {
        let output = workshop.inspect("run", &[verb]);
        assert_one_line(&output, 2, &[&is, "reads format 2"]);
    }
    assert_one_line(&resume(workshop), 2, &[&is, "reads format 2"]);
    assert_same(&workshop.path("run"), &before);
}
