//! Trains the model of a configuration and writes the run.

use std::process::ExitCode;

use clap::Parser;
use headlight::{command_line, train};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command_line::run(train::Arguments::parse, train::run)
}
