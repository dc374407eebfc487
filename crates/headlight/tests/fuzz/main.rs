//! Whatever the bytes, a parser answers: it does not panic, and takes at most 16 MiB and four times
//! its input. So `headlight_run::untrusted` promises.
//!
//! Inputs are arbitrary bytes, and valid ones with a few changes. The same inputs come every time;
//! more, or others:
//!
//! ```sh
//! PROPTEST_CASES=6000 PROPTEST_RNG_SEED=1 cargo test --workspace --test fuzz -- --nocapture --test-threads 1
//! ```
//!
//! Every parser gets a multiple of `PROPTEST_CASES`, which is 256 without the variable: the
//! cheaper, the more. 6000 are 14 million inputs, and take five minutes.
//!
//! What a parser makes of small inputs says little about large ones: `large_*` are files of many
//! megabytes, made of what takes the most memory for its bytes.
#![allow(
    clippy::print_stdout,
    reason = "--nocapture shows how many inputs were tried"
)]

mod arrays;
mod attention_weights;
mod configuration;
mod harness;
mod large_json;
mod large_logs;
mod large_tensors;
mod memory;
mod mutation;
mod names;
mod run_files;
mod tensor_files;
mod text;
