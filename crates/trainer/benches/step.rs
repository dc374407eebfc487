//! The time of a training step: batch, forward, backward, clipping, AdamW. Run by `scripts/bench`.
//!
//! `cargo bench --workspace --profile dev --bench step -- toy 50` prints milliseconds a step, the median of 50.

use std::time::Instant;

use burn::tensor::Device;
use headlight_run::Config;
use headlight_trainer::{
    Updater, model,
    tasks::{self, Use},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Layers, heads, width and length; feed-forward; batch. `scripts/bench_torch.py` has the same.
const MODELS: [(&str, [usize; 4], &str, usize); 4] = [
    ("toy", [2, 4, 64, 64], "none", 64),
    ("S", [2, 4, 64, 64], "gelu", 64),
    ("M", [4, 4, 128, 64], "gelu", 12),
    ("L", [6, 6, 384, 256], "gelu", 4),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [name, steps] = arguments.as_slice() else {
        println!("usage: step MODEL STEPS, models: toy, S, M, L");
        return;
    };
    let steps: usize = steps.parse().expect("a number of steps");
    let (_, [layers, heads, width, length], feed_forward, batch) =
        MODELS.into_iter().find(|(known, ..)| known == name).expect("toy, S, M or L");
    let text = format!(
        r#"
        task = {{ name = "repeat", vocabulary = 64 }}
        model = {{ n_layers = {layers}, n_heads = {heads}, d_model = {width}, n_ctx = {length}, feed_forward = "{feed_forward}" }}
        train = {{ steps = 10, batch_size = {batch}, learning_rate = 1e-3, shards = 2 }}
        "#
    );
    let config = Config::parse(&text, "benchmark", &[]).expect("a valid configuration");
    let device = Device::flex().autodiff();
    let task = tasks::build(&config.task, length, 0).expect("a task without files");
    let mut decoder = Some(model::build(&config, task.vocabulary().len(), &device).expect("a model"));
    let mut updater = Updater::new(&config.train, device).expect("threads");
    let mut times: Vec<f64> = (0..steps + 3)
        .map(|step| {
            let started = Instant::now();
            let sequences = tasks::batch(&*task, 0, Use::Training, step, batch);
            // Moved, not cloned: what is held twice cannot be updated in place.
            decoder = decoder.take().map(|model| updater.update(model, &sequences, 1e-3).0);
            started.elapsed().as_secs_f64() * 1e3
        })
        .skip(3)
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{:.3}", times[times.len() / 2]);
}
