use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use headlight_heads::Relation;
use tempfile::TempDir;

use super::*;

/// A folder with a file to learn from and one to measure on.
struct Files(TempDir);

impl Files {
    fn new(training: &str, validation: &str) -> Self {
        let files = Self(TempDir::new().unwrap());
        files.write("train.jsonl", training);
        files.write("valid.jsonl", validation);
        files
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn config(&self) -> SequencesConfig {
        SequencesConfig {
            path: self.0.path().join("train.jsonl"),
            validation: self.0.path().join("valid.jsonl"),
            vocabulary: None,
        }
    }

    fn open(&self) -> Result<Sequences, Error> {
        Sequences::open(&self.config(), 8)
    }

    /// The error without the folder's name.
    fn error(&self) -> String {
        let message = self.open().err().expect("is refused").to_string();
        message.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn key(usage: Use, step: usize, row: usize, rows: usize) -> RowKey {
    RowKey {
        seed: 3,
        usage,
        step,
        row,
        rows,
    }
}

#[test]
fn names_and_what_is_known_of_a_sequence_are_read() {
    let line = r#"{"tokens":["the","cat","sits"],"scored":[1],"relations":[["verb→subject",2,1]],"floor":[0.5,0.25]}"#;
    let files = Files::new("{\"tokens\":[\"a\",\"cat\",\"sits\"]}\n", line);
    let task = files.open().unwrap();
    // In alphabetical order, of both files.
    assert_eq!(task.vocabulary().names(), ["a", "cat", "sits", "the"]);
    assert_eq!(task.training_tokens(), Some(vec![0, 1, 2]));
    let learned = task.sequence(key(Use::Training, 1, 0, 1));
    assert_eq!(
        (learned.tokens, learned.scored),
        (vec![0, 1, 2], vec![true, true])
    );

    let validation = task.validation(7);
    assert_eq!(validation.sequences[0].tokens, [3, 1, 2]);
    assert_eq!(validation.sequences[0].scored, [false, true]);
    let relation = Relation {
        name: "verb→subject".into(),
        dependent: 2,
        source: 1,
    };
    assert_eq!(validation.relations, [[relation]]);
    assert_eq!(validation.floor(), Some(0.25));
    let names: Vec<_> = task.files().iter().map(|file| file.path.clone()).collect();
    assert_eq!(names, [files.config().path, files.config().validation]);
}

#[test]
fn ids_masks_and_a_given_vocabulary_are_read() {
    let files = Files::new(
        "{\"tokens\":[0,2,1],\"scored\":[true,false]}\n",
        "{\"tokens\":[1,1,0]}",
    );
    let task = files.open().unwrap();
    assert_eq!(task.vocabulary().names(), ["0", "1", "2"]);
    assert_eq!(
        task.sequence(key(Use::Training, 1, 0, 1)).scored,
        [true, false]
    );

    let names = files.write("names.json", r#"["x","y","z","w"]"#);
    let mut config = files.config();
    config.vocabulary = Some(names);
    let task = Sequences::open(&config, 8).unwrap();
    assert_eq!(task.vocabulary().names(), ["x", "y", "z", "w"]);
    assert_eq!(task.files().len(), 3);
}

#[test]
fn every_line_comes_once_in_each_epoch_in_an_order_of_its_own() {
    let mut lines = String::new();
    for id in 0..10 {
        writeln!(lines, "{{\"tokens\":[{id},0]}}").unwrap();
    }
    let task = Files::new(&lines, "{\"tokens\":[0,0]}").open().unwrap();
    // Five steps of four rows are two epochs.
    let drawn: Vec<u32> = (1..=5)
        .flat_map(|step| (0..4).map(move |row| key(Use::Training, step, row, 4)))
        .map(|key| task.sequence(key).tokens[0])
        .collect();
    let [first, second] = [&drawn[..10], &drawn[10..]];
    for epoch in [first, second] {
        assert_eq!(epoch.iter().collect::<BTreeSet<_>>().len(), 10, "{epoch:?}");
    }
    assert_ne!(first, second);
    // The order follows from the key alone, whatever was asked before.
    let again = task.sequence(key(Use::Training, 1, 0, 4)).tokens[0];
    assert_eq!(again, drawn[0]);
    let other_seed = RowKey {
        seed: 4,
        ..key(Use::Training, 1, 0, 4)
    };
    let others: Vec<u32> = (0..10)
        .map(|row| RowKey {
            row,
            rows: 10,
            ..other_seed
        })
        .map(|key| task.sequence(key).tokens[0])
        .collect();
    assert_ne!(first, others);
}

#[test]
fn what_is_wrong_is_named_by_file_line_and_field() {
    const GOOD: &str = "{\"tokens\":[0,1,1]}\n";
    for (training, message) in [
        ("", "train.jsonl: task.path: is empty"),
        (
            "{\"tokens\":[0,1,1]}\n\n",
            "train.jsonl:2: task.path: EOF while parsing a value",
        ),
        (
            "{\"tokens\":[0,\"a\",1]}",
            "tokens must be a list of names, or a list of ids from 0 up",
        ),
        ("{\"tokens\":[0,1,-1]}", "tokens must be a list of names"),
        ("{\"token\":[0,1]}", "unknown field `token`"),
        (
            "{\"tokens\":[0]}",
            "tokens: are 1; expected 2 to model.n_ctx + 1 = 9",
        ),
        (
            "{\"tokens\":[0,1,2,3,4,5,6,7,8,9]}",
            "tokens: are 10; expected 2 to model.n_ctx + 1 = 9",
        ),
        (
            "{\"tokens\":[0,1,1],\"scored\":[2]}",
            "2 is no input; the sequence has 2",
        ),
        (
            "{\"tokens\":[0,1,1],\"scored\":[true]}",
            "scored: has 1 values for 2 inputs",
        ),
        (
            "{\"tokens\":[0,1,1],\"relations\":[[\"r\",3,0]]}",
            "relations: 3 is no position",
        ),
        (
            "{\"tokens\":[0,1,1],\"floor\":[0.5]}",
            "1 losses for 2 targets",
        ),
        (
            "{\"tokens\":[0,1,1],\"best_accuracy\":[0.5]}",
            "best_accuracy: has 1 values for 2 targets",
        ),
        (
            "{\"tokens\":[0,1,1],\"best_accuracy\":[0.5,1.5]}",
            "best_accuracy: 1.5 is no share; it is 0 to 1",
        ),
        (
            "{\"tokens\":[0,1,1]}\n{\"tokens\":[0,1]}",
            "train.jsonl:2: task.path: tokens: are 2, in the first line of task.path 3",
        ),
        (
            "{\"tokens\":[\"a b\",\"c\",\"c\"]}",
            "\"a b\" cannot be a name",
        ),
        (
            "{\"tokens\":[0,1,1]}\n{\"tokens\":[\"a\",\"b\",\"b\"]}",
            "train.jsonl:2: task.path: tokens: must be ids as in the lines before",
        ),
    ] {
        let error = Files::new(training, GOOD).error();
        assert!(error.contains(message), "{training:?}: {error}");
        assert!(error.contains("train.jsonl"), "{error}");
    }
    let error = Files::new(GOOD, "{\"tokens\":[\"a\",\"b\",\"b\"]}").error();
    assert!(
        error.starts_with("valid.jsonl:1: task.validation"),
        "{error}"
    );
    let error = Files::new(
        GOOD,
        "{\"tokens\":[0,1,1],\"floor\":[0,0]}\n{\"tokens\":[0,1,1]}",
    )
    .error();
    assert!(
        error.contains("valid.jsonl:2") && error.contains("in every line or in none"),
        "{error}"
    );
    let many = GOOD.repeat(MOST_VALIDATION_ROWS + 1);
    assert!(
        Files::new(GOOD, &many)
            .error()
            .contains("has 4097 sequences, more than 4096")
    );
}
