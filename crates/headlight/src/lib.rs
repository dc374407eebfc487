//! The programs: `train` and `inspect`, and `headlight`, which is both under one name.

pub mod command_line;
pub mod inspect;
pub mod memory;
pub mod seeds;
pub mod train;
