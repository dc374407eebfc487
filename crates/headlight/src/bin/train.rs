//! Trains the model of a configuration and writes the run.

use std::process::ExitCode;

use headlight::{Program, memory};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memory::keep_freed();
    Program::new().run_train()
}
