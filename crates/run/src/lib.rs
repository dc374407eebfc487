//! A training run on disk: its configuration, its measurements, its weights.
//!
#![doc = include_str!("../README.md")]

mod atomic;
pub mod config;
mod data_file;
pub mod directory;
mod error;
pub mod rows;
mod seeds;
pub mod untrusted;

// For everybody.
pub use config::{Config, reference, schema};
pub use directory::{Checkpoint, Follower, PatternFile, RunDirectory, Weights};
pub use error::{Error, ErrorKind};
pub use seeds::{NoSeeds, Seeds, SeedsSummary};

// The parts of these.
pub use atomic::write_atomically;
pub use config::{
    BlockOrder, CheckpointConfig, DecayGroup, FeedForwardKind, InitializationKind,
    InterchangeConfig, LogConfig, ModelConfig, NoTarget, NormKind, NormPlacement, OptimizerKind,
    PositionKind, QkNormKind, Quantity, ReadModel, RotaryScaling, ScheduleKind, StopWhen,
    TrainConfig, WatchedHeads,
};
pub use data_file::{DataFile, sha256};
// Every task's configuration, whichever there are.
pub use config::task::*;
pub use directory::{Best, CheckpointState, Data, FORMAT, LogLengths, NewRows, NoWeights, RunData};
pub use rows::{
    Answers, Breakdown, EventRow, HeadRow, HeadSummary, HeadsUse, Left, MetricsRow, Missed,
    Question, SequenceRow, Shortcut, Summary, TimingRow, UsesRow,
};

/// The version of the program, as runs carry it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
