//! Shows what the heads of a run learned.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use headlight_report::Ink;
use headlight_run::{HeadName, InputError};
use headlight_trainer::{
    command_line::{self, Failure, print},
    inspect::Inspection,
};
use serde::Serialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Look at the attention heads of a run.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The run, for example runs/induction
    run: PathBuf,
    /// What to show [default: heads]
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// flex, ndarray, wgpu, vulkan or cuda
    #[arg(long, global = true, default_value = "flex")]
    device: String,
}

#[derive(Subcommand)]
enum What {
    /// Every head: its role, its scores, and what they are measured against
    Heads,
    /// One head's pattern as a heat map
    Pattern {
        /// The head, written L0H1
        #[arg(long)]
        head: HeadName,
        /// Token names with spaces between them, for a text some text [default: a sequence of the probe]
        #[arg(long)]
        prompt: Option<String>,
    },
    /// The trained model on its own task, or on the task of another configuration
    Evaluate {
        /// The configuration that names the other task
        #[arg(long)]
        on: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let inspection = Inspection::open(&arguments.run, &arguments.device).map_err(Failure::Input)?;
    let text = match (arguments.what.as_ref().unwrap_or(&What::Heads), arguments.json) {
        (What::Heads, false) => inspection.heads_text(),
        (What::Heads, true) => inspection.summary().and_then(|summary| to_json(&summary.heads)),
        (What::Pattern { head, prompt }, json) => {
            let pattern = inspection.pattern(*head, prompt.as_deref());
            pattern.and_then(|pattern| if json { to_json(&pattern) } else { Ok(pattern.draw(ink())) })
        }
        (What::Evaluate { on }, json) => {
            let elsewhere = inspection.evaluate(on.as_deref());
            elsewhere.and_then(|elsewhere| if json { to_json(&elsewhere) } else { Ok(elsewhere.text()) })
        }
    };
    print(&text.map_err(Failure::Input)?)
}

/// Colours where the terminal shows them and `NO_COLOR` does not forbid it, else characters.
fn ink() -> Ink {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => Ink::Characters,
        _ => Ink::Colour,
    }
}

fn to_json<T: Serialize>(value: &T) -> Result<String, InputError> {
    serde_json::to_string_pretty(value).map_err(|error| InputError::new("--json", error))
}
