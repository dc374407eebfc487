//! Conditions that a configuration's numbers must meet.

use std::fmt::Display;

use crate::{Error, untrusted::MOST_TOKENS};

/// `key = value: message` unless `holds`.
pub fn require(
    holds: bool,
    key: &str,
    value: impl Display,
    message: impl Display,
) -> Result<(), Error> {
    if holds {
        Ok(())
    } else {
        Err(Error::config(message).key(key).value(value))
    }
}

/// Above 0 and finite, also in the 32 bits that models compute in.
pub fn require_positive(key: &str, value: f64) -> Result<(), Error> {
    let single = value as f32;
    // As written in a program: 1e-300, not 300 zeros.
    let written = format_args!("{value:?}");
    require(
        single > 0.0 && single.is_finite(),
        key,
        written,
        "must be above 0 and finite in 32 bits",
    )
}

/// As many tokens as a vocabulary may have.
pub fn require_vocabulary(key: &str, value: usize) -> Result<(), Error> {
    require(
        (2..=MOST_TOKENS).contains(&value),
        key,
        value,
        format_args!("must be between 2 and {MOST_TOKENS}"),
    )
}
