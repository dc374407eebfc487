//! One line that says what was wrong with an input.

use std::{fmt, path::Path};

/// A file, key or value that cannot be right. Prints as one line:
/// `place: key = value: what is wrong`.
///
/// ```
/// use headlight_run::InputError;
///
/// let error = InputError::new("a.toml", "must be at least 1").key("train.steps").value("0");
/// assert_eq!(error.to_string(), "a.toml: train.steps = 0: must be at least 1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    place: String,
    key: Option<String>,
    value: Option<String>,
    message: String,
}

impl InputError {
    /// `message` about `place`, a file or an argument.
    #[must_use]
    pub fn new(place: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self {
            place: one_line(&place.to_string()),
            key: None,
            value: None,
            message: one_line(&message.to_string()),
        }
    }

    /// A file that could not be read or written.
    #[must_use]
    pub fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        Self::new(path.display(), format_args!("cannot {doing}: {error}"))
    }

    /// Names the key.
    #[must_use]
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(one_line(&key.to_string()));
        self
    }

    /// Names the value.
    #[must_use]
    pub fn value(mut self, value: impl fmt::Display) -> Self {
        self.value = Some(one_line(&value.to_string()));
        self
    }

    /// What it is about.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The key, if one was named.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The same error about another place.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = one_line(&place.to_string());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match (&self.key, &self.value) {
            (Some(key), Some(value)) => write!(f, "{key} = {value}: ")?,
            (Some(key), None) => write!(f, "{key}: ")?,
            (None, Some(value)) => write!(f, "{value}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for InputError {}

/// Whatever the input held, the message stays one readable line.
fn one_line(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(400)
        .collect();
    line.truncate(line.trim_end().len());
    line
}
