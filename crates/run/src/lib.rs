//! A training run on disk: what it was told to do, what it measured, what it learned.
//!
//! This crate knows files and rows, and nothing of tensors or models.

mod atomic;
mod capped;
mod check;
mod config;
mod directory;
mod error;
mod model_config;
mod parse;
mod patterns;
mod preset;
mod rows;
mod seeds;
mod task_config;
mod tensorboard;
mod uses;
mod vocabulary;

pub use atomic::write_atomically;
pub use capped::read_capped;
pub use config::{CheckpointConfig, Config, LogConfig, ScheduleKind, TrainConfig};
pub use directory::{RunDirectory, Weights};
pub use error::InputError;
pub use model_config::{FeedForwardKind, InitializationKind, ModelConfig, NormKind, NormPlacement, PositionKind};
pub use patterns::PatternFile;
pub use rows::{
    Answers, Breakdown, EventRow, HeadName, HeadRow, HeadSummary, MetricsRow, NotAHead, RelationScore, RelationScores,
    Score, Scores, SequenceKind, Summary, TimingRow,
};
pub use seeds::{NoSeeds, Seeds, SeedsSummary, Spread};
pub use task_config::{
    DyckConfig, GrammarConfig, IclMarkovConfig, LaggedMarkovConfig, ModularAdditionConfig, RearrangeConfig,
    RecallConfig, RepeatConfig, TaskConfig, TextConfig, TextTokens,
};
pub use uses::{HeadsUse, Left, UsesRow};
