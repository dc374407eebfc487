//! Training of mini-transformers: the step, the optimizer, the run.
//!
#![doc = include_str!("../README.md")]

mod adamw;
mod dropout;
mod events;
mod follow;
mod gradients;
mod interchange;
pub mod interrupt;
mod live;
mod measure;
mod moments;
mod non_finite;
mod optimizer;
mod progress;
pub mod ranks;
mod restore;
mod schedule;
mod setup;
mod step;
mod stopped;
mod training;
mod watched_heads;
mod writer;

pub use dropout::StepDropout;
pub use interchange::StepSwaps;
pub use optimizer::{Memory, MemoryError};
pub use progress::View;
pub use schedule::learning_rate;
pub use setup::Setup;
pub use step::{Gradient, Pass, Update, Updater};
pub use stopped::{NotFinite, Stopped, UnusableCheckpoint};
