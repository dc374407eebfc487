//! Logs of many megabytes, made of whatever takes the most memory for its bytes.

use std::fs;

use headlight_heads::{
    Ablation, HeadName, HeadSet, Interval, Measure, Reader, RelationScore, Role, RoleCheck,
    RoleRange, Score, ScoreName, SequenceKind,
};
use headlight_run::{Follower, HeadRow, Left, MetricsRow, RunDirectory, SequenceRow, UsesRow};
use headlight_tasks::Validation;
use tempfile::TempDir;

use crate::{
    harness::watch,
    run_files::{line, run_in, sequence},
};

const BYTES: usize = 24 << 20;

/// Reads a log whole, and as one that grows; the rows it has, if it is not refused.
fn rows(run: &RunDirectory, log: &str, what: &str, text: &[u8]) -> Option<usize> {
    fs::write(run.path().join(log), text).unwrap();
    let mut rows = None;
    watch(&format!("{log}, {what}"), text.len(), || {
        rows = match log {
            "metrics.jsonl" => run.metrics().ok().map(|rows| rows.len()),
            "heads.jsonl" => run.heads().ok().map(|rows| rows.len()),
            "events.jsonl" => run.events().ok().map(|rows| rows.len()),
            "validation.jsonl" => {
                let rows = run.validation().ok().map(Validation::of_rows);
                rows.map(|validation| validation.sequences.len())
            }
            _ => run.uses().ok().map(|rows| rows.len()),
        };
    });
    if log == "heads.jsonl" {
        watch(&format!("{log} as it grows, {what}"), text.len(), || {
            let new = Follower::new(run).new_rows();
            assert_eq!(new.ok().map(|new| new.heads.len()), rows);
        });
    }
    fs::remove_file(run.path().join(log)).unwrap();
    rows
}

/// The row again and again, each time at the next step.
fn many(row: &str) -> Vec<u8> {
    let (before, after) = row.split_once(r#""step":0,"#).unwrap_or((row, ""));
    let count = BYTES / (row.len() + 8);
    let step = |step: usize| {
        if after.is_empty() {
            String::new()
        } else {
            format!(r#""step":{step:>7},"#)
        }
    };
    (0..count)
        .flat_map(|at| format!("{before}{}{after}\n", step(at)).into_bytes())
        .collect()
}

/// `{name: value, …}` with `count` names.
fn named(count: usize, value: &str) -> String {
    let entries: Vec<String> = (0..count)
        .map(|name| format!(r#""{name:x}":{value}"#))
        .collect();
    format!("{{{}}}", entries.join(","))
}

const SCORE: &str = r#"{"value":0,"null":0,"ceiling":0,"low":0,"high":0}"#;
/// A score and a relation score in one.
const RELATION: &str =
    r#"{"value":0,"null":0,"ceiling":0,"low":0,"high":0,"distance_null":0,"rows":0}"#;
const RANGE: &str = r#"{"role":"induction","first":0,"last":0,"share":0,"low":0,"high":0,"last_low":0,"last_high":0}"#;
const MISSED: &str = r#"{"head":"L0H0","role":"induction","others":[],"without_others":0,"cost":0,"low":0,"high":0,"to_lose":0}"#;
const LEFT: &str = r#"{"accuracy":0,"low":0,"high":0,"loss":0}"#;
/// Six times as long in a message.
const UNPRINTABLE: &str = "\u{7f}";

fn heads(scores: &str, more: &str) -> String {
    format!(r#"{{"step":0,"on":"task","head":"L0H0","scores":{scores}{more}}}"#)
}

#[test]
fn logs_of_hostile_rows_stay_within_bounds() {
    let folder = TempDir::new().unwrap();
    let (_, run) = run_in(&folder);
    let one = format!(r#"{{"entropy":{SCORE}}}"#);
    let relations = |relations: &str| heads("{}", &format!(r#","relations":{relations}"#));
    // Numbers that nobody asked for, before the last bracket.
    let with_more = |numbers: &str, more: usize| {
        let numbers = numbers.strip_suffix('}').unwrap();
        format!("{numbers}{}}}", r#","":0"#.repeat(more))
    };
    let metrics = |more: &str| format!(r#"{{"step":0,"validation":0,"accuracy":0{more}}}"#);
    let uses = |uses: &str, count: usize| {
        let uses = vec![uses; count].join(",");
        format!(r#"{{"step":0,"sequences":0,"untouched":{LEFT},"uses":[{uses}]}}"#)
    };
    let through =
        |left: &str| format!(r#"{{"heads":[],"name":"layer","through":{{"keys":{left}}}}}"#);
    let with_scores = |score: &str, count: usize| {
        let scores = vec![format!(r#""entropy":{score}"#); count].join(",");
        heads(&format!("{{{scores}}}"), "")
    };
    for (log, what, row) in [
        ("metrics.jsonl", "the shortest rows", metrics("")),
        (
            "metrics.jsonl",
            "one answer each",
            metrics(r#","breakdown":{"":{"accuracy":0,"count":0}}"#),
        ),
        (
            "metrics.jsonl",
            "long numbers",
            metrics(&format!(r#","loss":0.{}"#, "1".repeat(100_000))),
        ),
        ("heads.jsonl", "no rows", String::new()),
        ("heads.jsonl", "the shortest rows", heads("{}", "")),
        ("heads.jsonl", "one score each", heads(&one, "")),
        (
            "heads.jsonl",
            "one relation each",
            heads(&one, &format!(r#","relations":{{"":{RELATION}}}"#)),
        ),
        (
            "heads.jsonl",
            "one score again and again",
            with_scores(SCORE, 8_000),
        ),
        (
            "heads.jsonl",
            "a score with many numbers",
            with_scores(&with_more(SCORE, 100_000), 1),
        ),
        (
            "heads.jsonl",
            "many relations",
            relations(&named(5_000, RELATION)),
        ),
        (
            "heads.jsonl",
            "relations on one line",
            relations(&named(BYTES / 90, RELATION)),
        ),
        (
            "heads.jsonl",
            "a relation with many numbers",
            relations(&format!(r#"{{"":{}}}"#, with_more(RELATION, 100_000))),
        ),
        (
            "heads.jsonl",
            "long names of scores",
            heads(&format!(r#"{{"{}":{SCORE}}}"#, "a".repeat(200_000)), ""),
        ),
        (
            "heads.jsonl",
            "long names",
            relations(&format!(r#"{{"{}":{RELATION}}}"#, "a".repeat(200_000))),
        ),
        (
            "heads.jsonl",
            "written names",
            relations(&format!(r#"{{"{}":{RELATION}}}"#, r"\u0041".repeat(40_000))),
        ),
        (
            "heads.jsonl",
            "a name of a megabyte",
            heads(&format!(r#"{{"{}":{SCORE}}}"#, "a".repeat(1 << 20)), ""),
        ),
        (
            "heads.jsonl",
            "many ranges",
            heads(
                "{}",
                &format!(r#","ranges":[{}]"#, vec![RANGE; 5_000].join(",")),
            ),
        ),
        (
            "heads.jsonl",
            "one range each",
            heads("{}", &format!(r#","ranges":[{RANGE}]"#)),
        ),
        (
            "heads.jsonl",
            "long roles",
            heads("{}", &format!(r#","role":"{}""#, "a".repeat(250_000))),
        ),
        (
            "heads.jsonl",
            "long heads",
            heads("{}", "").replace("L0H0", &"L0H0".repeat(60_000)),
        ),
        (
            "heads.jsonl",
            "text for a number",
            heads(&format!("\"{}\"", UNPRINTABLE.repeat(250_000)), ""),
        ),
        ("heads.jsonl", "nested", heads(&"[".repeat(500_000), "")),
        (
            "events.jsonl",
            "the shortest rows",
            r#"{"step":0,"event":"role_lost","head":"L0H0","role":"mixed","value":0}"#.to_owned(),
        ),
        (
            "events.jsonl",
            "long events",
            format!(
                r#"{{"step":0,"event":"{}","head":"L0H0","role":"mixed","value":0}}"#,
                "a".repeat(250_000)
            ),
        ),
        ("uses.jsonl", "the shortest rows", uses("", 0)),
        (
            "uses.jsonl",
            "one use each",
            uses(r#"{"heads":[],"name":"layer"}"#, 1),
        ),
        (
            "uses.jsonl",
            "the shortest uses",
            uses(r#"{"heads":[],"name":"layer"}"#, 17_000),
        ),
        (
            "uses.jsonl",
            "uses of one head",
            uses(r#"{"heads":["L0H0"],"name":"layer"}"#, 13_000),
        ),
        (
            "uses.jsonl",
            "uses through one reader",
            uses(&through(LEFT), 5_000),
        ),
        (
            "uses.jsonl",
            "uses with many numbers",
            uses(&through(&with_more(LEFT, 100_000)), 1),
        ),
        (
            "uses.jsonl",
            "many missed heads",
            format!(
                r#"{{"step":0,"sequences":0,"untouched":{LEFT},"uses":[],"missed":[{}]}}"#,
                vec![MISSED; 4_000].join(",")
            ),
        ),
        (
            "uses.jsonl",
            "many heads",
            uses(
                &format!(
                    r#"{{"heads":[{}"L0H0"],"name":"layer"}}"#,
                    r#""L0H0","#.repeat(70_000)
                ),
                1,
            ),
        ),
    ] {
        rows(&run, log, what, &many(&row));
    }
    for (what, row) in hostile_sequences() {
        rows(&run, "validation.jsonl", what, &many(&row));
    }
    // Bytes that are no rows at all.
    for (what, byte) in [
        ("line feeds", b'\n'),
        ("spaces", b' '),
        ("zeros", 0),
        ("brackets", b'['),
    ] {
        let mut text = [byte].repeat(BYTES);
        text.push(b'\n');
        assert_eq!(rows(&run, "heads.jsonl", what, &text), None);
    }
    // Rows with so much white space that they are just accepted hold as much as accepted rows ever
    // do.
    for (length, accepted) in [(216, true), (204, false)] {
        let row = format!("{:<length$}", heads(&one, ""));
        assert_eq!(
            rows(&run, "heads.jsonl", "as short as is accepted", &many(&row)).is_some(),
            accepted
        );
    }
}

/// Rows of `validation.jsonl` that take much memory for their bytes.
fn hostile_sequences() -> Vec<(&'static str, String)> {
    let row = |more: &str| format!(r#"{{"tokens":[0,0]{more}}}"#);
    let list = |name: &str, part: &str, count: usize| {
        row(&format!(r#","{name}":[{}]"#, vec![part; count].join(",")))
    };
    let kinds = |count: usize| {
        let kinds = vec![r#""""#; count].join(",");
        row(&format!(r#","questions":[[0,0,[],[{kinds}]]]"#))
    };
    let spaces = |row: &str, length: usize| format!("{row:<length$}");
    vec![
        ("the shortest sequences", row("")),
        ("as short as is accepted", spaces(&row(""), 46)),
        (
            "lists of nothing",
            row(r#","scored":[],"relations":[],"questions":[]"#),
        ),
        (
            "losses",
            row(r#","floor":[0],"bayes":[0],"shortcut":["",[0]],"best_accuracy":[0]"#),
        ),
        ("a relation each", list("relations", r#"["",0,0]"#, 1)),
        ("relations", list("relations", r#"["",0,0]"#, 50_000)),
        ("a question each", list("questions", "[0,0,[],[]]", 1)),
        ("questions", list("questions", "[0,0,[],[]]", 20_000)),
        (
            "questions with a kind",
            list("questions", r#"[0,0,[0],[""]]"#, 30_000),
        ),
        ("kinds", kinds(150_000)),
        ("positions", list("scored", "0", 120_000)),
        ("a long floor", list("floor", "0", 120_000)),
        (
            "tokens",
            format!(r#"{{"tokens":[{}]}}"#, vec!["0"; 65].join(",")),
        ),
        (
            "many tokens",
            format!(r#"{{"tokens":[{}]}}"#, vec!["0"; 120_000].join(",")),
        ),
        (
            "a long name",
            row(&format!(
                r#","relations":[["{}",1,0]]"#,
                "a".repeat(250_000)
            )),
        ),
    ]
}

fn written(row: &impl serde::Serialize) -> String {
    String::from_utf8(line(row)).unwrap().trim_end().to_owned()
}

/// What a run writes is read, with room to spare.
#[test]
fn large_logs_of_honest_rows_are_read() {
    let folder = TempDir::new().unwrap();
    let (_, run) = run_in(&folder);
    // Numbers as long as most are.
    let third = 1.0 / 3.0;
    let score = Score {
        value: third,
        null: third,
        ceiling: 1.0,
        interval: Interval::point(third),
    };
    let names = [
        ScoreName::Measure(Measure::CurrentToken),
        ScoreName::Measure(Measure::FirstToken),
        ScoreName::Entropy,
    ];
    let relation = RelationScore {
        score,
        distance_null: third,
        rows: 100,
    };
    let range = RoleRange {
        role: Measure::PreviousToken,
        first: 2,
        last: 27,
        share: third,
        low: third,
        high: third,
        last_low: 27,
        last_high: 27,
        writes: Some(third),
    };
    let check = RoleCheck {
        p: third,
        is_sure: true,
        low: third,
        high: third,
    };
    let heads = |relations: usize| HeadRow {
        step: 0,
        on: SequenceKind::Probe,
        head: HeadName { layer: 0, head: 0 },
        role: Some(Role::Mixed),
        scores: names.map(|name| (name, score)).into(),
        relations: names[..relations]
            .iter()
            .map(|name| (name.to_string(), relation))
            .collect(),
        ranges: vec![range; 3],
        check: Some(check),
        writes: Some(third),
    };
    let metrics = MetricsRow {
        step: 0,
        loss: Some(third),
        validation: third,
        accuracy: 0.5,
        exact: 0.25,
        in_context: Some(third),
        training_accuracy: None,
        breakdown: [(
            "agreement".to_owned(),
            headlight_run::Answers {
                accuracy: 0.5,
                count: 8,
            },
        )]
        .into(),
        learning_rate: Some(1e-3),
        gradient_norm: Some(third),
    };
    let left = Left {
        accuracy: third,
        interval: Interval::point(third),
        loss: third,
    };
    let uses = headlight_run::HeadsUse {
        heads: vec![HeadName { layer: 0, head: 0 }],
        name: HeadSet::LooksLike(Role::Of(Measure::Induction)),
        ablated: Some(left),
        through: [Reader::Keys, Reader::Values]
            .map(|reader| (reader, left))
            .into(),
    };
    let missed = headlight_run::Missed {
        head: HeadName { layer: 0, head: 0 },
        role: Measure::Induction,
        others: vec![HeadName { layer: 0, head: 1 }],
        without_others: third,
        cost: third,
        low: third,
        high: third,
        to_lose: third,
    };
    let uses = UsesRow {
        step: 0,
        sequences: 64,
        by: Ablation::Mean,
        untouched: left,
        uses: vec![uses; 500],
        missed: vec![missed; 100],
    };
    let sum = SequenceRow {
        tokens: [0, 1, 2, 1].into(),
        scored: Some([2].into()),
        floor: Some([4.727_387_819, 0.0, 0.0].into()),
        ..SequenceRow::default()
    };
    for (log, line) in [
        ("validation.jsonl", written(&sum)),
        ("validation.jsonl", written(&sequence())),
        ("metrics.jsonl", written(&metrics)),
        ("heads.jsonl", written(&heads(0))),
        ("heads.jsonl", written(&heads(3))),
        ("uses.jsonl", written(&uses)),
    ] {
        let text = many(&line);
        let count = text.split_inclusive(|&byte| byte == b'\n').count();
        assert_eq!(rows(&run, log, "honest rows", &text), Some(count));
    }
    // Longer than any run's: not read at all.
    fs::File::create(run.path().join("heads.jsonl"))
        .unwrap()
        .set_len((128 << 20) + 1)
        .unwrap();
    watch("heads.jsonl, too long", 1, || {
        drop(run.heads().unwrap_err());
    });
}
