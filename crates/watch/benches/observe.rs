//! The time of one measurement of all heads. Run by `scripts/bench-cost`.
//!
//! `observe LAYERS,HEADS,WIDTH,LENGTH,VOCABULARY REPEATS` prints the median milliseconds of patterns,
//! scores and writings of every head on 64 sequences, and the process's peak memory in MB.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::{hint::black_box, time::Instant};

use burn::tensor::Device;
use headlight_residual::DecoderConfig;
use headlight_tasks::{Repeat, Use, batch};
use headlight_watch::{WATCHED_SEQUENCES, Watched};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [sizes, repeats] = &arguments[..] else {
        println!("usage: observe LAYERS,HEADS,WIDTH,LENGTH,VOCABULARY REPEATS");
        return;
    };
    let sizes: Result<Vec<usize>, _> = sizes.split(',').map(str::parse).collect();
    let &[n_layers, n_heads, d_model, n_ctx, vocabulary] = &sizes.expect("sizes are numbers")[..]
    else {
        panic!("five sizes: layers, heads, width, length, vocabulary");
    };
    let repeats: usize = repeats.parse().expect("a number of repeats");
    let device = Device::flex();
    let config = DecoderConfig {
        vocabulary,
        n_ctx,
        d_model,
        n_layers,
        n_heads,
        ..DecoderConfig::default()
    };
    let model = config.try_init(0, &device).expect("a model");
    let task = Repeat::probe((0..vocabulary as u32).collect(), n_ctx);
    let watched = Watched::probe(&batch(&task, 0, Use::Probe, 0, WATCHED_SEQUENCES));
    let mut times = Vec::new();
    for _ in 0..=repeats {
        let started = Instant::now();
        black_box(watched.observe(&model, &device)).expect("room for patterns");
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    println!(
        "{:.3} {}",
        times[times.len() / 2],
        peak_megabytes().unwrap_or(0)
    );
}

/// The largest memory this process has had so far, on Linux.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
