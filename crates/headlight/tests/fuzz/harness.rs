//! Putting inputs to a parser.

use std::cell::Cell;

use crate::memory::most_held_during;
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};

/// Parsers of text of a few bytes.
pub const CHEAP: u32 = 256;
/// Parsers of whole documents.
pub const MIDDLING: u32 = 32;
/// Parsers of files, which have to be written first.
pub const SLOW: u32 = 4;

/// How much memory a parser may take, whatever the input.
pub const ALLOWANCE: usize = 16 << 20;

/// Lets `parser` read an input of `length` bytes, which small inputs do not stand for, and watches
/// its memory.
pub fn watch(name: &str, length: usize, parser: impl FnOnce()) {
    let held = most_held_during(parser);
    let (mib, times) = (
        length as f64 / f64::from(1 << 20),
        held as f64 / length as f64,
    );
    println!("{name}: {mib:.1} MiB, at most {times:.2} times that held");
    assert!(
        held <= ALLOWANCE + 4 * length,
        "{name}: {held} bytes for an input of {length}"
    );
}

/// Puts `share · PROPTEST_CASES` of the inputs to `parser`, whose panics are failures, and watches
/// its memory.
pub fn fuzz(
    name: &str,
    share: u32,
    inputs: impl Strategy<Value = Vec<u8>>,
    parser: impl Fn(&[u8]),
) {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    config.cases = config.cases.saturating_mul(share);
    if let RngSeed::Random = config.rng_seed {
        config.rng_seed = RngSeed::Fixed(0);
    }
    let (count, most) = (Cell::new(0_usize), Cell::new(0));
    let outcome = TestRunner::new(config).run(&inputs, |input| {
        let held = most_held_during(|| parser(&input));
        count.set(count.get() + 1);
        most.set(most.get().max(held));
        prop_assert!(
            held <= ALLOWANCE + 4 * input.len(),
            "{held} bytes for an input of {}",
            input.len()
        );
        Ok(())
    });
    println!(
        "{name}: {} inputs, at most {} KiB held",
        count.get(),
        most.get().div_ceil(1024)
    );
    if let Err(failure) = outcome {
        panic!("{name}: {failure}");
    }
}
