//! JSON that may be anything.

use std::fmt::Display;

use serde::de::DeserializeOwned;

use super::MOST_UNQUOTED_BYTES;
use crate::{Error, ErrorKind};

/// Parses the JSON of the file `place`, whose text and lists of numbers are no longer than any that
/// a run writes.
///
/// # Errors
/// Says where the JSON is wrong.
pub fn from_json<T: DeserializeOwned>(place: impl Display, bytes: &[u8]) -> Result<T, Error> {
    if longest_without_quote(bytes) > MOST_UNQUOTED_BYTES {
        let message = format_args!("has text or a list of more than {MOST_UNQUOTED_BYTES} bytes");
        return Err(Error::of(ErrorKind::TooLarge, place, message));
    }
    serde_json::from_slice(bytes).map_err(|error| Error::because(ErrorKind::Damaged, place, error))
}

fn longest_without_quote(bytes: &[u8]) -> usize {
    let (mut longest, mut length, mut escaped) = (0, 0, false);
    for &byte in bytes {
        length = if byte == b'"' && !escaped {
            0
        } else {
            length + 1
        };
        escaped = byte == b'\\' && !escaped;
        longest = longest.max(length);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_quotation_mark_ends_no_text() {
        assert_eq!(longest_without_quote(br#"{"a":"bc"}"#), 2);
        assert_eq!(longest_without_quote(br#"["\"\"\\","a"]"#), 6);
    }

    #[test]
    fn text_as_long_as_any_is_read_and_longer_text_is_not() {
        let json = |length: usize| format!("\"{}\"", "a".repeat(length));
        assert_eq!(
            from_json::<String>("a.json", json(MOST_UNQUOTED_BYTES).as_bytes())
                .unwrap()
                .len(),
            MOST_UNQUOTED_BYTES
        );
        let longer = json(MOST_UNQUOTED_BYTES + 1);
        let error = from_json::<String>("a.json", longer.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.json: has text or a list of more than 262144 bytes"
        );
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }
}
