//! One update, in however many parts.

use burn::tensor::{Device, Tensor};
use headlight_run::{Config, TrainConfig};
use headlight_tasks as tasks;
use headlight_tasks::Use;
use headlight_trainer::{Update, Updater};
use headlight_watch::model;

fn config(shards: usize, accumulate: usize) -> Config {
    let text = r#"
        task = { name = "repeat" }
        model = { n_layers = 2, n_heads = 4, d_model = 64, n_ctx = 64, feed_forward = "gelu" }
        train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
    "#;
    Config::parse(
        text,
        "test",
        &[
            format!("train.shards={shards}"),
            format!("train.accumulate={accumulate}"),
        ],
    )
    .unwrap()
}

fn one_update(train: &TrainConfig, config: &Config) -> (Vec<f32>, Update) {
    let device = Device::flex().autodiff();
    let task = tasks::build(&config.task, config.model.n_ctx, config.seed).unwrap();
    let model = model::build(config, task.vocabulary().len(), &device).unwrap();
    let sequences = tasks::batch(&*task, 0, Use::Training, 1, train.batch_size);
    let (model, update) =
        Updater::new(train, device)
            .unwrap()
            .update(model, &sequences, train.learning_rate);
    let values = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
    (values(model.blocks[0].attn.w_q.weight.val()), update)
}

#[test]
fn parts_change_loss_and_gradient_only_in_the_last_bits() {
    let reference = config(1, 1);
    let (weights, one) = one_update(&reference.train, &reference);
    for (shards, accumulate) in [(2, 1), (4, 1), (1, 4), (2, 4)] {
        let config = config(shards, accumulate);
        let (sharded_weights, sharded) = one_update(&config.train, &config);
        assert!(
            (sharded.loss / one.loss - 1.0).abs() < 1e-6,
            "{sharded:?} {one:?}"
        );
        assert!(
            (sharded.gradient_norm / one.gradient_norm - 1.0).abs() < 1e-6,
            "{sharded:?} {one:?}"
        );
        // AdamW's first step is the sign of the gradient; a sign may differ only where the gradient
        // is nearly 0.
        let differing = weights
            .iter()
            .zip(&sharded_weights)
            .filter(|(a, b)| (*a - *b).abs() > 1e-5)
            .count();
        assert!(
            differing * 1000 < weights.len(),
            "{differing} of {}",
            weights.len()
        );
    }
}

#[test]
fn the_first_update_follows_adamw_by_hand() {
    // With zero state the first step of Adam is lr · g/(|g| + ε'): the learning rate in the
    // direction of −sign(g), wherever the gradient is far above ε.
    let config = config(1, 1);
    let device = Device::flex().autodiff();
    let task = tasks::build(&config.task, config.model.n_ctx, config.seed).unwrap();
    let before = model::build(&config, task.vocabulary().len(), &device).unwrap();
    let before: Vec<f32> = before.blocks[0]
        .attn
        .w_q
        .weight
        .val()
        .into_data()
        .iter::<f32>()
        .collect();
    let (after, _) = one_update(&config.train, &config);
    let steps: Vec<f32> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| (after - before).abs())
        .collect();
    let full = steps
        .iter()
        .filter(|step| (**step - 1e-3).abs() < 2e-5)
        .count();
    assert!(full * 10 > steps.len() * 9, "{full} of {}", steps.len());
}
