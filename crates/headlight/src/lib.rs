//! The programs `train` and `inspect`.
//!
#![doc = include_str!("../README.md")]

pub mod command_line;
pub mod seeds;
