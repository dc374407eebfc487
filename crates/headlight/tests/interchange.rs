//! Interchange training: it puts a program into chosen parts, and without it the program is learned
//! elsewhere.

mod common;

use std::{fs, path::PathBuf};

use burn::tensor::Device;
use common::{Workshop, assert_ok, assert_one_line, json};
use headlight_residual::Decoder;
use headlight_run::Config;
use headlight_tasks::{self as tasks, Sequence, Use};
use headlight_trainer::{Pass, StepSwaps, Updater};
use headlight_watch::{Batch, Interchange, count_scored, model};
use serde_json::Value;

/// The run of a second.
const HISTOGRAM: &str = r#"
seed = 1
[task]
name = "program"
program = "histogram"
length = 6
[model]
n_layers = 1
n_heads = 4
d_model = 16
n_ctx = 7
feed_forward = "relu"
[interchange.alignment]
"1/(1+count)" = "L0H2"
count = "feed-forward 0"
[train]
steps = 30
batch_size = 16
learning_rate = 5e-3
shards = 2
[log]
every = 15
patterns_every = 30
"#;

/// The configuration that ships.
fn shipped(name: &str) -> PathBuf {
    let configs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    configs.join(name)
}

fn interchange(workshop: &Workshop, run: &str) -> Value {
    json(&workshop.inspect(run, &["interchange", "--json"]))
}

fn area(found: &Value, method: &str) -> f64 {
    let methods = found["methods"].as_array().unwrap().iter();
    let found = methods
        .into_iter()
        .find(|of| of["method"] == method)
        .unwrap();
    found["auroc"]["mean"].as_f64().unwrap()
}

#[test]
fn swaps_train_a_program_into_the_parts_that_are_named() {
    let workshop = Workshop::new();
    for name in ["known_fraction", "control_known_fraction"] {
        let config = shipped(&format!("{name}.toml"));
        assert_ok(&workshop.train(&config, &["--set", "train.steps=300", "--out", name]));
    }
    let (known, control) = (
        interchange(&workshop, "known_fraction"),
        interchange(&workshop, "control_known_fraction"),
    );
    for found in [&known, &control] {
        assert!(found["accuracy"].as_f64().unwrap() > 0.98, "{found}");
    }
    let share = |found: &Value, name: &str| found[name].as_f64().unwrap();
    assert!(share(&known, "interchange_accuracy") > 0.95, "{known}");
    assert!(share(&known, "strictness") > 0.95, "{known}");
    assert!(share(&control, "interchange_accuracy") < 0.8, "{control}");
    for method in ["patched", "mean-ablated", "EAP-IG"] {
        assert_eq!(area(&known, method), 1.0, "{method}: {known}");
    }
    // What training logs is what the verb finds.
    let last: Value = fs::read_to_string(workshop.path("known_fraction/metrics.jsonl"))
        .unwrap()
        .lines()
        .last()
        .map(|line| serde_json::from_str(line).unwrap())
        .unwrap();
    let logged = &last["breakdown"]["interchange accuracy"]["accuracy"];
    assert_eq!(logged, &known["interchange_accuracy"]);
    assert_eq!(
        &last["breakdown"]["strictness"]["accuracy"],
        &known["strictness"]
    );
}

#[test]
fn swaps_that_weigh_nothing_change_no_bit_of_the_weights() {
    let workshop = Workshop::new();
    let (before, after) = HISTOGRAM.split_once("[interchange.alignment]").unwrap();
    let (_alignment, train) = after.split_once("[train]").unwrap();
    let without = workshop.write("without.toml", &format!("{before}[train]{train}"));
    let with = workshop.write("with.toml", HISTOGRAM);
    assert_ok(&workshop.train(&without, &["--out", "without"]));
    let untrained = [
        "--set",
        "interchange.weight=0",
        "--set",
        "interchange.strictness=0",
    ];
    assert_ok(&workshop.train(&with, &[&["--out", "with"], &untrained[..]].concat()));
    let weights =
        |run: &str| fs::read(workshop.path(run).join("last/weights.safetensors")).unwrap();
    assert!(weights("without") == weights("with"));
}

#[test]
fn a_run_without_an_alignment_and_an_unknown_variable_are_one_line() {
    let workshop = Workshop::trained("run");
    let output = workshop.inspect("run", &["interchange"]);
    assert_one_line(&output, 2, &["run", "has no table [interchange]"]);
    let config = workshop.write(
        "known.toml",
        &HISTOGRAM.replace("count = \"feed", "counts = \"feed"),
    );
    let output = workshop.train(&config, &["--out", "known"]);
    let expected = "interchange.alignment.counts = feed-forward 0: histogram has no such variable; there are: \
                    1/(1+count), count";
    assert_one_line(&output, 2, &[expected]);
}

/// Parameters that are far from 0, so that gradients are no noise.
const INDUCTION: &str = r#"
    task = { name = "program", program = "induction", length = 6 }
    model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 7, init_std = 0.3 }
    train = { steps = 10, batch_size = 16, learning_rate = 1e-3, optimizer = "sgd", momentum = 0.0, clip = 1e9 }
    interchange = { alignment = { previous = "L0H1", next = "L1H0" } }
"#;

struct Case {
    config: Config,
    interchange: Interchange,
    model: Decoder,
    rows: Vec<Sequence>,
    device: Device,
}

impl Case {
    fn of(assignments: &[&str]) -> Self {
        let assignments: Vec<String> = assignments.iter().map(ToString::to_string).collect();
        let config = Config::parse(INDUCTION, "test", &assignments).unwrap();
        let device = Device::flex().autodiff();
        let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
        Self {
            interchange: Interchange::of(&config).unwrap().unwrap(),
            model: model::build(&config, task.vocabulary().len(), &device).unwrap(),
            rows: tasks::batch(&*task, 0, Use::Training, 1, 16),
            config,
            device,
        }
    }

    fn swaps(&self, step: usize) -> StepSwaps<'_> {
        StepSwaps {
            interchange: &self.interchange,
            step,
        }
    }

    /// All that is trained: the task's loss and those of the swaps.
    fn loss(&self, model: &Decoder, step: usize) -> f64 {
        let batch = Batch::new(&self.rows, &self.device);
        let (stream, of_swaps) = self.swaps(step).run(model, &self.rows, &batch);
        let own = model.summed_loss(stream, batch.targets, batch.scored);
        let sum = of_swaps.map_or(own.clone(), |of_swaps| own + of_swaps);
        f64::from(sum.into_scalar::<f32>()) / count_scored(&self.rows) as f64
    }
}

#[test]
fn the_gradient_is_that_of_the_task_and_the_swaps_together() {
    let case = Case::of(&[]);
    for step in [1, 2] {
        let moved = |rate: f64| {
            let mut updater = Updater::new(&case.config.train, case.device.clone()).unwrap();
            let pass = Pass::Swapping(case.swaps(step));
            let gradient = updater.gradient(&case.model, &case.rows, pass);
            let norm = gradient.update.gradient_norm;
            let model = updater.apply(case.model.clone(), gradient, rate);
            (case.loss(&model, step), norm)
        };
        // Down and up the gradient g by h·g, the loss changes by 2h·‖g‖².
        let h = 1e-4;
        let ((down, norm), (up, _)) = (moved(h), moved(-h));
        let slope = (up - down) / (2.0 * h);
        let relative = slope / (norm * norm) - 1.0;
        assert!(
            relative.abs() < 1e-3,
            "step {step}: {slope} for {}",
            norm * norm
        );
    }
}

#[test]
fn pairs_stay_together_in_shards_and_parts() {
    let norm_of = |assignments: &[&str]| {
        let case = Case::of(assignments);
        let updater = Updater::new(&case.config.train, case.device.clone()).unwrap();
        let gradient = updater.gradient(&case.model, &case.rows, Pass::Swapping(case.swaps(1)));
        gradient.update
    };
    let whole = norm_of(&["train.shards=1"]);
    let parts = norm_of(&["train.shards=2", "train.accumulate=4"]);
    let relative = |a: f64, b: f64| (a / b - 1.0).abs();
    assert!(
        relative(parts.gradient_norm, whole.gradient_norm) < 1e-5,
        "{parts:?} {whole:?}"
    );
    assert!(
        relative(parts.loss, whole.loss) < 1e-5,
        "{parts:?} {whole:?}"
    );
    // Without the swaps the gradient is another one.
    let none = norm_of(&["interchange.weight=0", "interchange.strictness=0"]);
    assert!(
        relative(none.gradient_norm, whole.gradient_norm) > 0.01,
        "{none:?} {whole:?}"
    );
    assert!(
        relative(none.loss, whole.loss) < 1e-5,
        "the loss is the task's alone"
    );
}
