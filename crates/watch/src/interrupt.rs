//! Signals that ask a long computation to stop: `SIGINT` (Ctrl-C), `SIGTERM` and `SIGHUP`.

use std::sync::atomic::{AtomicBool, Ordering};

use headlight_run::{Error, ErrorKind};

/// The exit code of a program that was asked to stop: what shells give for `SIGINT`.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal asks to stop after the part that is computed, and a second one ends the
/// process at once.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn listen() -> Result<(), Error> {
    listen_with(|is_first| {
        if !is_first {
            std::process::exit(EXIT_CODE.into());
        }
    })
}

/// [`listen`], where `then` says what a signal does besides, be it the first one or not.
///
/// # Errors
/// As [`listen`].
pub fn listen_with(mut then: impl FnMut(bool) + Send + 'static) -> Result<(), Error> {
    let handler = move || then(!REQUESTED.swap(true, Ordering::Relaxed));
    ctrlc::set_handler(handler)
        .map_err(|error| Error::because(ErrorKind::Internal, "signals", error))
}

/// Whether a signal asked to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
