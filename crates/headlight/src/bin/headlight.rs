//! Both programs under one name, for people's PATH: `headlight train`, `headlight inspect`.

use std::process::ExitCode;

use headlight::Program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::new().run()
}
