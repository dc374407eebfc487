//! A training run on disk: what it was told to do, what it measured, what it learned.
//!
//! This crate knows files and rows, and nothing of tensors or models.

mod atomic;
mod config;
mod directory;
mod error;
mod parse;
mod patterns;
mod rows;

pub use atomic::write_atomically;
pub use config::{
    CheckpointConfig, Config, FeedForwardKind, LaggedMarkovConfig, LogConfig, ModelConfig, RepeatConfig, ScheduleKind,
    TaskConfig, TrainConfig,
};
pub use directory::{RunDirectory, Weights};
pub use error::InputError;
pub use patterns::PatternFile;
pub use rows::{
    EventRow, HeadName, HeadRow, HeadSummary, MetricsRow, NotAHead, Score, Scores, SequenceKind, Summary, TimingRow,
};
