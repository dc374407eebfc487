//! Trains mini-transformers on tasks whose optimum is known and watches their heads form.
//!
//! The binaries `train` and `inspect` are thin: what they do is here.

mod batch;
pub mod command_line;
pub mod device;
mod evaluate;
mod gradients;
pub mod inspect;
pub mod model;
mod optimizer;
mod progress;
mod schedule;
mod screen;
mod seeds;
mod step;
pub mod tasks;
mod training;
mod uses;
mod watch;

pub use evaluate::{Evaluation, evaluate, questions};
pub use schedule::learning_rate;
pub use seeds::{run_path, seeds_text, train_seeds};
pub use step::{Update, Updater};
pub use training::Training;
pub use watch::{Observation, WATCHED_SEQUENCES, Watched, patterns};

/// The README's program compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
