//! What both binaries share: logs, and the exit code that says whose fault it was.

use std::{path::PathBuf, process::ExitCode};

use anstream::{AutoStream, ColorChoice};
use clap::{ArgMatches, Command, error};
use headlight_inspect::AnyVerb;
use headlight_report::say_wrapped;
use headlight_run::{Error, ErrorKind};
use headlight_trainer::{Stopped, interrupt};
use tracing_subscriber::EnvFilter;

use crate::inspect::run_behind_verb;

/// Writes logs to standard error; `RUST_LOG` chooses which.
pub fn log() {
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
}

/// Reads the arguments of a program that is `inspect` or has it as a subcommand, called `inspect`.
/// Whoever writes RUN behind the verb learns where it belongs.
#[must_use]
pub fn parse(mut command: Command, verbs: &[AnyVerb], inspect: &str) -> ArgMatches {
    match command.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => match run_behind_verb(&error, verbs, inspect) {
            Some(message) => command
                .error(error::ErrorKind::UnknownArgument, message)
                .exit(),
            None => error.exit(),
        },
    }
}

/// The exit code of a program; why it failed is said in one line.
#[must_use]
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Why a program stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input was wrong, or the machine failed: the error's kind tells.
    #[error(transparent)]
    Run(#[from] Error),
    /// Training stopped before its end.
    #[error(transparent)]
    Training(#[from] Stopped),
    /// A signal came while runs of several seeds were waiting.
    #[error("{}: by a signal before {left} of its runs; --resume goes on with them", out.display())]
    Interrupted {
        /// The folder of all runs.
        out: PathBuf,
        /// The runs that were not begun.
        left: usize,
    },
    /// Other ranks failed.
    #[error(
        "rank {rank}: {failed} of {size} ranks did not come to their end; --resume goes on with what they left"
    )]
    OtherRanks {
        /// This rank.
        rank: usize,
        /// The ranks that failed.
        failed: usize,
        /// All ranks.
        size: usize,
    },
}

impl Failure {
    /// 2 where the input was wrong, 130 after a signal, 1 where anything failed while running.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(error) | Self::Training(Stopped::Refused(error))
                if error.kind().is_wrong_input() =>
            {
                2
            }
            Self::Training(Stopped::Interrupted { .. }) | Self::Interrupted { .. } => {
                interrupt::EXIT_CODE
            }
            Self::Run(error) if error.kind() == ErrorKind::Interrupted => interrupt::EXIT_CODE,
            Self::Run(_) | Self::Training(_) | Self::OtherRanks { .. } => 1,
        }
    }

    /// Prints the one line.
    fn report(&self) {
        let kind = if self.exit_code() == interrupt::EXIT_CODE {
            "stopped"
        } else {
            "error"
        };
        say_wrapped(&format!("{kind}: {self}"), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error as _, io, path::Path};

    use headlight_run::Config;
    use headlight_trainer::NotFinite;

    use super::*;

    fn full_disk() -> Error {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Error::io(Path::new("run/heads.jsonl"), "append", full)
    }

    #[test]
    fn the_exit_code_follows_from_the_kind_of_error() {
        let wrong_key = Config::parse("sede = 3", "a.toml", &[]).unwrap_err();
        let missing = Config::load(Path::new("nowhere.toml"), &[]).unwrap_err();
        let no_number = NotFinite {
            run: "run".into(),
            step: 2,
            loss: f64::NAN,
            gradient_norm: 1.0,
            tensor: "the logits".to_owned(),
            seed: 0,
            row: None,
        };
        let interrupted = Stopped::Interrupted {
            run: "run".into(),
            step: 2,
        };
        let other_version = Error::of(ErrorKind::Version, "run", "was begun with version 9");
        for (failure, code) in [
            (wrong_key.into(), 2),
            (missing.into(), 2),
            (Stopped::Refused(other_version).into(), 2),
            (full_disk().into(), 1),
            (Stopped::Failed(full_disk()).into(), 1),
            (Stopped::NotFinite(no_number).into(), 1),
            (Stopped::Writer("panicked").into(), 1),
            (interrupted.into(), 130),
            (
                Error::of(ErrorKind::Interrupted, "model", "by a signal").into(),
                130,
            ),
        ] {
            let failure: Failure = failure;
            assert_eq!(failure.exit_code(), code, "{failure}");
        }
    }

    #[test]
    fn the_cause_stays_with_the_error_from_the_disk_to_the_program() {
        let failure = Failure::from(Stopped::from(full_disk()));
        let cause = failure.source().unwrap().downcast_ref::<io::Error>();
        assert_eq!(cause.unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
