//! Time and memory of causal attention, forward and backward: 8 heads of width 64.
//!
//! `cargo bench --workspace --profile dev --bench attention -- 4096 5` prints the median
//! milliseconds of 5 runs at length 4096 and, on Linux, by how many MB the process grew beyond the
//! inputs. Run by `scripts/bench`; `lengths` compares with Burn's own.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its table"
)]

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use headlight_attention::{AttentionOptions, Mask, attention};

/// As in the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let [length, runs] = numbers[..] else {
        println!("usage: attention LENGTH RUNS");
        return;
    };
    let device = Device::flex().autodiff();
    let leaf = || {
        Tensor::<4>::random([1, 8, length, 64], Distribution::Normal(0.0, 1.0), &device)
            .require_grad()
    };
    let (query, key, value) = (leaf(), leaf(), leaf());
    let before = peak_kilobytes();
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let started = Instant::now();
            let options = AttentionOptions::default();
            let output = attention(
                query.clone(),
                key.clone(),
                value.clone(),
                &Mask::causal(),
                &options,
            );
            let gradients = output.sum().backward();
            assert!(query.grad(&gradients).is_some());
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let grown = peak_kilobytes()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before) / 1024);
    println!("{:.2} {}", times[times.len() / 2], grown.unwrap_or(0));
}

/// The largest memory this process has had so far.
fn peak_kilobytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
