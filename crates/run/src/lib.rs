//! A training run on disk: what it was told to do, what it measured, what it learned.
//!
//! This crate knows files and rows, and nothing of tensors or models.

mod atomic;
mod check;
mod checkpoint;
mod config;
mod directory;
mod error;
mod lock;
mod logs;
mod model_config;
mod parse;
mod patterns;
mod preset;
mod rows;
mod same;
mod task_config;

pub use atomic::write_atomically;
pub use checkpoint::{Best, Checkpoint, CheckpointState, Weights};
pub use config::{CheckpointConfig, Config, LogConfig, ScheduleKind, TrainConfig};
pub use directory::RunDirectory;
pub use error::InputError;
pub use logs::LogLengths;
pub use model_config::{FeedForwardKind, InitializationKind, ModelConfig, NormKind, NormPlacement, PositionKind};
pub use patterns::PatternFile;
pub use rows::{
    Answers, Breakdown, EventRow, HeadName, HeadRow, HeadSummary, MetricsRow, NotAHead, RelationScore, RelationScores,
    Score, Scores, SequenceKind, Summary, TimingRow,
};
pub use task_config::{
    DyckConfig, GrammarConfig, IclMarkovConfig, LaggedMarkovConfig, ModularAdditionConfig, RearrangeConfig,
    RecallConfig, RepeatConfig, TaskConfig, TextConfig, TextTokens,
};

/// The version of the program, as runs carry it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
