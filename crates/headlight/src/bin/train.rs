//! Trains the model of a configuration and writes the run.

use std::process::ExitCode;

use clap::Parser;
use headlight::{command_line, memory, train};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memory::keep_freed();
    command_line::run(train::Arguments::parse, train::run)
}
