//! The programs: `train` and `inspect`, and `headlight`, which has both and `compile` under one name.

pub mod command_line;
pub mod compile;
pub mod inspect;
pub mod seeds;
pub mod train;
