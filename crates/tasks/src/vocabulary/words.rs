//! One token for each word, sign or white space.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;

use super::{UnknownToken, spelling::word_name};

/// Words in alphabetical order.
#[derive(Debug)]
pub struct Words {
    pub(crate) by_id: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Words {
    pub(super) fn new(by_id: Vec<String>) -> Self {
        let ids = by_id.iter().cloned().zip(0..).collect();
        Self { by_id, ids }
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let id = |word: &str| {
            let id = self.ids.get(word).copied();
            id.ok_or_else(|| UnknownToken(word_name(word)))
        };
        words(text).map(id).collect()
    }
}

/// The words, signs and white spaces of `text`; in a row they are the text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&word_pattern()).expect("the pattern is a regular expression"));
    WORD.find_iter(text).map(|word| word.as_str())
}

/// The regular expression of one token: a word, a sign or a white space. It is written in the
/// syntax that this program's engine and the one of the Python package `tokenizers` have in common,
/// so an exported tokenizer cuts text at the same places.
///
/// Words are those of Unicode (UAX #29) for most scripts: letters and digits with their marks,
/// joined by an apostrophe, a point or a colon between letters (`keeper's`, `U.S.A`) and by a
/// point or a comma between digits (`3.14`, `1,000`). Scripts that write no spaces between words
/// have a token for each letter with its marks. A sign is any other character with its marks and
/// with what joiners tie to it, as in emoji of several people; flags are signs of two characters.
/// One space before a word or a sign belongs to it (Radford et al. 2019). Every other white space
/// is a token of its own, `\r\n` one token.
pub fn word_pattern() -> String {
    const ALONE: &str = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}";
    // Variation selectors are marks. The others are skin tones and the letters of regional flags.
    const MARK: &str = r"[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*";
    // Joiners stand inside words of Persian and of Indic scripts.
    const MARK_IN_WORD: &str = r"[\p{M}\x{200C}\x{200D}]*";
    let letter = format!(r"[\p{{L}}\p{{Nl}}\p{{Pc}}&&[^{ALONE}]]{MARK_IN_WORD}");
    let digit = format!(r"\p{{Nd}}{MARK_IN_WORD}");
    let letters = format!(r"(?:{letter})+(?:['’.:·](?:{letter})+)*");
    let digits = format!(r"(?:{digit})+(?:['’.,;](?:{digit})+)*");
    let word = format!("(?:{letters}|{digits})+");
    let flag = r"[\x{1F1E6}-\x{1F1FF}]{2}";
    let sign = format!(r"\S{MARK}(?:\x{{200D}}\S{MARK})*");
    format!(r" ?(?:{word}|{flag}|{sign})|\r\n|\s")
}
