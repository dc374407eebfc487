//! Optimizers, weight decay, and the ways training can end.

use burn::tensor::{Device, Tensor};
use headlight_residual::{Decoder, Norm};
use headlight_run::{Config, RunDirectory, Summary};
use headlight_tasks as tasks;
use headlight_tasks::Use;
use headlight_trainer::{Pass, Setup, Updater};
use headlight_watch::model;
use tempfile::TempDir;

fn config(assignments: &[&str]) -> Config {
    let text = r#"
        task = { name = "repeat", vocabulary = 12, prefix = [0, 2], block = [3, 5] }
        model = { n_layers = 1, n_heads = 2, d_model = 16, n_ctx = 16, init_std = 0.2 }
        train = { steps = 40, batch_size = 16, learning_rate = 1e-2, clip = 100.0 }
        log = { every = 5, patterns_every = 1000 }
    "#;
    let assignments: Vec<String> = assignments.iter().map(ToString::to_string).collect();
    Config::parse(text, "test", &assignments).unwrap()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// The model before and after its first update, and the gradient of `W_Q` and of the embedding.
fn one_update(assignments: &[&str]) -> (Decoder, Decoder, [Vec<f32>; 2]) {
    let config = config(assignments);
    let device = Device::flex().autodiff();
    let task = tasks::build(&config.task, config.model.n_ctx, config.seed).unwrap();
    let before = model::build(&config, task.vocabulary().len(), &device).unwrap();
    let sequences = tasks::batch(&*task, 0, Use::Training, 1, config.train.batch_size);
    let mut updater = Updater::new(&config.train, device).unwrap();
    let gradient = updater.gradient(&before, &sequences, Pass::Plain);
    let of = |param: &burn::module::Param<Tensor<2>>| {
        values(gradient.gradients.get::<2>(param.id).unwrap())
    };
    let gradients = [of(&before.blocks[0].attn.w_q.weight), of(&before.w_e)];
    let after = updater.apply(before.clone(), gradient, config.train.learning_rate);
    (before, after, gradients)
}

/// By how much `W_Q` and the embedding moved.
fn moved(before: &Decoder, after: &Decoder) -> [Vec<f32>; 2] {
    let parts = |model: &Decoder| {
        [
            values(model.blocks[0].attn.w_q.weight.val()),
            values(model.w_e.val()),
        ]
    };
    let (before, after) = (parts(before), parts(after));
    [0, 1].map(|part| {
        before[part]
            .iter()
            .zip(&after[part])
            .map(|(before, after)| after - before)
            .collect()
    })
}

#[test]
fn sgd_moves_against_the_gradient() {
    let (before, after, gradients) = one_update(&["train.optimizer=sgd"]);
    for (moved, gradient) in moved(&before, &after).iter().zip(&gradients) {
        let largest = gradient
            .iter()
            .fold(0_f32, |largest, g| largest.max(g.abs()));
        assert!(largest > 1e-3);
        let expected = gradient.iter().map(|g| -1e-2 * g);
        // Values near 0.2 are rounded to 2⁻²⁶ or so.
        assert!(
            moved
                .iter()
                .zip(expected)
                .all(|(moved, expected)| (moved - expected).abs() < 5e-8)
        );
    }
}

#[test]
fn muon_moves_a_hidden_matrix_in_all_directions_alike_and_adamw_the_embedding() {
    let (before, after, _) = one_update(&["train.optimizer=muon"]);
    let [w_q, w_e] = moved(&before, &after);
    // Newton–Schulz brings 16 singular values near 1 (to between 0.7 and 1.2), a step scales them
    // by lr · 0.2 · √16.
    let norm = w_q
        .iter()
        .map(|x| f64::from(*x).powi(2))
        .sum::<f64>()
        .sqrt();
    let full = 1e-2 * 0.2 * 4.0 * 4.0;
    assert!((0.6 * full..1.2 * full).contains(&norm), "{norm} of {full}");
    // The first step of AdamW is the learning rate, wherever the gradient is not nearly 0.
    let whole = w_e
        .iter()
        .filter(|step| (step.abs() - 1e-2).abs() < 1e-4)
        .count();
    assert!(whole * 10 > w_e.len() * 9, "{whole} of {}", w_e.len());
}

#[test]
fn weight_decay_shrinks_matrices_and_vectors_only_when_told() {
    let gain = |model: &Decoder| match &model.ln_final {
        Some(Norm::Layer(norm)) => values(norm.gain.val()),
        other => panic!("{other:?}"),
    };
    for optimizer in ["adamw", "muon", "sgd"] {
        let optimizer = format!("train.optimizer={optimizer}");
        let after = |sets: &[&str]| one_update(&[&[optimizer.as_str()], sets].concat()).1;
        let plain = after(&[]);
        let matrices = after(&["train.weight_decay=0.5"]);
        let all = after(&["train.weight_decay=0.5", "train.weight_decay_on=all"]);
        assert_eq!(gain(&plain), gain(&matrices), "{optimizer}");
        assert!(
            gain(&all)
                .iter()
                .zip(gain(&plain))
                .all(|(all, plain)| (all - (plain - 0.005)).abs() < 1e-6)
        );
        let before = one_update(&[]).0;
        let parts = |model: &Decoder| {
            [
                values(model.blocks[0].attn.w_q.weight.val()),
                values(model.w_e.val()),
            ]
        };
        for ((before, plain), decayed) in parts(&before)
            .iter()
            .zip(parts(&plain))
            .zip(parts(&matrices))
        {
            let expected = before
                .iter()
                .zip(plain)
                .map(|(before, plain)| plain - 0.005 * before);
            assert!(
                decayed
                    .iter()
                    .zip(expected)
                    .all(|(x, expected)| (x - expected).abs() < 1e-6),
                "{optimizer}"
            );
        }
    }
}

fn train(assignments: &[&str]) -> (TempDir, RunDirectory, Summary) {
    let config = config(assignments);
    let directory = TempDir::new().unwrap();
    let setup = Setup::prepare(config, "flex").unwrap();
    let run = setup.create(&directory.path().join("run"), false).unwrap();
    let summary = setup.run(&run).unwrap();
    (directory, run, summary)
}

#[test]
fn a_target_ends_training_at_the_measurement_that_reaches_it() {
    let (_directory, run, summary) = train(&["train.stop_when=accuracy >= 0.15"]);
    let rows = run.metrics().unwrap();
    let (last, before) = rows.split_last().unwrap();
    assert!(
        last.accuracy >= 0.15 && before.iter().all(|row| row.accuracy < 0.15),
        "{rows:?}"
    );
    assert!(
        summary.steps == last.step && summary.steps < 40,
        "{}",
        summary.steps
    );
    assert!(
        run.path()
            .join(format!("patterns/step-{}/probe.safetensors", last.step))
            .is_file()
    );
    assert!(run.is_finished());
}

#[test]
fn patterns_of_early_measurements_are_kept_unless_the_limit_is_0() {
    let (_directory, run, _) = train(&[]);
    // Of the measurements every 5 steps those that reach another eighth of a decade.
    let early = [0, 5, 10, 15, 20, 25, 35, 40];
    let kept = run.pattern_steps().unwrap();
    assert!(early.iter().all(|step| kept.contains(step)), "{kept:?}");
    let happened = |step: &usize| {
        run.events()
            .unwrap()
            .iter()
            .any(|event| event.step == *step)
    };
    assert!(
        kept.iter()
            .all(|step| early.contains(step) || happened(step)),
        "{kept:?}"
    );
    let (_directory, run, _) = train(&["log.moments_megabytes=0"]);
    assert_eq!(run.pattern_steps().unwrap(), [0, 40]);
}

#[test]
fn patience_ends_training_when_validation_no_longer_falls() {
    // Steps so large that the loss soon rises.
    let (_directory, run, summary) = train(&["train.patience=2", "train.learning_rate=0.5"]);
    let rows = run.metrics().unwrap();
    let best = rows
        .iter()
        .map(|row| row.validation)
        .fold(f64::INFINITY, f64::min);
    let best = rows.iter().position(|row| row.validation == best).unwrap();
    assert_eq!(rows.len(), best + 1 + 2, "{rows:?}");
    assert_eq!(summary.steps, rows.last().unwrap().step);
    assert!(summary.steps < 40);
}

#[test]
fn tokens_bound_the_steps_with_or_without_a_number_of_steps() {
    let bounded = config(&["train.tokens=1000"]);
    assert_eq!(bounded.train.steps, 4); // of 256 tokens each: the fourth passes 1000
    assert_eq!(config(&["train.tokens=1000000"]).train.steps, 40);
    let text = bounded.to_toml().unwrap();
    assert_eq!(Config::parse(&text, "resolved", &[]).unwrap(), bounded);
    let without_steps = text.replace("steps = 4\n", "");
    assert_ne!(without_steps, text);
    assert_eq!(
        Config::parse(&without_steps, "resolved", &[]).unwrap(),
        bounded
    );
}

#[test]
fn one_batch_is_learned_by_heart() {
    let sets = [
        "train.overfit_one_batch=true",
        "train.steps=150",
        "model.n_layers=2",
        "train.schedule=linear",
    ];
    let (_directory, run, _) = train(&sets);
    let last = run.metrics().unwrap().pop().unwrap();
    assert!(last.training_accuracy.unwrap() >= 0.98, "{last:?}");
    assert!(last.accuracy < 0.8, "{last:?}");
}

#[test]
fn dropout_acts_on_updates_and_never_on_measurements() {
    let rows = |sets: &[&str]| {
        train(&[&["train.steps=5"], sets].concat())
            .1
            .metrics()
            .unwrap()
    };
    let plain = rows(&[]);
    for dropout in ["train.dropout=0.5", "train.attention_dropout=0.5"] {
        let dropped = rows(&[dropout]);
        assert_eq!(dropped[0], plain[0], "{dropout}");
        assert_ne!(dropped[1], plain[1], "{dropout}");
    }
}
