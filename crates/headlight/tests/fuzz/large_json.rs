//! Whole documents, as large as they are read, made of whatever takes the most memory for its
//! bytes.

use std::{collections::BTreeMap, fs};

use crate::{
    harness::watch,
    run_files::{CONFIG, run_in},
};
use headlight_run::{Checkpoint, CheckpointState, FORMAT, RunDirectory, Weights};
use tempfile::TempDir;

type Read = fn(&RunDirectory);

/// `count` pieces, told apart by their number, with commas between them.
fn list(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(",")
}

#[test]
fn documents_stay_within_bounds() {
    let folder = TempDir::new().unwrap();
    let (path, run) = run_in(&folder);
    let watch_file = |name: &str, read: Read, document: &str| {
        fs::write(path.join(name), document).unwrap();
        watch(name, document.len(), || read(&run));
    };
    // Six times as long in a message.
    let unprintable = |length: usize| format!("\"{}\"", "\u{7f}".repeat(length));

    let config: Read = |run| drop(run.config());
    for value in ["0,", "[],", "{},", "'',"] {
        watch_file(
            "config.toml",
            config,
            &format!("x = [{}]", value.repeat((127 << 10) / value.len())),
        );
        watch_file(
            "config.toml",
            config,
            &format!("x = [{}]", value.repeat((24 << 20) / value.len())),
        );
    }
    watch_file(
        "config.toml",
        config,
        &format!("seed = {}", unprintable(127 << 10)),
    );
    watch_file("config.toml", config, CONFIG);

    let vocabulary: Read = |run| drop(run.vocabulary());
    watch_file(
        "vocabulary.json",
        vocabulary,
        &format!("[{}\"\"]", "\"\",".repeat(4 << 20)),
    );
    watch_file(
        "vocabulary.json",
        vocabulary,
        &format!("[{}\"\"]", "\"\",".repeat(65_535)),
    );
    watch_file(
        "vocabulary.json",
        vocabulary,
        &format!("[{}]", list(60, |_| format!("\"{}\"", "a".repeat(250_000)))),
    );
    watch_file(
        "vocabulary.json",
        vocabulary,
        &format!(
            "[{}]",
            list(60, |_| format!("\"{}\"", r"\n".repeat(130_000)))
        ),
    );
    watch_file("vocabulary.json", vocabulary, &unprintable(15 << 20));
    watch_file("vocabulary.json", vocabulary, &unprintable(250_000));

    let data: Read = |run| drop(run.data());
    for file in [r#"{"path":"","bytes":0,"sha256":""}"#, r#"["",0,""]"#] {
        // As many as are read, and one more.
        for files in [65_536, 65_537, (16 << 20) / (file.len() + 1) - 4] {
            let files = list(files, |_| file.to_owned());
            watch_file(
                "data.json",
                data,
                &format!(r#"{{"files":[{files}],"chance":0}}"#),
            );
        }
    }
    watch_file(
        "data.json",
        data,
        &format!(r#"{{"chance":{}}}"#, unprintable(250_000)),
    );

    let summary: Read = |run| drop(run.summary());
    let score = r#"{"":{"value":0,"null":0,"ceiling":0,"low":0,"high":0}}"#;
    for head in [
        r#"{"head":"L0H0","role":"","scores":{}}"#,
        &format!(r#"{{"head":"L0H0","role":"","scores":{score}}}"#),
    ] {
        for bytes in [2 << 20, 24 << 20] {
            let heads = list(bytes / (head.len() + 1) - 1, |_| head.to_owned());
            watch_file(
                "summary.json",
                summary,
                &format!(r#"{{"heads":[{heads}]}}"#),
            );
        }
    }
    watch_file(
        "summary.json",
        summary,
        &format!(r#"{{"steps":{}}}"#, unprintable(250_000)),
    );

    let seeds: Read = |run| drop(run.seeds());
    let spread = |name: usize, count| {
        format!(
            r#""{name}":{{"mean":0,"values":[{}]}}"#,
            list(count, |_| "0".to_owned())
        )
    };
    for (spreads, values) in [
        (7, 65_537),
        (4, 131_000),
        (25_000, 1),
        (30_000, 0),
        (1, 500_000),
    ] {
        let measures = list(spreads, |name| spread(name, values));
        watch_file(
            "../seeds.json",
            seeds,
            &format!(r#"{{"measures":{{{measures}}}}}"#),
        );
    }
}

#[test]
fn states_of_checkpoints_stay_within_bounds() {
    let folder = TempDir::new().unwrap();
    let (path, run) = run_in(&folder);
    for counts in [100_000, 130_000] {
        let state = CheckpointState {
            format: FORMAT,
            version: String::new(),
            device: String::new(),
            step: 0,
            ended: false,
            seconds: 0.0,
            best: None,
            measured_since_best: 0,
            roles: BTreeMap::new(),
            ranges: BTreeMap::new(),
            moments: 3,
            counts: (0..counts).map(|name| (format!("{name:x}"), 0)).collect(),
            logs: BTreeMap::new(),
        };
        let checkpoint = Checkpoint {
            state,
            weights: Vec::new(),
            optimizer: Vec::new(),
        };
        run.write_checkpoint(Weights::Last, &checkpoint).unwrap();
        let length = fs::metadata(path.join("last/state.json")).unwrap().len();
        watch("state.json", length as usize, || {
            assert_eq!(run.checkpoint(Weights::Last).is_ok(), length <= 2 << 20);
        });
    }
}
