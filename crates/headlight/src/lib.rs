//! The programs: `train` and `inspect`, and `headlight`, which has both and `compile` under one name.
//!
//! [`Program`] is a program of one's own that has them too, with tasks, measures and verbs added;
//! [`own`] has the traits that these implement.

pub mod command_line;
pub mod compile;
pub mod inspect;
pub mod memory;
mod program;
pub mod seeds;
pub mod train;

pub use program::Program;

/// What tasks, measures and verbs of one's own are made from.
pub mod own {
    pub use headlight_heads::{HeadName, Relation, TargetKeys};
    pub use headlight_inspect::{ModelParts, Need, Output, Subject, Verb};
    pub use headlight_report::{Printout, Table};
    pub use headlight_run::Error;
    pub use headlight_tasks::{FromKeys, Optimum, RowKey, Sequence, Shortcut, Task, Vocabulary};
}
