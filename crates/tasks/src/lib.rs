//! Next-token tasks whose best predictor is known, text and tokenizers.
//!
#![doc = include_str!("../README.md")]

mod batch;
mod dyck;
mod grammar;
mod icl_markov;
mod lagged_markov;
mod losses;
mod markov;
mod marks;
mod modular_addition;
mod program;
mod prompt;
mod rearrange;
mod recall;
mod recut;
mod repeat;
mod row_key;
mod sequences;
mod symbols;
mod task;
mod tasks;
mod text;
mod tokenizer_json;
mod validation;
mod vocabulary;

pub use batch::batch;
pub use dyck::Dyck;
pub use grammar::{Grammar, Lexicon, LexiconError};
pub use headlight_run::{DataFile, Question, Shortcut};
pub use icl_markov::IclMarkov;
pub use lagged_markov::LaggedMarkov;
pub use losses::mean_scored;
pub use marks::Marks;
pub use modular_addition::ModularAddition;
pub use program::{Program, code as program_code};
pub use prompt::{encode_prompt, parse_stop};
pub use rearrange::{Rearrange, Rearrangement};
pub use recall::Recall;
pub use recut::Recut;
pub use repeat::Repeat;
pub use row_key::{RowKey, Use};
pub use sequences::Sequences;
pub use task::{Optimum, Sequence, Task, VALIDATION_SEQUENCES};
pub use tasks::{FromKeys, Tasks};
pub use text::{Cache, Text, TextTokenizer};
pub use tokenizer_json::tokenizer_json;
pub use validation::Validation;
pub use vocabulary::{NoPieces, Pieces, Stop, TextStream, UnknownToken, Vocabulary, train_bpe};

use headlight_run::{Error, TaskConfig};

/// The built-in task of a configuration.
///
/// # Errors
/// If the task is not built in, or a file that it reads is not what it must be.
pub fn build(config: &TaskConfig, n_ctx: usize, seed: u64) -> Result<Box<dyn Task>, Error> {
    Ok(match config {
        TaskConfig::Repeat(config) => Box::new(Repeat::new(config, n_ctx)),
        TaskConfig::LaggedMarkov(config) => Box::new(LaggedMarkov::new(config, n_ctx, seed)),
        TaskConfig::IclMarkov(config) => Box::new(IclMarkov::new(config, n_ctx)),
        TaskConfig::Recall(config) => Box::new(Recall::new(config, n_ctx)),
        TaskConfig::ModularAddition(config) => Box::new(ModularAddition::new(config, seed)),
        TaskConfig::Sort(config) => Box::new(Rearrange::new(config, Rearrangement::Sort)),
        TaskConfig::Reverse(config) => Box::new(Rearrange::new(config, Rearrangement::Reverse)),
        TaskConfig::Dyck(config) => Box::new(Dyck::new(config, n_ctx)),
        TaskConfig::Grammar(_) => Box::new(Grammar::new(Lexicon::english(), n_ctx)),
        TaskConfig::Program(config) => Box::new(Program::new(config, n_ctx)?),
        TaskConfig::Sequences(config) => Box::new(Sequences::open(config, n_ctx)?),
        TaskConfig::Text(config) => Box::new(Text::open(config, n_ctx)?),
        TaskConfig::Own(task) => return Err(task.not_built_in()),
    })
}
