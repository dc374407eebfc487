//! BERT's tokenizer, as `tokenizer.json` describes it: text becomes plain words, a word becomes known pieces.
//!
//! Written out because it is short, and because the crate `tokenizers` switches on features of crates below Burn
//! (`serde` of `ahash`, `std` of `either`), for which all of Burn would be built again.

use std::{collections::HashMap, path::Path};

use serde::Deserialize;
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// Cuts sentences into pieces of a fixed vocabulary.
///
/// Special tokens come from the tokenizer alone: a `[MASK]` in the text is read as a word between two brackets.
pub struct Tokenizer {
    normalizer: BertNormalizer,
    model: WordPiece,
    class: u32,
    separator: u32,
}

/// A sentence as the model reads it, from `[CLS]` to `[SEP]`.
pub struct Encoding {
    /// What the pieces are called; `##` marks a piece inside a word.
    pub tokens: Vec<String>,
    /// Their rows in the embedding table.
    pub ids: Vec<u32>,
}

#[derive(Deserialize)]
struct File {
    normalizer: Normalizer,
    model: Model,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Normalizer {
    BertNormalizer(BertNormalizer),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Model {
    WordPiece(WordPiece),
}

#[derive(Deserialize)]
struct BertNormalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

#[derive(Deserialize)]
struct WordPiece {
    vocab: HashMap<String, u32>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
}

impl Tokenizer {
    /// Reads `tokenizer.json`.
    ///
    /// # Errors
    /// If it cannot be read, or describes another tokenizer than BERT's.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file: File = crate::read_json(path)?;
        let (Normalizer::BertNormalizer(normalizer), Model::WordPiece(model)) = (file.normalizer, file.model);
        let id = |token: &str| {
            let id = model.vocab.get(token).copied();
            id.ok_or_else(|| format!("{}: the vocabulary has no {token}", path.display()))
        };
        let (class, separator, _) = (id("[CLS]")?, id("[SEP]")?, id(&model.unk_token)?);
        Ok(Self { normalizer, model, class, separator })
    }

    /// The highest row of the embedding table that a piece may name.
    pub fn highest_id(&self) -> u32 {
        self.model.vocab.values().copied().max().unwrap_or(0)
    }

    /// The pieces of a sentence between `[CLS]` and `[SEP]`; what does not fit into `max_length` tokens is left out.
    ///
    /// `None` if the text has no words.
    pub fn encode(&self, text: &str, max_length: usize) -> Option<Encoding> {
        let normalized = self.normalizer.normalize(text);
        let pieces: Vec<(String, u32)> =
            words(&normalized).flat_map(|word| self.model.pieces(word)).take(max_length.saturating_sub(2)).collect();
        if pieces.is_empty() {
            return None;
        }
        let class = ("[CLS]".to_owned(), self.class);
        let separator = ("[SEP]".to_owned(), self.separator);
        let (tokens, ids) = std::iter::once(class).chain(pieces).chain([separator]).unzip();
        Some(Encoding { tokens, ids })
    }
}

impl BertNormalizer {
    /// Control characters and accents fall, letters become small, each Chinese character becomes a word.
    fn normalize(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars().filter(|&c| !self.clean_text || !is_noise(c)) {
            if self.handle_chinese_chars && is_chinese(c) {
                out.extend([' ', c, ' ']);
            } else {
                out.push(c);
            }
        }
        if self.strip_accents.unwrap_or(self.lowercase) {
            out = out.nfd().filter(|c| !c.is_mark_nonspacing()).collect();
        }
        if self.lowercase {
            // Character by character, as BERT does: a sigma at the end of a word stays σ.
            out = out.chars().flat_map(char::to_lowercase).collect();
        }
        out
    }
}

impl WordPiece {
    /// Again and again the longest piece in the vocabulary; a word that this cannot spell is unknown as a whole.
    fn pieces(&self, word: &str) -> Vec<(String, u32)> {
        let unknown = || vec![(self.unk_token.clone(), self.vocab[&self.unk_token])];
        if word.chars().count() > self.max_input_chars_per_word {
            return unknown();
        }
        let mut pieces = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let prefix = if pieces.is_empty() { "" } else { &self.continuing_subword_prefix };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let longest = ends.map(|end| (end, format!("{prefix}{}", &rest[..end])));
            let known = longest.filter_map(|(end, piece)| Some((end, *self.vocab.get(&piece)?, piece))).next();
            let Some((end, id, piece)) = known else { return unknown() };
            pieces.push((piece, id));
            rest = &rest[end..];
        }
        pieces
    }
}

/// What stands between spaces, each punctuation mark by itself.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|chunk| chunk.split_inclusive(is_punctuation)).flat_map(|part| {
        let mark = part.chars().next_back().filter(|&c| is_punctuation(c));
        let (word, mark) = part.split_at(part.len() - mark.map_or(0, char::len_utf8));
        [word, mark].into_iter().filter(|word| !word.is_empty())
    })
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.is_punctuation()
}

fn is_noise(c: char) -> bool {
    c == '\u{fffd}' || (c.is_other() && !matches!(c, '\t' | '\n' | '\r'))
}

fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}
