//! The parts that training and inspection share: models, devices, cores, evaluation, observation.
//!
#![doc = include_str!("../README.md")]

mod batch;
mod cores;
pub mod device;
mod evaluate;
pub mod model;
mod observation;
pub mod uses;

pub use batch::{Batch, Right, count_right, count_scored, summed_loss};
pub use cores::{Cores, cores_of_machine};
pub use evaluate::{Evaluation, evaluate, evaluate_without, questions};
pub use observation::{
    CarriedPattern, Observation, WATCHED_SEQUENCES, Watched, carried_patterns, ids, patterns,
    value_norms,
};
