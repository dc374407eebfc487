//! Signals that ask training to stop: `SIGINT` (Ctrl-C), `SIGTERM` and `SIGHUP`.

use std::sync::atomic::{AtomicBool, Ordering};

use headlight_run::InputError;

/// The exit code of a run that was asked to stop: what shells give for `SIGINT`.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal asks training to stop after its step, and a second one ends the process at once.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn listen() -> Result<(), InputError> {
    listen_saying("")
}

/// [`listen`], and the first signal prints `line`, if there is one, whatever training waits for.
///
/// # Errors
/// As [`listen`].
pub fn listen_saying(line: &'static str) -> Result<(), InputError> {
    let handler = move || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
        if !line.is_empty() {
            eprintln!("{line}");
        }
    };
    ctrlc::set_handler(handler).map_err(|error| InputError::new("signals", error))
}

/// Whether a signal asked training to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
