//! From text to the rows of the embedding table, by the `tokenizers` crate.

use std::path::Path;

use tokenizers::TruncationParams;

/// Cuts sentences into pieces of a fixed vocabulary, as `tokenizer.json` says.
pub struct Tokenizer(tokenizers::Tokenizer);

/// A sentence as the model reads it, from `[CLS]` to `[SEP]`.
pub struct Encoding {
    /// What the pieces are called; `##` marks a piece inside a word.
    pub tokens: Vec<String>,
    /// Their rows in the embedding table.
    pub ids: Vec<u32>,
}

impl Tokenizer {
    /// Reads `tokenizer.json`; sentences are cut off at `max_length` pieces.
    pub fn open(path: &Path, max_length: usize) -> Result<Self, String> {
        let wrong = |error: tokenizers::Error| format!("{}: {error}", path.display());
        let mut tokenizer = tokenizers::Tokenizer::from_file(path).map_err(wrong)?;
        // Special tokens come from the tokenizer alone: a [SEP] in the text is read as text.
        tokenizer.set_encode_special_tokens(true);
        tokenizer.with_padding(None);
        let truncation = TruncationParams {
            max_length,
            ..TruncationParams::default()
        };
        tokenizer.with_truncation(Some(truncation)).map_err(wrong)?;
        Ok(Self(tokenizer))
    }

    /// The highest row of the embedding table that a piece may have.
    pub fn highest_id(&self) -> u32 {
        self.0.get_vocab(true).into_values().max().unwrap_or(0)
    }

    /// The pieces of a sentence, or `None` if there are none between the special tokens.
    pub fn encode(&self, text: &str) -> Option<Encoding> {
        let encoding = self.0.encode(text, true).ok()?;
        let special = encoding.get_special_tokens_mask();
        special.contains(&0).then(|| Encoding {
            tokens: encoding.get_tokens().to_vec(),
            ids: encoding.get_ids().to_vec(),
        })
    }
}
