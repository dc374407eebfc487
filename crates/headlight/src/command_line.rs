//! What both binaries share: logs, and the exit code that says whose fault it was.

use std::{io::Write, process::ExitCode};

use anstream::{AutoStream, ColorChoice};
use headlight_report::say_wrapped;
use headlight_run::InputError;
use headlight_trainer::{Stopped, interrupt};
use tracing_subscriber::EnvFilter;

/// A program: its arguments, its logs on standard error (`RUST_LOG` chooses which), its exit code.
pub fn run<A>(
    arguments: impl FnOnce() -> A,
    program: impl FnOnce(&A) -> Result<(), Failure>,
) -> ExitCode {
    // Pictures warn of every letter that the first font lacks and the second has.
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,usvg=error"));
    // Colours are for a terminal that shows them. A warning that cannot be written is lost; it must
    // not end the program, as the message about it would with `eprintln!`.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(AutoStream::choice(&std::io::stderr()) != ColorChoice::Never)
        .log_internal_errors(false)
        .init();
    match program(&arguments()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Why a program stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input was wrong: exit code 2.
    #[error("{0}")]
    Input(InputError),
    /// It failed while running: exit code 1.
    #[error("{0}")]
    Running(InputError),
    /// A signal stopped it: exit code 130.
    #[error("{0}")]
    Interrupted(InputError),
}

impl Failure {
    /// Prints the one line and gives the exit code.
    fn report(&self) -> ExitCode {
        let kind = if matches!(self, Self::Interrupted(_)) {
            "stopped"
        } else {
            "error"
        };
        say_wrapped(&format!("{kind}: {self}"), 0);
        ExitCode::from(match self {
            Self::Input(_) => 2,
            Self::Running(_) => 1,
            Self::Interrupted(_) => interrupt::EXIT_CODE,
        })
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Interrupted(reason) => Self::Interrupted(reason),
            Stopped::Failed(reason) => Self::Running(reason),
        }
    }
}

/// Prints a result on standard output. A reader that has gone away (`| head`) is no failure.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    match writeln!(anstream::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Running(InputError::new("standard output", error)))
        }
        _ => Ok(()),
    }
}
