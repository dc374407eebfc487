//! Trains mini-transformers on tasks whose optimum is known and watches their heads form.
//!
//! The binaries `train` and `inspect` are thin: what they do is here.

mod adamw;
mod batch;
pub mod command_line;
mod cores;
pub mod device;
mod dropout;
mod evaluate;
mod gradients;
pub mod inspect;
pub mod interrupt;
pub mod model;
mod non_finite;
mod optimizer;
mod progress;
pub mod ranks;
mod schedule;
mod screen;
mod seeds;
mod step;
mod stopped;
pub mod tasks;
mod training;
mod uses;
mod watch;

pub use cores::Cores;
pub use dropout::StepDropout;
pub use evaluate::{Evaluation, evaluate, questions};
pub use optimizer::Memory;
pub use progress::View;
pub use schedule::learning_rate;
pub use seeds::{run_path, seeds_text, train_seeds};
pub use step::{Gradient, Update, Updater};
pub use stopped::Stopped;
pub use training::Training;
pub use watch::{Observation, WATCHED_SEQUENCES, Watched, patterns};
