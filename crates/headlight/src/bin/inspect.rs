//! Shows what the heads of a run learned.

use std::process::ExitCode;

use headlight::Program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::new().run_inspect()
}
