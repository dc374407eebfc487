//! Both programs under one name, for people's PATH: `headlight train`, `headlight inspect`.

use std::process::ExitCode;

use headlight::{Program, memory};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if std::env::args()
        .nth(1)
        .is_some_and(|program| program == "train")
    {
        memory::keep_freed();
    }
    Program::new().run()
}
