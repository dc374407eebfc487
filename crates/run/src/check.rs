//! Conditions that a configuration's numbers must meet.

use std::fmt::Display;

use crate::InputError;

/// `key = value: message` unless `holds`.
pub fn require(holds: bool, key: &str, value: impl Display, message: impl Display) -> Result<(), InputError> {
    if holds { Ok(()) } else { Err(InputError::new("config", message).key(key).value(value)) }
}

/// Above 0 and finite.
pub fn require_positive(key: &str, value: f64) -> Result<(), InputError> {
    require(value > 0.0 && value.is_finite(), key, value, "must be above 0 and finite")
}

/// A sensible number of tokens.
pub fn require_vocabulary(key: &str, value: usize) -> Result<(), InputError> {
    require((2..=65_536).contains(&value), key, value, "must be between 2 and 65536")
}
