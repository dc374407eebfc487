//! Trains the model of a configuration and writes the run.

use std::process::ExitCode;

use headlight::Program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::new().run_train()
}
