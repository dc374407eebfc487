//! A training run on disk: its configuration, its measurements, its weights.
//!
#![doc = include_str!("../README.md")]

mod atomic;
mod capped;
mod check;
mod checkpoint;
mod config;
mod directory;
mod directory_logs;
mod error;
mod follow;
mod json;
mod lock;
mod log_rows;
mod logs;
mod model_config;
mod parse;
mod patterns;
mod preset;
mod reference;
mod rows;
mod same;
mod schema;
mod seeds;
mod stop_when;
mod task_config;
mod tensorboard;
mod token_budget;
mod train_config;
mod uses;
mod vocabulary;

pub use atomic::write_atomically;
pub use capped::read_capped;
pub use checkpoint::{Best, Checkpoint, CheckpointState, Weights};
pub use config::{CheckpointConfig, Config, LogConfig};
pub use directory::RunDirectory;
pub use error::InputError;
pub use follow::{Follower, NewRows};
pub use logs::LogLengths;
pub use model_config::{
    FeedForwardKind, InitializationKind, ModelConfig, NormKind, NormPlacement, PositionKind,
};
pub use patterns::PatternFile;
pub use reference::reference;
pub use rows::{
    Answers, Breakdown, EventRow, HeadRow, HeadSummary, MetricsRow, Summary, TimingRow,
};
pub use schema::schema;
pub use seeds::{NoSeeds, Seeds, SeedsSummary};
pub use stop_when::{Quantity, StopWhen};
pub use task_config::{
    DyckConfig, GrammarConfig, IclMarkovConfig, LaggedMarkovConfig, ModularAdditionConfig,
    RearrangeConfig, RecallConfig, RepeatConfig, TaskConfig, TextConfig, TextTokens,
};
pub use train_config::{DecayGroup, OptimizerKind, ScheduleKind, TrainConfig};
pub use uses::{HeadsUse, Left, UsesRow};

/// The version of the program, as runs carry it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
