//! A text of anyone as the sequences that a model is measured on.

use std::path::Path;

use headlight_run::{Error, SequenceRow, untrusted::read_at_most};
use headlight_tasks::{Sequence, Validation, Vocabulary};

/// The longest text: enough for all sequences many times over.
const MOST_BYTES: u64 = 16 << 20;
/// Sequences that are cut from a text.
const SEQUENCES: usize = 32;

/// Up to 32 sequences of `inputs` tokens and the token after them, cut from the text at even
/// distances. Every target is scored.
pub fn sequences_of(
    path: &Path,
    vocabulary: &Vocabulary,
    inputs: usize,
) -> Result<Validation, Error> {
    let wrong = |message: String| Error::new(format_args!("--text {}", path.display()), message);
    let text = String::from_utf8(read_at_most(path, MOST_BYTES)?)
        .map_err(|_| wrong("is no UTF-8".to_owned()))?;
    let tokens = vocabulary
        .encode(&text)
        .map_err(|token| wrong(format!("cannot be cut into tokens of the model: {token}")))?;
    let length = inputs + 1;
    let fit = tokens.len() / length;
    if fit == 0 {
        let message = format!("has {} tokens; a sequence takes {length}", tokens.len());
        return Err(wrong(message));
    }
    let count = fit.min(SEQUENCES);
    let mut rows = Vec::new();
    for sequence in 0..count {
        let first = sequence * (tokens.len() - length) / count.max(2).saturating_sub(1);
        let sequence = Sequence {
            tokens: tokens[first..first + length].to_vec(),
            scored: vec![true; inputs],
        };
        rows.push(SequenceRow::from(&sequence));
    }
    Ok(Validation::of_rows(rows))
}
