//! Lines for a person, on standard error.

use std::io::Write;

use crate::{prose::wrapped, terminal::columns_of_standard_error};

/// Prints a line on standard error, in one piece: several ranks share it.
///
/// `eprintln!` panics when the line cannot be written, because its reader has gone or the disk is
/// full. This function loses the line and nothing else.
pub fn say(line: &str) {
    // Who no longer reads it misses nothing else.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// [`say`], broken between words where a terminal is too narrow; lines after the first begin
/// `indent` columns further to the right.
pub fn say_wrapped(line: &str, indent: usize) {
    match columns_of_standard_error() {
        Some(columns) => say(&wrapped(line, columns, indent)),
        None => say(line),
    }
}
