//! Printable names for characters and bytes.

/// The name of the space, which would not be seen.
const SPACE: char = '␣';

/// A printable name that no other character has: `␣` for the space, `\n`, `\u{301}`, … for what has
/// no picture of its own, else the character.
#[must_use]
pub fn character_name(c: char) -> String {
    match c {
        ' ' => SPACE.to_string(),
        SPACE => c.escape_unicode().to_string(),
        '\'' | '"' => c.to_string(),
        // Escapes what is not printable, and the backslash.
        c => c.escape_debug().to_string(),
    }
}

/// The character of a name.
#[must_use]
pub fn named_character(name: &str) -> Option<char> {
    let mut characters = name.chars();
    let first = characters.next()?;
    let escaped = characters.as_str();
    match (first, escaped) {
        (SPACE, "") => Some(' '),
        (c, "") => Some(c),
        ('\\', "n") => Some('\n'),
        ('\\', "r") => Some('\r'),
        ('\\', "t") => Some('\t'),
        ('\\', "0") => Some('\0'),
        ('\\', "\\") => Some('\\'),
        ('\\', code) => {
            let digits = code.strip_prefix("u{")?.strip_suffix('}')?;
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)
        }
        _ => None,
    }
}

/// A word's own spelling, or the name of the mark that it is.
#[must_use]
pub fn word_name(word: &str) -> String {
    let mut characters = word.chars();
    match (characters.next(), characters.next()) {
        (Some(mark), None) => character_name(mark),
        _ => word.to_owned(),
    }
}

/// The word of a name.
#[must_use]
pub fn named_word(name: &str) -> String {
    named_character(name).map_or_else(|| name.to_owned(), String::from)
}

/// The name of a byte: of the character if it is ASCII, else `0xE2`.
#[must_use]
pub fn byte_name(byte: u8) -> String {
    if byte.is_ascii() {
        character_name(char::from(byte))
    } else {
        format!("0x{byte:02X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_printable_and_go_both_ways() {
        let mut names = std::collections::HashSet::new();
        for c in ('\0'..='\u{3000}').chain(['🦀', '\u{10ffff}']) {
            let name = character_name(c);
            assert!(
                !name.chars().any(|c| c.is_control() || c == ' '),
                "{name:?}"
            );
            assert_eq!(named_character(&name), Some(c), "{name}");
            assert!(names.insert(name));
        }
    }
}
