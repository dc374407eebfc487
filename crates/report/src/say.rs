//! Lines for a person, on standard error.

use std::io::Write;

/// Prints a line on standard error, in one piece: several ranks share it.
///
/// `eprintln!` panics when the line cannot be written, because its reader has gone or the disk is
/// full. This function loses the line and nothing else.
pub fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
