//! The time of a look at the heads of a run. `scripts/bench` runs it beside TransformerLens.
//!
//! `look RUN REPEATS` prints two medians of milliseconds, and then the accuracy without each head:
//!
//! 1. every head's pattern on 64 validation sequences, and its scores from them,
//! 2. every head ablated alone on 128 validation sequences, by its mean.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::{hint::black_box, path::Path, time::Instant};

use burn::tensor::Device;
use headlight_heads::{Ablation, HeadName, Scores};
use headlight_lens::{Ablations, Performance, RoleTargets, all_heads, score_layer_on};
use headlight_residual::Decoder;
use headlight_run::RunDirectory;
use headlight_tasks::Validation;
use headlight_watch::{Cores, each_layer, model, uses::behaviour};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SCORED: usize = 64;
const ABLATED: usize = 128;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [run, repeats] = &arguments[..] else {
        println!("usage: look RUN REPEATS");
        return;
    };
    let repeats: usize = repeats.parse().expect("a number of repeats");
    let device = Device::flex();
    let run = RunDirectory::open(Path::new(run)).expect("a run");
    let config = run.config().expect("a configuration");
    let weights = run.newest_weights().expect("weights");
    let model = model::load(&run, &config, weights, &device).expect("a model");
    let validation = Validation::of_rows(run.validation().expect("validation sequences"));
    let mut tokens = Vec::new();
    for sequence in &validation.sequences[..SCORED] {
        tokens.push(sequence.tokens[..sequence.scored.len()].to_vec());
    }
    let behaviour = behaviour(&validation.sequences, ABLATED, &device);
    let without_each_head = || {
        let ablations = Ablations::new(&model, &behaviour, Ablation::Mean);
        let one = |head: HeadName| ablations.without(&[head]).expect("room for activations");
        Cores::all().map(all_heads(&model), one)
    };

    let scores = median(repeats, || scores_of_all(&model, &tokens, &device));
    let ablations = median(repeats, without_each_head);
    println!("{scores:.3} {ablations:.3}");
    let left: Vec<Performance> = without_each_head();
    for performance in left {
        println!("{:.6}", performance.accuracy);
    }
}

/// Every head's scores, layer by layer.
fn scores_of_all(model: &Decoder, tokens: &[Vec<u32>], device: &Device) -> Vec<Scores> {
    let targets = RoleTargets::causal(tokens, model.config().window_of(0), false);
    let mut scores = Vec::new();
    let looked = each_layer(model, tokens, device, false, false, |seen| {
        scores.extend(score_layer_on(seen.pattern, &targets));
    });
    looked.expect("room for the patterns of a layer");
    scores
}

/// The median milliseconds of some repeats, after one that does not count.
fn median<T>(repeats: usize, look: impl Fn() -> T) -> f64 {
    let mut times = Vec::new();
    for _ in 0..=repeats {
        let started = Instant::now();
        black_box(look());
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
