//! The programs `train` and `inspect`.

pub mod command_line;
pub mod seeds;
