//! Lines for a person, on standard error.

use std::io::Write;

/// Prints a line on standard error, in one piece: several ranks share it.
pub fn say(line: &str) {
    // Who no longer reads it misses nothing else.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
