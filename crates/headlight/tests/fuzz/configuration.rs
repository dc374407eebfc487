//! Configurations, assignments and the lexicon.

use std::{fs, path::Path};

use crate::{
    harness::{MIDDLING, SLOW, fuzz},
    mutation::{arbitrary, changed, text},
};
use headlight_run::Config;
use headlight_tasks::Lexicon;
use proptest::prelude::*;

const ASSIGNMENTS: [&str; 10] = [
    "train.steps=500",
    "train.betas=[0.9, 0.98]",
    "model.d_model = 32",
    "model.preset=gpt2",
    "task = { name = 'recall', pairs = 3 }",
    "task.name=sort",
    "seed=1",
    "log.every=10",
    "model.attention_scale=0.5",
    "task.block=[3, 5]",
];

/// Every configuration that ships.
fn shipped() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    // Folders are listed in any order.
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// What was accepted is written in a form that is read as the same.
fn check(config: Config) {
    let toml = config.to_toml().unwrap();
    assert_eq!(Config::parse(&toml, "again", &[]).unwrap(), config);
}

#[test]
fn configurations() {
    fuzz("configurations", MIDDLING, changed(shipped()), |bytes| {
        if let Ok(config) = Config::parse(&text(bytes), "a.toml", &[]) {
            check(config);
        }
    });
}

#[test]
fn assignments() {
    let valid = ASSIGNMENTS
        .map(|assignment| assignment.as_bytes().to_vec())
        .to_vec();
    let shipped = shipped()
        .iter()
        .map(|bytes| text(bytes))
        .find(|text| text.contains("repeat"))
        .unwrap();
    fuzz("assignments", MIDDLING, changed(valid), |bytes| {
        if let Ok(config) = Config::parse(&shipped, "a.toml", &[text(bytes)]) {
            check(config);
        }
    });
}

#[test]
fn a_line_about_whatever_is_wrong_stays_one_line() {
    fuzz(
        "error lines",
        MIDDLING,
        prop_oneof![changed(shipped()), arbitrary()],
        |bytes| {
            if let Err(error) = Config::parse(&text(bytes), &text(bytes), &[]) {
                assert!(!error.to_string().contains(char::is_control), "{error}");
            }
        },
    );
}

#[test]
fn lexicons() {
    let shipped = include_bytes!("../../../tasks/src/grammar/lexicon.toml").to_vec();
    fuzz("lexicons", SLOW, changed(vec![shipped]), |bytes| {
        if let Ok(lexicon) = Lexicon::parse(&text(bytes)) {
            let texts = lexicon.texts();
            assert!(
                texts
                    .iter()
                    .enumerate()
                    .all(|(id, text)| lexicon.token(text) == Some(id as u32))
            );
        }
    });
}
