//! Printable names for characters, words and bytes.

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
        ('\\', "") => None,
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

/// A printable name that no other word has: as it is written, but for what cannot be seen, which is
/// spelled as in [`character_name`]. Marks are seen on the letter before them.
#[must_use]
pub fn word_name(word: &str) -> String {
    let mut name = String::new();
    for (at, c) in word.char_indices() {
        if at > 0 && is_mark(c) {
            name.push(c);
        } else {
            name += &character_name(c);
        }
    }
    name
}

/// The word of a name.
#[must_use]
pub fn named_word(name: &str) -> Option<String> {
    let mut word = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match rest.strip_prefix("\\u{") {
            Some(code) => rest.len() - code.len() + code.find('}')? + 1,
            None if first == '\\' => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
            None => first.len_utf8(),
        };
        word.push(named_character(&rest[..end])?);
        rest = &rest[end..];
    }
    (!word.is_empty()).then_some(word)
}

/// Whether `c` is drawn on the character before it. Escapes of a whole string leave it as it is,
/// but for the first place.
fn is_mark(c: char) -> bool {
    let alone = c.escape_debug().count() > 1;
    let after_letter = format!("a{c}").escape_debug().count() == 2;
    alone && after_letter
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

    #[test]
    fn names_of_words_are_printable_and_go_both_ways() {
        for (word, expected) in [
            ("lamp", "lamp"),
            (" lamp", "␣lamp"),
            ("\r\n", "\\r\\n"),
            (" ␣", "␣\\u{2423}"),
            (" \\n", "␣\\\\n"),
            ("नमस्ते", "नमस्ते"),
            (" e\u{301}", "␣e\u{301}"),
            ("\u{301}e", "\\u{301}e"),
            ("👩\u{200d}💻", "👩\\u{200d}💻"),
            ("it's", "it's"),
        ] {
            assert_eq!(word_name(word), expected);
            assert_eq!(named_word(expected).as_deref(), Some(word), "{expected}");
        }
        for wrong in ["", "\\", "\\x", "a\\u{", "\\u{110000}", "\\u{zz}b"] {
            assert_eq!(named_word(wrong), None, "{wrong}");
        }
    }
}
