//! Both programs under one name, for people's PATH: `headlight train`, `headlight inspect`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use headlight::{
    command_line::{self, Failure},
    inspect::{self, with_usage},
    memory, train,
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
        Program::Train(arguments) => {
            memory::keep_freed();
            train::run(arguments)
        }
        Program::Inspect(arguments) => Ok(inspect::run(arguments)?),
    }
}
