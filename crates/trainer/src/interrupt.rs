//! Signals that ask training to stop: `SIGINT` (Ctrl-C), `SIGTERM` and `SIGHUP`.

use std::sync::atomic::{AtomicBool, Ordering};

use headlight_report::say;
use headlight_run::{Error, ErrorKind};

/// The exit code of a run that was asked to stop: what shells give for `SIGINT`.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal asks training to stop after its step, and a second one ends the process at
/// once.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn listen() -> Result<(), Error> {
    on_signal(|is_first| {
        if !is_first {
            std::process::exit(EXIT_CODE.into());
        }
    })
}

/// [`listen`] in one of several ranks: the first signal prints `line`, if there is one, whatever
/// training waits for, and later ones change nothing. `mpirun` asks again whenever a rank has
/// ended, and itself ends those that take too long.
///
/// # Errors
/// As [`listen`].
pub fn listen_as_rank(line: Option<&'static str>) -> Result<(), Error> {
    on_signal(move |is_first| {
        if let Some(line) = line.filter(|_| is_first) {
            say(line);
        }
    })
}

fn on_signal(mut then: impl FnMut(bool) + Send + 'static) -> Result<(), Error> {
    let handler = move || then(!REQUESTED.swap(true, Ordering::Relaxed));
    ctrlc::set_handler(handler)
        .map_err(|error| Error::because(ErrorKind::Internal, "signals", error))
}

/// Whether a signal asked training to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
