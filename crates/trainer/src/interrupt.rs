//! Signals that ask training to stop.

use headlight_report::say;
use headlight_run::Error;
use headlight_watch::interrupt::listen_with;
pub use headlight_watch::interrupt::{EXIT_CODE, listen, requested};

/// [`listen`] in one of several ranks: the first signal prints `line`, if there is one, whatever
/// training waits for, and later ones change nothing. `mpirun` asks again whenever a rank has
/// ended, and itself ends those that take too long.
///
/// # Errors
/// As [`listen`].
pub fn listen_as_rank(line: Option<&'static str>) -> Result<(), Error> {
    listen_with(move |is_first| {
        if let Some(line) = line.filter(|_| is_first) {
            say(line);
        }
    })
}
