//! A tokenizer that is trained on a text.

use tokenizers::{
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, Tokenizer, Trainer,
    models::bpe::{BPE, BpeTrainer},
    pre_tokenizers::byte_level::ByteLevel,
};

use super::{NoPieces, Pieces, chunks::cut_near};

/// A longer text is sampled: more bytes change the merges little and cost memory.
const MOST_TRAINED_BYTES: usize = 8 << 20;
/// A text is read in parts of this many bytes.
const PART_BYTES: usize = 64 << 10;
/// A run of letters without white space (DNA) is learned from in pieces: the trainer's time grows
/// with the square of a word's length.
const MOST_WORD_CHARACTERS: usize = 32;

/// Trains byte-pair encoding over bytes on `texts`, up to `size` tokens: first the 256 bytes, then
/// the most frequent pair of tokens again and again, while it occurs twice (Sennrich et al. 2016,
/// section 3.2). Words are those of GPT-2 (Radford et al. 2019); no token reaches over their ends.
///
/// Equal texts give equal tokenizers. Of texts with more than 8 MiB, parts of 64 KiB are learned
/// from that lie evenly among all.
///
/// # Errors
/// If the trainer fails.
///
/// ```
/// use headlight_tasks::{Vocabulary, train_bpe};
///
/// let tokens = Vocabulary::Pieces(train_bpe(&["low lower lowest low"], 258)?);
/// // "low" is one token: l and o were merged first, then lo and w.
/// assert_eq!(tokens.len(), 258);
/// assert_eq!(tokens.encode("low").unwrap(), [257]);
/// assert_eq!(tokens.decode(&tokens.encode("low é 🦀").unwrap()), "low é 🦀");
/// # Ok::<(), headlight_tasks::NoPieces>(())
/// ```
pub fn train_bpe(texts: &[&str], size: usize) -> Result<Pieces, NoPieces> {
    let wrong = |error: tokenizers::Error| NoPieces(format!("cannot be trained: {error}"));
    let total: usize = texts.iter().map(|text| text.len()).sum();
    let every = total.div_ceil(MOST_TRAINED_BYTES).max(1);
    let parts: Vec<&str> = texts
        .iter()
        .flat_map(|text| parts_of(text))
        .step_by(every)
        .collect();
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .min_frequency(2)
        .vocab_size(size)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    trainer.feed(parts.iter(), words_of).map_err(wrong)?;
    let mut model = BPE::default();
    trainer.train(&mut model).map_err(wrong)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(byte_level()));
    tokenizer.with_decoder(Some(byte_level()));
    let json = tokenizer.to_string(false).map_err(wrong)?;
    Pieces::parse(json.as_bytes())
}

fn byte_level() -> ByteLevel {
    ByteLevel::new(false, false, true)
}

/// `text` in parts that begin at white space where there is some near.
fn parts_of(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART_BYTES {
        let (part, after) = rest.split_at(cut_near(rest, PART_BYTES));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// The words that pairs are counted in, a character for each byte.
fn words_of(text: &str) -> tokenizers::Result<Vec<String>> {
    let mut cut = PreTokenizedString::from(text);
    byte_level().pre_tokenize(&mut cut)?;
    let mut words = Vec::new();
    for (word, ..) in cut.get_splits(OffsetReferential::Original, OffsetType::Byte) {
        let characters: Vec<char> = word.chars().collect();
        for piece in characters.chunks(MOST_WORD_CHARACTERS) {
            words.push(piece.iter().collect());
        }
    }
    Ok(words)
}
