//! The programs under one name, for people's PATH: `headlight train`, `headlight inspect`;
//! and `headlight compile`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use headlight::{
    command_line::{self, Failure},
    compile,
    inspect::{self, with_usage},
    train,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Train mini-transformers in seconds, and see and test what their attention heads learned.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    Train(Box<train::Arguments>),
    Inspect(Box<inspect::Arguments>),
    Compile(compile::Arguments),
}

fn main() -> ExitCode {
    command_line::run(arguments, run)
}

fn arguments() -> Arguments {
    const INSPECT: &str = "headlight inspect";
    let command = Arguments::command();
    let command = command.mut_subcommand("inspect", |inspect| with_usage(inspect, INSPECT));
    command_line::parse(command, INSPECT)
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.program {
        Program::Train(arguments) => train::run(arguments),
        Program::Inspect(arguments) => inspect::run(arguments),
        Program::Compile(arguments) => compile::run(arguments),
    }
}
