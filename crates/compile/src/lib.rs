//! Programs compiled into the weights of a transformer whose circuit is known.
//!
#![doc = include_str!("../README.md")]

mod array;
mod compile;
mod compiled;
mod error;
mod interpret;
mod line;
mod numbers;
mod program;
pub mod programs;
mod question;
mod random;
mod reading;
mod select;
mod stage;
mod steps;
mod truth;
mod variable;

pub use array::Array;
pub use compile::ANSWER_LOGIT;
pub use compiled::{Compiled, Shape};
pub use error::Error;
pub use interpret::Trace;
pub use program::{Draft, Layout, Program, SEPARATOR, START};
pub use question::Question;
pub use random::random_program;
pub use select::{Category, Choice, Number, Selector, Value, select};
pub use truth::{Edge, Input, Part, Place, Truth};
