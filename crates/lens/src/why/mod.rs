//! Why does a head look there, and what does it move? Scores and moved values, taken apart into what
//! each part of the model wrote.

mod cell;
mod grouping;
mod ingredient;
mod moved;
mod opened_head;
mod stream_reader;
mod turned;
mod why_head;

pub use cell::{Cell, Contrast, target_cells};
pub use ingredient::Ingredient;
pub use moved::{Moved, MovedFrom, Toward};
pub use opened_head::{OpenedHead, ScoreTerms};
pub use why_head::{CellMean, OfKey, Term, Why};
