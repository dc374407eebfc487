//! Files that may be anything, and how much of them is read.
//!
//! # Threat
//! A run is a folder that people hand to each other. Whoever opens one did not write it. Each of
//! its files may be cut off, damaged or of another program, or made on purpose: nested or repeated
//! so that a few bytes ask for gigabytes.
//!
//! # Promise
//! Whatever the bytes, reading a file ends, and
//! 1. does not panic;
//! 2. takes at most 16 MiB of memory and four times the size of the file;
//! 3. refuses what is wrong in one line that names the file ([`Error`](crate::Error)).
//!
//! Every reader of every crate keeps it. `crates/headlight/tests/fuzz` holds them to it, with a
//! counting allocator.
//!
//! # How
//! Parsers of TOML and JSON take up to 100 times the bytes that they read. So a file, a line or a
//! list is as long as here at most. Each limit is far above what a run writes, and low enough that
//! what the worst file of that length takes stays within the promise.
//!
//! Limits that other rooms set for the same promise:
//! - `headlight-residual` reads folders of other tools, and knows nothing of runs: the headers of
//!   safetensors files, files of tensors and of JSON, and the parameters of a model;
//! - `headlight-report` reads questions from a browser: `MOST_QUESTION_BYTES`;
//! - the sizes in a configuration are bounded where they are checked, in [`config`](crate::config).
//!
//! Limits on what this program itself writes, shows or computes at once stand beside what they
//! bound: the bytes of a page, the tokens of a picture. They guard against nobody.

mod file;
mod json;
mod list;
mod log;

pub use file::read_at_most;
pub(crate) use json::from_json;
pub(crate) use list::list_of_at_most;
pub(crate) use log::{LogRow, rows_of};

/// `config.toml` and other configurations. TOML of many small values takes 100 times its bytes.
pub const MOST_CONFIG_BYTES: u64 = 128 << 10;

/// `format`: a number.
pub const MOST_FORMAT_BYTES: u64 = 64;

/// `summary.json`: that of 16 heads has 30 KB. Small parts of a hostile one take 10 times their
/// bytes.
pub const MOST_SUMMARY_BYTES: u64 = 2 << 20;

/// `seeds.json`: that of 1000 seeds has 600 KB. Short numbers take 16 times their bytes.
pub const MOST_SEEDS_BYTES: u64 = 1 << 20;

/// `vocabulary.json`, `data.json` and `report.html`: a report has at most 5 MB.
pub const MOST_TEXT_BYTES: u64 = 16 << 20;

/// `state.json` and `SHA256SUMS` of a checkpoint. Small parts of a hostile one take 10 times their
/// bytes.
pub const MOST_STATE_BYTES: u64 = 2 << 20;

/// Weights, and the tensors of an optimizer.
pub const MOST_TENSOR_BYTES: u64 = 8 << 30;

/// A file of patterns.
pub const MOST_PATTERN_BYTES: u64 = 1 << 30;

/// The header of a file of patterns: that of two tensors is short, and a long one takes many times
/// its bytes.
pub const MOST_PATTERN_HEADER_BYTES: u64 = 64 << 10;

/// Sequences in a file of patterns: each takes memory beside its tokens.
pub const MOST_PATTERN_SEQUENCES: usize = 65_536;

/// A log, or a file of sequences. A row of `heads.jsonl` has 1000 bytes, with relations 1800: 16 heads measured 500 times
/// on both kinds of sequences fill 30 MB.
pub const MOST_LOG_BYTES: u64 = 128 << 20;

/// Files that a task read. What is said of each takes many times its bytes.
pub const MOST_FILES: usize = 65_536;

/// Bytes of a growing log that are read in one look; the rest comes with the next.
pub const MOST_LOOK_BYTES: u64 = 64 << 20;

/// A line of a log or of a file of sequences: what 500 heads are used as takes 300 KB. While it is read, a hostile one takes
/// 15 times its bytes.
pub const MOST_LINE_BYTES: usize = 512 << 10;

/// Rows may take this many times the bytes of their log; a run's own take at most two and a half
/// times.
pub const MEMORY_A_LOGGED_BYTE: usize = 3;

/// Rows may take this many bytes however short their log is.
pub const ROOM_FOR_ROWS: usize = 8 << 20;

/// Bytes between two quotation marks of JSON. A message about text in a wrong place holds it many
/// times over, and a list of short numbers takes many times its bytes.
pub const MOST_UNQUOTED_BYTES: usize = 256 << 10;

/// Tokens of a vocabulary: as many names as fit into the 16 MiB that reading them may take, since
/// each takes 24 bytes beside its own, and while their list grows as much again. The tokenizers of
/// large language models have 32,000 to 262,145.
pub const MOST_TOKENS: usize = 300_000;

/// A `tokenizer.json`: that of 262,145 tokens with their merges has 33 MB.
/// The exception to the promise: the tables of the library `tokenizers` take many times its bytes,
/// so a large one takes more than four times.
pub const MOST_TOKENIZER_BYTES: u64 = 48 << 20;

/// Parameters of a model: far above any mini-transformer.
pub const MOST_PARAMETERS: usize = 1 << 30;

/// A model may have this many parameters however short its weights are: what is wrong with a small
/// model's weights is then named.
pub const ROOM_FOR_PARAMETERS: usize = 1 << 20;
