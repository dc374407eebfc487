//! The configurations that ship do what they say. Each trains for real.

use std::path::PathBuf;

use headlight_heads::{Measure, Role};
use headlight_inspect::Subject;
use headlight_run::{Config, Summary};
use headlight_trainer::Setup;
use tempfile::TempDir;

const INDUCTION: Role = Role::Of(Measure::Induction);

fn config(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../configs")
        .join(name)
}

fn train(name: &str, assignments: &[&str]) -> (TempDir, Summary) {
    let assignments: Vec<String> = assignments.iter().map(ToString::to_string).collect();
    let config = Config::load(&config(name), &assignments).unwrap();
    let directory = TempDir::new().unwrap();
    let setup = Setup::prepare(config, "flex").unwrap();
    let run = setup.create(&directory.path().join("run"), false).unwrap();
    let summary = setup.run(&run).unwrap();
    (directory, summary)
}

fn roles(summary: &Summary) -> Vec<(String, Role)> {
    summary
        .heads
        .iter()
        .map(|head| (head.head.to_string(), head.role))
        .collect()
}

#[test]
fn every_configuration_is_valid() {
    for entry in std::fs::read_dir(config("")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            Config::load(&path, &[]).unwrap();
        }
    }
}

#[test]
fn induction_is_learned_by_step_750_with_an_induction_head_in_layer_1() {
    let (_run, summary) = train("induction.toml", &["train.steps=750"]);
    assert!(summary.accuracy >= 0.90, "{}", summary.accuracy);
    assert!(
        roles(&summary)
            .iter()
            .any(|(head, role)| head.starts_with("L1") && *role == INDUCTION)
    );
}

#[test]
fn one_layer_does_not_learn_induction() {
    let (_run, summary) = train("control_one_layer.toml", &["train.steps=750"]);
    assert!(summary.accuracy <= 0.25, "{}", summary.accuracy);
    assert!(roles(&summary).iter().all(|(_, role)| *role == Role::Mixed));
}

#[test]
fn a_fixed_period_is_learned_by_position_and_fools_no_role() {
    let (directory, summary) = train("control_fixed_period.toml", &["train.steps=750"]);
    assert!(summary.accuracy >= 0.98, "{}", summary.accuracy);
    assert!(
        roles(&summary).iter().all(|(_, role)| *role == Role::Mixed),
        "{:?}",
        roles(&summary)
    );

    let inspection = Subject::open(&directory.path().join("run"), "flex").unwrap();
    let on_its_own = inspection
        .evaluate(Some(&config("control_fixed_period.toml")))
        .unwrap();
    assert!(
        on_its_own
            .heads
            .iter()
            .any(|head| head.scores[&Measure::Induction.into()].value >= 0.8),
        "the detector is fooled here"
    );
    let jittered = inspection
        .evaluate(Some(&config("induction.toml")))
        .unwrap();
    assert!(jittered.accuracy <= 0.2, "{}", jittered.accuracy);
}

#[test]
fn the_hello_reaches_the_conditional_entropy_with_a_previous_token_head() {
    let (_run, summary) = train("previous_token.toml", &[]);
    let floor = summary.floor.unwrap();
    assert!(
        (summary.loss - floor).abs() <= 0.02,
        "{} against {floor}",
        summary.loss
    );
    let previous_token = Role::Of(Measure::PreviousToken);
    assert_eq!(roles(&summary), [("L0H0".to_owned(), previous_token)]);
}

#[test]
fn two_layers_recall_and_one_guesses_among_the_values() {
    let (_run, summary) = train("recall.toml", &["train.steps=500"]);
    assert!(summary.accuracy >= 0.99, "{}", summary.accuracy);
    let (_run, summary) = train("control_recall_one_layer.toml", &["train.steps=500"]);
    assert!(summary.accuracy <= 0.25, "{}", summary.accuracy);
}

#[test]
fn sequences_never_seen_are_reversed_without_a_fault() {
    let (_run, summary) = train("reverse.toml", &["train.steps=200"]);
    assert!(summary.exact >= 0.99, "{}", summary.exact);
}
