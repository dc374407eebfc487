//! The parts that training and inspection share: models, devices, cores, evaluation, observation.
//!
#![doc = include_str!("../README.md")]

mod batch;
pub mod compiled;
mod cores;
pub mod device;
mod evaluate;
pub mod interchange;
pub mod interrupt;
mod known;
pub mod model;
mod model_files;
mod observation;
mod patterns;
mod rotary_scaling;
pub mod task;
pub mod uses;

pub use batch::{Batch, Right, count_right, count_scored};
pub use cores::{Cores, cores_of_machine};
pub use evaluate::{Evaluation, evaluate, evaluate_without};
pub use interchange::{Aligned, Interchange, Swapped};
pub use known::{Expected, Known, RoleVerdict};
pub use model_files::{ModelFiles, read_model};
pub use observation::{Observation, WATCHED_SEQUENCES, Watched, probe};
pub use patterns::{
    CarriedPatterns, LayerSeen, Patterns, each_carried_layer, each_layer, value_norms,
};

use headlight_residual::ActivationsError;
use headlight_run::Error;

/// Activations that memory does not hold, as one line.
#[must_use]
pub fn no_room(error: ActivationsError) -> Error {
    Error::new("activations", error)
}
