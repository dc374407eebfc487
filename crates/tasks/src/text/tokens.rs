//! From text to tokens.

use std::{
    collections::{BTreeSet, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use headlight_run::{
    Error, ErrorKind, TextTokens,
    untrusted::{MOST_TOKENIZER_BYTES, MOST_TOKENS, read_at_most},
};
use serde::de::Error as _;

use super::names::{byte_name, character_name, named_character, named_word, word_name};

/// Cuts text into tokens of a fixed vocabulary.
pub enum Tokens {
    /// One for each Unicode scalar value, in their order.
    Characters(Vec<char>),
    /// One for each byte.
    Bytes,
    /// One for each word, in alphabetical order.
    Words {
        /// By token.
        words: Vec<String>,
        /// The token of each.
        tokens: HashMap<String, u32>,
    },
    /// As a `tokenizer.json` says.
    Pieces {
        /// The Hugging Face tokenizer, without special tokens, padding and truncation.
        tokenizer: Box<tokenizers::Tokenizer>,
        /// One more than the largest token.
        count: usize,
    },
}

/// The first part of a text that is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownToken(String);

impl Tokens {
    /// The tokens that `texts`, read once from beginning to end, are made of.
    ///
    /// # Errors
    /// If a text has more tokens than a vocabulary may hold, or the tokenizer cannot be used.
    pub fn of_texts<'a>(
        kind: &TextTokens,
        place: &Path,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        match kind {
            TextTokens::Characters => {
                let mut seen = BTreeSet::new();
                for text in texts {
                    seen.extend(text.chars());
                    check_size(seen.len(), "characters", place)?;
                }
                Ok(Self::Characters(seen.into_iter().collect()))
            }
            TextTokens::Bytes => Ok(Self::Bytes),
            TextTokens::Words => {
                let mut seen = BTreeSet::new();
                for text in texts {
                    for word in words(text) {
                        if !seen.contains(word) {
                            seen.insert(word.to_owned());
                            check_size(seen.len(), "words", place)?;
                        }
                    }
                }
                Ok(Self::of_words(seen.into_iter().collect()))
            }
            TextTokens::Tokenizer(path) => Self::open_tokenizer(path),
        }
    }

    /// The tokens of a run, from the names that it wrote.
    ///
    /// # Errors
    /// If the tokenizer cannot be used, or the names are not of this kind of tokens.
    pub fn of_vocabulary(kind: &TextTokens, names: &[String]) -> Result<Self, Error> {
        match kind {
            TextTokens::Characters => {
                let character = |name: &String| {
                    named_character(name).ok_or_else(|| {
                        Error::damaged("vocabulary.json", "is no character").value(name)
                    })
                };
                Ok(Self::Characters(
                    names.iter().map(character).collect::<Result<_, _>>()?,
                ))
            }
            TextTokens::Bytes => Ok(Self::Bytes),
            TextTokens::Words => Ok(Self::of_words(
                names.iter().map(|name| named_word(name)).collect(),
            )),
            TextTokens::Tokenizer(path) => {
                let tokens = Self::open_tokenizer(path)?;
                if tokens.names() == names {
                    return Ok(tokens);
                }
                Err(Error::damaged(
                    path.display(),
                    "is not the tokenizer that the run was trained with: its tokens differ",
                ))
            }
        }
    }

    fn of_words(words: Vec<String>) -> Self {
        let tokens = words
            .iter()
            .enumerate()
            .map(|(token, word)| (word.clone(), token as u32))
            .collect();
        Self::Words { words, tokens }
    }

    fn open_tokenizer(path: &Path) -> Result<Self, Error> {
        let wrong = |message: &str| {
            Error::of(ErrorKind::Config, path.display(), message).key("task.tokens")
        };
        if !path.is_file() {
            return Err(wrong("there is no such tokenizer file"));
        }
        let bytes = read_at_most(path, MOST_TOKENIZER_BYTES)?;
        let mut tokenizer = parse_tokenizer(&bytes)
            .map_err(|error| wrong(&format!("is no tokenizer.json: {error}")).caused_by(error))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| wrong(&error.to_string()))?;
        // Special tokens come from the tokenizer alone: what looks like one in the text is read as
        // text.
        tokenizer.set_encode_special_tokens(true);
        let vocabulary = tokenizer.get_vocab(true);
        let (name, &largest) = vocabulary
            .iter()
            .max_by_key(|(_, token)| **token)
            .ok_or_else(|| wrong("has no tokens"))?;
        if largest as usize >= MOST_TOKENS {
            return Err(wrong(&format!(
                "token {name:?} has the id {largest}; ids must be below {MOST_TOKENS}"
            )));
        }
        Ok(Self::Pieces {
            tokenizer: Box::new(tokenizer),
            count: largest as usize + 1,
        })
    }

    /// Printable names, by token.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Characters(characters) => {
                characters.iter().copied().map(character_name).collect()
            }
            Self::Bytes => (0..=u8::MAX).map(byte_name).collect(),
            Self::Words { words, .. } => words.iter().map(|word| word_name(word)).collect(),
            Self::Pieces { tokenizer, count } => {
                let name = |token| {
                    tokenizer
                        .id_to_token(token)
                        .unwrap_or_else(|| format!("unused {token}"))
                };
                (0..*count as u32).map(name).collect()
            }
        }
    }

    /// The tokens of `text`.
    ///
    /// # Errors
    /// The first part of it that is no token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        match self {
            Self::Characters(known) => text
                .chars()
                .map(|c| {
                    known
                        .binary_search(&c)
                        .map(|token| token as u32)
                        .map_err(|_| UnknownToken(character_name(c)))
                })
                .collect(),
            Self::Bytes => Ok(text.bytes().map(u32::from).collect()),
            Self::Words { tokens, .. } => words(text)
                .map(|word| {
                    let token = tokens.get(word).copied();
                    token.ok_or_else(|| UnknownToken(word.to_owned()))
                })
                .collect(),
            Self::Pieces { tokenizer, count } => {
                let encoding = tokenizer
                    .encode_fast(text, false)
                    .map_err(|error| UnknownToken(error.to_string()))?;
                match encoding
                    .get_ids()
                    .iter()
                    .find(|&&token| token as usize >= *count)
                {
                    Some(token) => Err(UnknownToken(format!(
                        "token id {token}, beyond the vocabulary of {count},"
                    ))),
                    None => Ok(encoding.get_ids().to_vec()),
                }
            }
        }
    }

    /// Whether text may be cut before the byte `next` when `before` stands before it, so that no
    /// token is halved.
    #[must_use]
    pub fn may_begin(&self, before: u8, next: u8) -> bool {
        match self {
            Self::Bytes => true,
            // Not inside a character: bytes that continue one are 10xxxxxx.
            Self::Characters(_) => next & 0xC0 != 0x80,
            // At the white space before a word: some tokenizers count it to the word.
            Self::Words { .. } | Self::Pieces { .. } => {
                next.is_ascii_whitespace() && !before.is_ascii_whitespace()
            }
        }
    }
}

/// The library panics where some parts of a tokenizer are not what they must be, decoders above
/// all.
fn parse_tokenizer(bytes: &[u8]) -> serde_json::Result<tokenizers::Tokenizer> {
    let mut json: serde_json::Value = serde_json::from_slice(bytes)?;
    // Nothing is decoded here.
    json.as_object_mut().map(|parts| parts.remove("decoder"));
    let parse = || serde_json::from_value(json);
    catch_unwind(AssertUnwindSafe(parse))
        .unwrap_or_else(|_| Err(serde_json::Error::custom("one of its parts cannot be read")))
}

/// Words and single marks; white space parts them and is dropped.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let in_word = |c: char| c.is_alphanumeric() || c == '\'' || c == '’';
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = if in_word(first) {
            rest.find(|c| !in_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let word;
        (word, rest) = rest.split_at(end);
        Some(word)
    })
}

fn check_size(size: usize, what: &str, place: &Path) -> Result<(), Error> {
    if size <= MOST_TOKENS {
        return Ok(());
    }
    let message = format!(
        "has more than {MOST_TOKENS} different {what}; cut it with bytes or a tokenizer.json"
    );
    Err(Error::of(ErrorKind::Config, place.display(), message).key("task.tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_marks() {
        let text = "The keeper’s lamp—lit, at 9!\n\n(It's dark.)";
        let expected = [
            "The",
            "keeper’s",
            "lamp",
            "—",
            "lit",
            ",",
            "at",
            "9",
            "!",
            "(",
            "It's",
            "dark",
            ".",
            ")",
        ];
        assert_eq!(words(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tokens_come_back_from_the_names_they_wrote() {
        let text = "a b\n\\ ␣ é 🦀 a\u{7f}";
        for kind in [TextTokens::Characters, TextTokens::Bytes, TextTokens::Words] {
            let tokens =
                Tokens::of_texts(&kind, Path::new("a.txt"), std::iter::once(text)).unwrap();
            let names = tokens.names();
            let again = Tokens::of_vocabulary(&kind, &names).unwrap();
            assert_eq!(again.names(), names);
            assert_eq!(again.encode(text).unwrap(), tokens.encode(text).unwrap());
            let distinct: std::collections::HashSet<_> = names.iter().collect();
            assert_eq!(distinct.len(), names.len());
            assert!(
                names.iter().all(|name| !name.chars().any(char::is_control)),
                "{names:?}"
            );
        }
    }
}
