//! Times of a model of another tool: a forward pass, the scores of all heads, heads ablated alone.
//! `scripts/bench real` runs it beside transformers and TransformerLens.
//!
//! `real PATH REPEATS LAYERS` prints, one number a line:
//!
//! 1. the milliseconds until the model is loaded,
//! 2. of a forward pass over 256 tokens with logits at every position,
//! 3. of every head's pattern on 16 sequences of 64 tokens, and its scores from them,
//! 4. of ablating alone, by its mean, each head of the layers `LAYERS` (`0,10,20`, or `all`) on 4 sequences of 64
//!    tokens, whose second halves are scored,
//! 5. the number of these heads,
//! 6. the mebibytes of the f32 weights,
//! 7. the mebibytes of memory, at most, of loading, 2 and 3,
//! 8. and then the loss without each of the heads of 4.
//!
//! 2 and 3 are medians of the repeats. Token `i` is `1000 + 7919·i mod 40000`.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::{fs, hint::black_box, path::Path, time::Instant};

use burn::tensor::Device;
use headlight_heads::{Ablation, Scores};
use headlight_lens::{Behaviour, Performance, RoleTargets, at_each_layer, score_layer_on};
use headlight_residual::{Decoder, token_tensor};
use headlight_watch::{Cores, ModelFiles, each_layer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FORWARD: usize = 256;
const SCORED: usize = 16;
const ABLATED: usize = 4;
const LENGTH: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [path, repeats, layers] = &arguments[..] else {
        println!("usage: real PATH REPEATS LAYERS");
        return;
    };
    let repeats: usize = repeats.parse().expect("a number of repeats");
    let device = Device::flex();
    let begun = Instant::now();
    let files = ModelFiles::open(Path::new(path)).expect("a model");
    let model = files.model(&device).expect("a model");
    println!("{:.1}", milliseconds(begun));

    let inputs = token_tensor(&[row(0, FORWARD)], &device);
    let forward = || model.forward(inputs.clone()).into_data();
    println!("{:.1}", median(repeats, forward));
    let mut tokens = Vec::new();
    for sequence in 0..SCORED {
        tokens.push(row(sequence, LENGTH));
    }
    println!(
        "{:.1}",
        median(repeats, || scores_of_all(&model, &tokens, &device))
    );
    let memory = most_memory();

    let layers: Vec<usize> = match &layers[..] {
        "all" => (0..model.blocks.len()).collect(),
        listed => listed
            .split(',')
            .map(|layer| layer.parse().expect("a layer"))
            .collect(),
    };
    let begun = Instant::now();
    let left = without_each(&model, &layers, &device);
    println!("{:.1}\n{}", milliseconds(begun), left.len());
    println!(
        "{:.1}",
        model.config().parameters() as f64 * 4.0 / 1024.0 / 1024.0
    );
    println!("{memory:.1}");
    for performance in left {
        println!("{:.6}", performance.loss);
    }
}

/// `length` tokens, other ones for each sequence.
fn row(sequence: usize, length: usize) -> Vec<u32> {
    let token = |at: usize| (1000 + 7919 * (sequence * LENGTH + at) % 40_000) as u32;
    (0..length).map(token).collect()
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

/// What is left without each head of these layers alone.
fn without_each(model: &Decoder, layers: &[usize], device: &Device) -> Vec<Performance> {
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for sequence in 0..ABLATED {
        let tokens = row(sequence, LENGTH + 1);
        inputs.push(tokens[..LENGTH].to_vec());
        targets.push(tokens[1..].to_vec());
    }
    let scored = vec![(0..LENGTH).map(|at| at >= LENGTH / 2).collect(); ABLATED];
    let behaviour =
        Behaviour::new(token_tensor(&inputs, device), targets, scored).only_where_scored();
    let heads: Vec<usize> = (0..model.n_heads()).collect();
    let mut left = Vec::new();
    let passed = at_each_layer(model, &behaviour, Ablation::Mean, layers, &mut |layer| {
        for measured in Cores::all().map_batches(&heads, 4, |heads| layer.without_each(heads)) {
            left.extend(measured?);
        }
        Ok(())
    });
    passed.expect("room for the activations of a layer");
    left
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// The median milliseconds of some repeats, after one that does not count.
fn median<T>(repeats: usize, look: impl Fn() -> T) -> f64 {
    let mut times = Vec::new();
    for _ in 0..=repeats {
        let started = Instant::now();
        black_box(look());
        times.push(milliseconds(started));
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The mebibytes of resident memory that this process had at most.
fn most_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or(f64::NAN) / 1024.0
}
