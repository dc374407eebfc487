//! The tokens of a Hugging Face tokenizer.

use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use headlight_run::untrusted::MOST_TOKENS;
use serde_json::{Map, Value};
use tokenizers::{DecoderWrapper, Tokenizer};

use super::{UnknownToken, spelling::word_name};

/// A tokenizer without special tokens, padding and truncation.
#[derive(Clone)]
pub struct Pieces {
    json: Arc<str>,
    tokenizer: Arc<Tokenizer>,
    /// One more than the largest token.
    count: usize,
}

/// A token and where it stands in the text that it was cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its id.
    pub token: u32,
    /// The byte at which its text begins.
    pub start: usize,
    /// The byte at which its text ends.
    pub end: usize,
}

/// Why a file is no tokenizer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoPieces(pub(super) String);

impl Pieces {
    /// A `tokenizer.json`. What would add tokens to a text or cut some off is left out: truncation,
    /// padding and the post-processor.
    ///
    /// # Errors
    /// If it is no tokenizer, or has more tokens than a vocabulary may have.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoPieces> {
        let no_json = |error: &dyn fmt::Display| NoPieces(format!("is no tokenizer.json: {error}"));
        let json = std::str::from_utf8(bytes).map_err(|error| no_json(&error))?;
        let mut parts: Map<String, Value> =
            serde_json::from_str(json).map_err(|error| no_json(&error))?;
        let mut as_it_was = true;
        for part in ["truncation", "padding", "post_processor"] {
            let was = parts.insert(part.to_owned(), Value::Null);
            as_it_was &= was.is_none_or(|was| was.is_null());
        }
        let parts = Value::Object(parts);
        let json = if as_it_was {
            json.into()
        } else {
            parts.to_string().into()
        };
        let mut tokenizer: Tokenizer = caught(|| serde_json::from_value(parts))
            .ok_or_else(|| no_json(&"one of its parts cannot be read"))?
            .map_err(|error| no_json(&error))?;
        // Special tokens come from the tokenizer alone: what looks like one in the text is read as
        // text.
        tokenizer.set_encode_special_tokens(true);
        let vocabulary = tokenizer.get_vocab(true);
        let largest = vocabulary.iter().max_by_key(|(_, token)| **token);
        let (name, &largest) = largest.ok_or_else(|| NoPieces("has no tokens".to_owned()))?;
        if largest as usize >= MOST_TOKENS {
            return Err(NoPieces(format!(
                "token {name:?} has the id {largest}; ids must be below {MOST_TOKENS}"
            )));
        }
        Ok(Self {
            json,
            tokenizer: Arc::new(tokenizer),
            count: largest as usize + 1,
        })
    }

    /// The `tokenizer.json`, as far as it is used.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Names as people read them. The tokens of a tokenizer of bytes are spelled like words: `␣the` and
    /// `é` where its file has `Ġthe` and `Ã©`. Bytes that are no character alone are `\xE2`.
    pub(super) fn names(&self) -> Vec<String> {
        let in_file = self.names_in_file();
        if !matches!(
            self.tokenizer.get_decoder(),
            Some(DecoderWrapper::ByteLevel(_))
        ) {
            return in_file;
        }
        let added = self.tokenizer.get_added_tokens_decoder();
        let mut names = in_file.clone();
        for (token, name) in (0..).zip(&mut names) {
            let bytes: Option<Vec<u8>> = name.chars().map(byte_of_letter).collect();
            if let Some(bytes) = bytes.filter(|_| !added.contains_key(&token)) {
                *name = spelled(&bytes);
            }
        }
        // A token that the tokenizer adds may be written like another one.
        let different: HashSet<&String> = names.iter().collect();
        if different.len() < names.len() {
            return in_file;
        }
        names
    }

    /// The names as the tokenizer's file has them, and as runs of earlier versions keep them.
    pub(super) fn names_in_file(&self) -> Vec<String> {
        let name = |token| {
            let name = self.tokenizer.id_to_token(token);
            name.unwrap_or_else(|| format!("unused {token}"))
        };
        (0..self.count as u32).map(name).collect()
    }

    /// The tokens but those that the tokenizer adds to its model's.
    pub(super) fn ordinary(&self) -> Vec<u32> {
        let added = self.tokenizer.get_added_tokens_decoder();
        let is_ordinary = |token: &u32| {
            !added.contains_key(token) && self.tokenizer.id_to_token(*token).is_some()
        };
        (0..self.count as u32).filter(is_ordinary).collect()
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let pieces = self.cut(text)?;
        Ok(pieces.into_iter().map(|piece| piece.token).collect())
    }

    /// The tokens of `text` and where they stand in it.
    pub(crate) fn cut(&self, text: &str) -> Result<Vec<Piece>, UnknownToken> {
        let encoding = caught(|| self.tokenizer.encode(text, false))
            .ok_or_else(|| UnknownToken("text that the tokenizer fails on".to_owned()))?
            .map_err(|error| UnknownToken(error.to_string()))?;
        let offsets = encoding.get_offsets().iter();
        let mut pieces = Vec::with_capacity(encoding.len());
        for (&token, &(start, end)) in encoding.get_ids().iter().zip(offsets) {
            if token as usize >= self.count {
                let message = format!("token id {token}, beyond the vocabulary of {},", self.count);
                return Err(UnknownToken(message));
            }
            pieces.push(Piece { token, start, end });
        }
        Ok(pieces)
    }

    /// As the tokenizer's decoder spells the tokens; as their names where it fails.
    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        match caught(|| self.tokenizer.decode(tokens, false)) {
            Some(Ok(text)) if text.contains(char::REPLACEMENT_CHARACTER) => {
                self.with_whole_characters(tokens, &text)
            }
            Some(Ok(text)) => text,
            _ => {
                let name = |&token: &u32| self.tokenizer.id_to_token(token).unwrap_or_default();
                tokens.iter().map(name).collect()
            }
        }
    }
}

impl Pieces {
    /// `text`, which the decoder made of `tokens`, with the characters that are whole. If any byte of
    /// several byte tokens in a row is no UTF-8, the decoder replaces every one of them.
    fn with_whole_characters(&self, tokens: &[u32], text: &str) -> String {
        let mut mended = String::new();
        let mut rest = text;
        let bytes: Vec<Option<u8>> = tokens.iter().map(|&token| self.byte_of(token)).collect();
        for run in bytes.split(Option::is_none) {
            let run: Vec<u8> = run.iter().copied().flatten().collect();
            let replaced = char::REPLACEMENT_CHARACTER.to_string().repeat(run.len());
            if run.is_empty() || std::str::from_utf8(&run).is_ok() {
                continue;
            }
            if let Some((before, after)) = rest.split_once(&replaced) {
                mended = mended + before + &String::from_utf8_lossy(&run);
                rest = after;
            }
        }
        mended + rest
    }

    /// The byte that `token` stands for in tokenizers that fall back on bytes: its name is `<0xE2>`.
    fn byte_of(&self, token: u32) -> Option<u8> {
        let name = self.tokenizer.id_to_token(token)?;
        let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
        u8::from_str_radix(digits, 16).ok()
    }
}

/// The byte that a letter of a byte-level vocabulary stands for (Radford et al. 2019, `bytes_to_unicode`
/// of GPT-2): visible characters of Latin-1 for themselves, all others in their order from U+0100 on.
fn byte_of_letter(letter: char) -> Option<u8> {
    let is_visible = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let code = u32::from(letter);
    match code.checked_sub(0x100) {
        None => u8::try_from(code).ok().filter(|&byte| is_visible(byte)),
        Some(at) => (0..=u8::MAX)
            .filter(|&byte| !is_visible(byte))
            .nth(at as usize),
    }
}

/// Bytes as a name: whole characters as in a word, others by number.
fn spelled(bytes: &[u8]) -> String {
    let mut name = String::new();
    for chunk in bytes.utf8_chunks() {
        name += &word_name(chunk.valid());
        name.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02X}")));
    }
    name
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pieces of {} tokens", self.count)
    }
}

/// The library panics where some parts of a tokenizer are not what they must be, decoders above
/// all.
fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}
