//! Training of mini-transformers: the step, the optimizer, the run.
//!
#![doc = include_str!("../README.md")]

mod adamw;
mod dropout;
mod gradients;
pub mod interrupt;
mod non_finite;
mod optimizer;
mod progress;
pub mod ranks;
mod schedule;
mod step;
mod stopped;
mod training;

pub use dropout::StepDropout;
pub use optimizer::{Memory, MemoryError};
pub use progress::View;
pub use schedule::learning_rate;
pub use step::{Gradient, Update, Updater};
pub use stopped::{NotFinite, Stopped, UnusableCheckpoint};
pub use training::Training;
