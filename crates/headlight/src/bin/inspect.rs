//! Shows what the heads of a run learned.

use std::process::ExitCode;

use headlight::{command_line, inspect};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command_line::run(inspect::arguments, inspect::run)
}
