//! The time of a training step: batch, forward, backward, clipping, AdamW. Run by `scripts/bench`
//! and `scripts/bench-device`.
//!
//! `step toy 50` prints milliseconds a step (the median of 50), the process's peak memory in MB,
//! and the GFLOP of the step's matrix products. `step toy 50 burn` does the same with the modules
//! of Burn's `nn`, `step toy 50 products` only the matrix products of Headlight's step;
//! `step toy 50 headlight wgpu` runs on another device. `step 6,6,384,256,4,50257 10` is a model with
//! feed-forward of any sizes: layers, heads, width, length, batch, vocabulary.
//! `step attention-4096 5` prints milliseconds of the matrix products alone of causal attention over
//! 4096 tokens, forward and backward, 8 heads of width 64.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its table"
)]

mod burn_nn;
mod headlight;
mod products;

use std::time::Instant;

use headlight_watch::device;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A decoder's sizes. `scripts/bench_torch.py` has the same.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    layers: usize,
    heads: usize,
    width: usize,
    length: usize,
    feed_forward: bool,
    batch: usize,
    /// The number of different tokens.
    vocabulary: usize,
}

fn sizes_of(name: &str) -> Option<Sizes> {
    let ([layers, heads, width, length], feed_forward, batch) = match name {
        "toy" => ([2, 4, 64, 64], false, 64),
        "S" => ([2, 4, 64, 64], true, 64),
        "M" => ([4, 4, 128, 64], true, 12),
        "L" => ([6, 6, 384, 256], true, 4),
        _ => return sizes_from_numbers(name),
    };
    Some(Sizes {
        layers,
        heads,
        width,
        length,
        feed_forward,
        batch,
        vocabulary: 64,
    })
}

fn sizes_from_numbers(text: &str) -> Option<Sizes> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let [layers, heads, width, length, batch, vocabulary] = numbers.ok()?.try_into().ok()?;
    Some(Sizes {
        layers,
        heads,
        width,
        length,
        feed_forward: true,
        batch,
        vocabulary,
    })
}

impl Sizes {
    /// Of the matrix products in forward and backward: a product of `[n, a]` and `[a, b]` has
    /// `2·n·a·b`, its two gradients as many each. Causal attention is counted by the pairs it
    /// needs.
    fn gigaflops(self) -> f64 {
        let Self {
            layers,
            width,
            length,
            batch,
            vocabulary,
            ..
        } = self;
        let tokens = (batch * length) as f64;
        let matrices =
            if self.feed_forward { 12 } else { 4 } * layers * width * width + width * vocabulary;
        let pairs = tokens * (length as f64 + 1.0) / 2.0;
        let attention = 2.0 * pairs * (layers * width) as f64;
        3.0 * 2.0 * (matrices as f64 * tokens + attention) / 1e9
    }
}

/// As the program `train`.
#[allow(
    unsafe_code,
    reason = "the allocator's options are set by a C function"
)]
fn keep_freed_memory() {
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the option is a number; it may be set at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) }
}

const USAGE: &str = "usage: step toy|S|M|L|SIZES STEPS [headlight|burn|products] [DEVICE], \
                     or step attention-LENGTH STEPS";

fn main() {
    keep_freed_memory();
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(Ok(steps)) = arguments.get(1).map(|steps| steps.parse::<usize>()) else {
        println!("{USAGE}");
        return;
    };
    if let Some(length) = arguments[0].strip_prefix("attention-") {
        let length = length.parse().expect("a number of tokens");
        let mut step = products::attention_stepper(length, 2);
        println!("{:.3}", median(steps, &mut step));
        return;
    }
    let Some(sizes) = sizes_of(arguments[0]) else {
        println!("{USAGE}");
        return;
    };
    let name = arguments.get(3).copied().unwrap_or("flex");
    let device = match device::open(name) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    // A GPU works on a whole batch at once; two cores work on a half each.
    let shards = if name == "flex" { 2 } else { 1 };
    let mut step: Box<dyn FnMut(usize)> = match arguments.get(2) {
        Some(&"burn") => Box::new(burn_nn::stepper(sizes, &device)),
        Some(&"products") => Box::new(products::stepper(sizes, shards)),
        _ => Box::new(headlight::stepper(sizes, shards, &device)),
    };
    let milliseconds = median(steps, |number| {
        step(number);
        // A GPU computes ahead: a step is over when everything it asked for is there.
        device.sync().expect("the device finishes the step");
    });
    println!(
        "{milliseconds:.3} {} {:.3}",
        peak_megabytes().unwrap_or(0),
        sizes.gigaflops()
    );
}

/// The median milliseconds of some steps.
fn median(steps: usize, mut step: impl FnMut(usize)) -> f64 {
    // The first steps ask for memory. Of few long steps, one is enough.
    let unmeasured = steps.min(3);
    let mut times: Vec<f64> = (0..steps + unmeasured)
        .map(|number| {
            let started = Instant::now();
            step(number);
            started.elapsed().as_secs_f64() * 1e3
        })
        .skip(unmeasured)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The largest memory this process has had so far, on Linux.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
