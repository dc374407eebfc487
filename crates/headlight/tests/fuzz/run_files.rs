//! The files of a run directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use headlight_heads::{
    Ablation, HeadName, HeadSet, Interval, Measure, Reader, Relation, Role, RoleCheck, RoleEvent,
    RoleRange, Score, SequenceKind, Spread, Values,
};
use headlight_run::{
    Best, Checkpoint, CheckpointState, Config, Data, DataFile, EventRow, FORMAT, Follower, HeadRow,
    HeadSummary, HeadsUse, Left, MetricsRow, Missed, Question, RunData, RunDirectory, SeedsSummary,
    SequenceRow, Shortcut, Summary, UsesRow, Weights,
};
use headlight_tasks::Validation;
use serde::Serialize;
use tempfile::TempDir;

use crate::{
    harness::{SLOW, fuzz},
    mutation::changed,
};

const INDUCTION: Role = Role::Of(Measure::Induction);

pub const CONFIG: &str = "
    task = { name = 'repeat' }
    model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }
    train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }
";

pub fn run_in(folder: &TempDir) -> (PathBuf, RunDirectory) {
    let path = folder.path().join("run");
    let config = Config::parse(CONFIG, "a.toml", &[]).unwrap();
    let data = RunData {
        vocabulary: ["a", "b", "c"].map(str::to_owned).into(),
        ..RunData::default()
    };
    let run = RunDirectory::create(&path, &config, &data, false).unwrap();
    (path, run)
}

/// A run whose file `name` changes, and what reads it.
fn run_file(name: &str, valid: Vec<Vec<u8>>, read: impl Fn(&RunDirectory)) {
    let folder = TempDir::new().unwrap();
    let (path, run) = run_in(&folder);
    fuzz(name, SLOW * 4, changed(valid), |bytes| {
        fs::write(path.join(Path::new(name)), bytes).unwrap();
        read(&run);
    });
}

pub fn line(row: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(row).unwrap();
    line.push(b'\n');
    line
}

fn score() -> Score {
    Score {
        value: 0.5,
        null: 0.1,
        ceiling: 1.0,
        interval: Interval {
            low: 0.4,
            high: 0.6,
        },
    }
}

#[test]
fn metrics() {
    let row = MetricsRow {
        step: 50,
        loss: Some(1.5),
        validation: 1.25,
        accuracy: 0.5,
        exact: 0.25,
        in_context: Some(-0.1),
        training_accuracy: Some(1.0),
        breakdown: [(
            "agreement".to_owned(),
            headlight_run::Answers {
                accuracy: 0.5,
                count: 8,
            },
        )]
        .into(),
        learning_rate: Some(1e-3),
        gradient_norm: None,
    };
    let valid = line(&row);
    run_file("metrics.jsonl", vec![valid.repeat(2), valid], |run| {
        let followed = Follower::new(run).new_rows();
        if let Ok(rows) = run.metrics() {
            // The last line may still be under way.
            assert!(rows.starts_with(&followed.unwrap().metrics));
        }
    });
}

fn range() -> RoleRange {
    RoleRange {
        role: Measure::PreviousToken,
        first: 2,
        last: 27,
        share: 0.75,
        low: 0.5,
        high: 1.0,
        last_low: 26,
        last_high: 28,
        writes: Some(0.125),
    }
}

fn check() -> RoleCheck {
    RoleCheck {
        p: 0.01,
        is_sure: true,
        low: 0.5,
        high: 0.75,
    }
}

#[test]
fn heads() {
    let row = HeadRow {
        step: 50,
        on: SequenceKind::Probe,
        head: HeadName { layer: 0, head: 1 },
        role: Some(Role::Mixed),
        scores: [(Measure::Induction.into(), score())].into(),
        relations: headlight_heads::RelationScores::new(),
        ranges: vec![range()],
        check: Some(check()),
        writes: Some(0.5),
    };
    let valid = line(&row);
    run_file("heads.jsonl", vec![valid.repeat(2), valid], |run| {
        drop(run.heads());
    });
}

#[test]
fn events() {
    let row = EventRow {
        step: 50,
        event: RoleEvent::Emerged,
        head: HeadName { layer: 0, head: 1 },
        role: INDUCTION,
        value: 0.5,
        positions: Some((2, 27)),
    };
    let valid = line(&row);
    run_file("events.jsonl", vec![valid.repeat(2), valid], |run| {
        drop(run.events());
    });
}

#[test]
fn uses() {
    let left = Left {
        accuracy: 0.5,
        interval: Interval {
            low: 0.25,
            high: 0.75,
        },
        loss: 1.5,
    };
    let of_head = HeadsUse {
        heads: vec![HeadName { layer: 0, head: 1 }],
        name: HeadSet::LooksLike(INDUCTION),
        ablated: Some(left),
        through: [(Reader::Keys, left)].into(),
    };
    let valid = line(&UsesRow {
        step: 50,
        sequences: 64,
        by: Ablation::Mean,
        untouched: left,
        uses: vec![of_head],
        missed: vec![Missed {
            head: HeadName { layer: 0, head: 1 },
            role: Measure::Induction,
            others: vec![HeadName { layer: 0, head: 0 }],
            without_others: 0.5,
            cost: 0.25,
            low: 0.125,
            high: 0.375,
            to_lose: 0.5,
        }],
    });
    run_file("uses.jsonl", vec![valid.repeat(2), valid], |run| {
        drop(run.uses());
    });
}

#[test]
fn seeds() {
    let spread = Spread {
        mean: 0.5,
        low: Some(0.25),
        high: None,
        values: vec![Some(0.5), None],
    };
    let named = || BTreeMap::from([("loss".to_owned(), spread.clone())]);
    let values = || Values {
        values: vec![Some(250.0), None],
    };
    let of_role = || BTreeMap::from([(INDUCTION, values())]);
    let summary = SeedsSummary {
        task: "repeat".to_owned(),
        seeds: vec![0, 1],
        measures: named(),
        heads: of_role(),
        emergence: of_role(),
        half_way: BTreeMap::from([("accuracy".to_owned(), values())]),
    };
    run_file("../seeds.json", vec![line(&summary)], |run| {
        drop(run.seeds());
    });
}

#[test]
fn summaries() {
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
        best_accuracy: Some(0.75),
        chance: 0.1,
        breakdown: headlight_run::Breakdown::new(),
        heads: vec![HeadSummary {
            head: HeadName { layer: 0, head: 1 },
            role: Role::Mixed,
            scores: [(Measure::Induction.into(), score())].into(),
            ranges: vec![range()],
            check: Some(check()),
            writes: Some(0.5),
        }],
    };
    run_file("summary.json", vec![line(&summary)], |run| {
        drop(run.summary());
    });
}

fn state(logs: &[(&str, u64)]) -> Vec<u8> {
    let state = CheckpointState {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        device: "flex".to_owned(),
        step: 50,
        ended: false,
        seconds: 0.5,
        best: Some(Best {
            step: 50,
            validation: 1.25,
        }),
        measured_since_best: 0,
        roles: [(HeadName { layer: 0, head: 1 }, INDUCTION)].into(),
        ranges: [(HeadName { layer: 0, head: 0 }, vec![Measure::PreviousToken])].into(),
        moments: 3,
        counts: [("blocks.0.attention.query.weight".to_owned(), 50)].into(),
        logs: logs
            .iter()
            .map(|&(name, length)| (name.to_owned(), length))
            .collect(),
    };
    serde_json::to_vec_pretty(&state).unwrap()
}

/// What was read as a state comes back from a checkpoint as it was, or is refused for a log that
/// the run lacks, for a name of no log, or for another format.
#[test]
fn states_of_checkpoints() {
    let folder = TempDir::new().unwrap();
    let (_, run) = run_in(&folder);
    let valid = vec![
        state(&[("metrics.jsonl", 0)]),
        state(&[("../heads.jsonl", 0)]),
        state(&[]),
    ];
    fuzz("states of checkpoints", SLOW, changed(valid), |bytes| {
        let Ok(state) = serde_json::from_slice::<CheckpointState>(bytes) else {
            return;
        };
        let logs = ["metrics", "heads", "uses", "events", "timing"];
        let is_log = |name: &str| logs.iter().any(|log| name == format!("{log}.jsonl"));
        let lacks = |(name, &length): (&String, &u64)| length > 0 || !is_log(name);
        let refused = state.format != FORMAT || state.logs.iter().any(lacks);
        let written = Checkpoint {
            state,
            weights: Vec::new(),
            optimizer: Vec::new(),
        };
        run.write_checkpoint(Weights::Last, &written).unwrap();
        match run.checkpoint(Weights::Last) {
            // As text: what is no number does not equal itself.
            Ok(read) => assert_eq!(format!("{:?}", read.state), format!("{:?}", written.state)),
            Err(error) => assert!(refused, "{error}"),
        }
    });
}

/// A run opens with the number of a format that this program reads, and with nothing else.
#[test]
fn formats() {
    run_file("format", vec![b"1\n".to_vec(), b"2\n".to_vec()], |run| {
        let bytes = fs::read(run.path().join("format")).unwrap();
        let short = bytes.len() <= 64;
        let number = String::from_utf8(bytes)
            .ok()
            .filter(|_| short)
            .and_then(|text| text.trim().parse::<u32>().ok());
        let opened = RunDirectory::open(run.path());
        assert_eq!(opened.is_ok(), number == Some(FORMAT));
    });
}

#[test]
fn vocabularies() {
    run_file(
        "vocabulary.json",
        vec![b"[\"a\", \"\\n\", \"\\u00e9\"]".to_vec()],
        |run| drop(run.vocabulary()),
    );
}

/// A row with all that a row may have.
pub fn sequence() -> SequenceRow {
    SequenceRow {
        tokens: [0, 1, 2].into(),
        scored: Some([1].into()),
        relations: [Relation {
            name: "verb→subject".into(),
            dependent: 1,
            source: 0,
        }]
        .into(),
        questions: [Question {
            input: 1,
            right: 2,
            wrong: vec![1],
            kinds: vec!["agreement".into()],
        }]
        .into(),
        floor: Some([1.5, 0.25].into()),
        bayes: Some([1.75, 0.5].into()),
        shortcut: Some(Shortcut {
            name: "unigram counts".into(),
            losses: [1.5, 1.25].into(),
        }),
        best_accuracy: Some([0.25, 0.75].into()),
    }
}

#[test]
fn sequences() {
    let all = line(&sequence());
    let tokens = line(&SequenceRow {
        tokens: [0, 1].into(),
        ..SequenceRow::default()
    });
    let valid = || vec![all.repeat(2), all.clone(), tokens.clone()];
    run_file("validation.jsonl", valid(), |run| {
        // Whatever is accepted can be used.
        if let Ok(rows) = run.validation() {
            let validation = Validation::of_rows(rows);
            assert!(validation.bayes().is_some() || validation.floor().is_none());
            assert_eq!(Validation::of_rows(validation.rows()), validation);
        }
    });
    run_file("probe.jsonl", valid(), |run| drop(run.probe()));
}

#[test]
fn data() {
    let file = DataFile {
        path: "a.txt".into(),
        bytes: 12,
        sha256: "0123456789abcdef".repeat(4),
    };
    let data = Data {
        files: vec![file; 2],
        training_share: Some(0.9),
        chance: 0.1,
        start: Some(3),
    };
    run_file("data.json", vec![line(&data)], |run| {
        if let Ok(read) = run.data() {
            let _ = data.check_same(&read);
            let _ = read.check_same(&data);
            assert!(read.check_same(&read).is_ok());
        }
    });
}

#[test]
fn configurations_of_runs() {
    run_file("config.toml", vec![CONFIG.as_bytes().to_vec()], |run| {
        drop(run.config());
    });
}
