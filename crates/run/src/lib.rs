//! A training run on disk: what it was told to do, what it measured, what it learned.
//!
//! This crate knows files and rows, and nothing of tensors or models.

mod atomic;
pub mod config;
pub mod directory;
mod error;
pub mod rows;
mod seeds;
pub mod untrusted;

// For everybody.
pub use config::{Config, reference, schema};
pub use directory::{Checkpoint, Follower, PatternFile, RunDirectory, Weights};
pub use error::{Error, ErrorKind, InputError};
pub use seeds::{NoSeeds, Seeds, SeedsSummary};

// The parts of these.
pub use atomic::write_atomically;
pub use config::{
    CheckpointConfig, DecayGroup, DyckConfig, FeedForwardKind, GrammarConfig, IclMarkovConfig,
    InitializationKind, LaggedMarkovConfig, LogConfig, ModelConfig, ModularAdditionConfig,
    NoTarget, NoTextTokens, NormKind, NormPlacement, OptimizerKind, PositionKind, Quantity,
    RearrangeConfig, RecallConfig, RepeatConfig, ScheduleKind, StopWhen, TaskConfig, TextConfig,
    TextTokens, TrainConfig,
};
pub use directory::{Best, CheckpointState, FORMAT, LogLengths, NewRows};
pub use rows::{
    Answers, Breakdown, EventRow, HeadRow, HeadSummary, HeadsUse, Left, MetricsRow, Summary,
    TimingRow, UsesRow,
};

/// The version of the program, as runs carry it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
