//! The time of a look at the heads of a model of somebody else. `scripts/bench model` runs it beside
//! transformers and TransformerLens.
//!
//! `model PATH WHAT REPEATS` prints the median of milliseconds, and the largest resident memory of the
//! process in MB. WHAT is
//!
//! 1. `load`: the model in memory,
//! 2. `forward`: all logits of one sequence of 256 tokens,
//! 3. `scores`: every head's pattern on 16 sequences of 256 tokens, layer by layer, and its scores,
//! 4. `ablate`: two heads of each of five layers, evenly from the first to the last, ablated alone by
//!    their mean on 32 sequences of 64 tokens; the time is that of all heads at this rate.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::{hint::black_box, path::Path, time::Instant};

use burn::tensor::{Device, Int, Tensor};
use headlight_heads::{Ablation, Scores};
use headlight_inspect::{ModelParts, Subject};
use headlight_lens::{RoleTargets, at_each_layer, score_layer_on};
use headlight_residual::{Decoder, token_tensor};
use headlight_watch::{Cores, each_layer, uses::behaviour};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LENGTH: usize = 256;
const SCORED: usize = 16;
const ABLATED: usize = 32;
/// Layers of which heads are ablated.
const LAYERS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [path, what, repeats] = &arguments[..] else {
        println!("usage: model PATH load|forward|scores|ablate REPEATS");
        return;
    };
    let repeats: usize = repeats.parse().expect("a number of repeats");
    let started = Instant::now();
    let subject = Subject::open(Path::new(path), "flex").expect("a model");
    let ModelParts { model, .. } = subject.model().expect("a model");
    let loaded = started.elapsed().as_secs_f64() * 1e3;
    let device = subject.device().clone();
    let milliseconds = match what.as_str() {
        "load" => loaded,
        "forward" => {
            let inputs: Tensor<2, Int> = token_tensor(&tokens(1, &model), &device);
            median(repeats, || model.forward(inputs.clone()).into_data())
        }
        "scores" => {
            let tokens = tokens(SCORED, &model);
            median(repeats, || scores_of_all(&model, &tokens, &device))
        }
        "ablate" => median(repeats, || ablate_some(&subject, &model, &device)) * share(&model),
        _ => panic!("{what} is not measured"),
    };
    println!("{milliseconds:.3} {:.0}", peak_megabytes());
}

/// Random tokens of which the second half repeats the first.
fn tokens(sequences: usize, model: &Decoder) -> Vec<Vec<u32>> {
    let vocabulary = model.vocabulary();
    let row = |sequence: usize| {
        let token = |at: usize| (7919 * (at % (LENGTH / 2)) + 104_729 * sequence) % vocabulary;
        (0..LENGTH).map(|at| token(at) as u32).collect()
    };
    (0..sequences).map(row).collect()
}

fn scores_of_all(model: &Decoder, tokens: &[Vec<u32>], device: &Device) -> Vec<Scores> {
    let targets = RoleTargets::causal(tokens, model.config().window_of(0), false);
    let mut scores = Vec::new();
    let looked = each_layer(model, tokens, device, false, false, |seen| {
        scores.extend(score_layer_on(seen.pattern, &targets));
    });
    looked.expect("room for the patterns of a layer");
    scores
}

fn ablated_layers(model: &Decoder) -> Vec<usize> {
    let last = model.blocks.len() - 1;
    let layers = (0..LAYERS).map(|index| index * last / (LAYERS - 1));
    layers.collect()
}

/// Two heads of each of these layers.
fn ablate_some(subject: &Subject, model: &Decoder, device: &Device) -> f64 {
    let sequences = &subject.validation().expect("sequences").sequences;
    let behaviour = behaviour(sequences, ABLATED, device).only_where_scored();
    let layers = ablated_layers(model);
    let mut losses = 0.0;
    let passed = at_each_layer(model, &behaviour, Ablation::Mean, &layers, &mut |layer| {
        for left in Cores::all().map(vec![0, 1], |head| layer.without_each(&[head])) {
            losses += left?[0].loss;
        }
        Ok(())
    });
    passed.expect("room for the activations of a layer");
    losses
}

/// All heads, for one that was ablated.
fn share(model: &Decoder) -> f64 {
    let ablated = 2 * ablated_layers(model).len();
    (model.blocks.len() * model.n_heads()) as f64 / ablated as f64
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

/// `VmHWM` of `/proc/self/status`.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.map_or(f64::NAN, |number| {
        number.parse::<f64>().unwrap_or(f64::NAN) * 1.024e-3
    })
}
