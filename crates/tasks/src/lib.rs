//! What is learned: tasks whose optimum is known.

mod batch;
mod build;
mod dyck;
mod grammar;
mod icl_markov;
mod lagged_markov;
mod losses;
mod markov;
mod modular_addition;
mod prompt;
mod question;
mod rearrange;
mod recall;
mod repeat;
mod row_key;
mod symbols;
mod task;
mod text;

pub use batch::{batch, validation};
pub use build::build;
pub use dyck::Dyck;
pub use grammar::{Grammar, Lexicon, LexiconError};
pub use icl_markov::IclMarkov;
pub use lagged_markov::LaggedMarkov;
pub use losses::{mean_known, mean_scored, shortcut_loss};
pub use modular_addition::ModularAddition;
pub use prompt::{encode_prompt, spelled, token_id};
pub use question::{Marks, Question};
pub use rearrange::{Rearrange, Rearrangement};
pub use recall::Recall;
pub use repeat::Repeat;
pub use row_key::{RowKey, Use};
pub use task::{Optimum, Sequence, Shortcut, Task, VALIDATION_SEQUENCES};
pub use text::Text;
