//! From the bytes of a text to its vocabulary and its tokens, in streams: a text may be larger than
//! memory.

use std::{
    collections::HashSet,
    io::{self, Write},
    path::Path,
};

use headlight_run::{Error, ErrorKind, TextConfig, TextTokens, untrusted::MOST_TOKENS};
use indicatif::{ProgressBar, ProgressStyle};

use super::{
    cache::{Encoded, LEAST_BYTES},
    source::{Segment, Source, wrong},
    token_ids::TokenIds,
};
use crate::{
    Pieces, Vocabulary, train_bpe,
    vocabulary::{ChunkSizes, EncodeError, encode_in_chunks, words},
};

/// Tokens that are handed on at once.
const BATCH: usize = 16 << 10;

/// The parts of a text: what is learned from, and what is measured on.
pub struct Parts<'a> {
    pub sources: &'a [Source],
    pub training: &'a [Segment],
    pub validation: &'a [Segment],
}

impl<'a> Parts<'a> {
    fn text(&self, segment: &Segment) -> &'a str {
        self.sources[segment.source].text(segment.bytes.clone())
    }

    fn segments(&self) -> impl Iterator<Item = &'a Segment> {
        self.training.iter().chain(self.validation)
    }

    /// The tokens that the text is made of. `tokenizer` are the bytes of the configuration's
    /// tokenizer, if it names one.
    ///
    /// # Errors
    /// If the text has more tokens than a vocabulary may hold, or the tokenizer cannot be used.
    pub fn vocabulary(
        &self,
        config: &TextConfig,
        tokenizer: Option<&[u8]>,
        progress: &ProgressBar,
    ) -> Result<Vocabulary, Error> {
        let place = &config.path;
        match &config.tokens {
            TextTokens::Bytes => Ok(Vocabulary::Bytes),
            TextTokens::Characters => {
                let mut seen = vec![false; char::MAX as usize + 1];
                for segment in self.segments() {
                    for c in self.text(segment).chars() {
                        seen[c as usize] = true;
                    }
                    progress.inc(segment.bytes.len() as u64);
                }
                let characters: Vec<char> =
                    ('\0'..=char::MAX).filter(|&c| seen[c as usize]).collect();
                check_size(characters.len(), "characters", place)?;
                Ok(Vocabulary::of_characters(characters))
            }
            TextTokens::Words => {
                let mut seen = HashSet::new();
                for segment in self.segments() {
                    for word in words(self.text(segment)) {
                        if !seen.contains(word) {
                            seen.insert(word.to_owned());
                            check_size(seen.len(), "words", place)?;
                        }
                        progress.inc(word.len() as u64);
                    }
                }
                let mut words: Vec<String> = seen.into_iter().collect();
                words.sort_unstable();
                Ok(Vocabulary::of_words(words))
            }
            TextTokens::Tokenizer(_) | TextTokens::Model => {
                let wrong = |message: &dyn std::fmt::Display| {
                    Error::of(ErrorKind::Config, &config.tokens, message).key("task.tokens")
                };
                let pieces = Pieces::parse(tokenizer.unwrap_or_default());
                Ok(Vocabulary::Pieces(
                    pieces.map_err(|error| wrong(&error).caused_by(error))?,
                ))
            }
            TextTokens::Trained(trained) => {
                let texts: Vec<&str> = self.training.iter().map(|part| self.text(part)).collect();
                let pieces = train_bpe(&texts, trained.size).map_err(|error| {
                    let message = format!("no tokenizer can be trained on it: {error}");
                    wrong(place, &message).caused_by(error)
                })?;
                Ok(Vocabulary::Pieces(pieces))
            }
        }
    }

    /// Writes the tokens of all segments to `to`, one segment after the other.
    ///
    /// # Errors
    /// If the text has a part that is no token.
    pub fn encode(
        &self,
        vocabulary: &Vocabulary,
        to: &mut dyn Write,
        progress: &ProgressBar,
    ) -> Result<Encoded, Error> {
        let width = TokenIds::width_for(vocabulary.len());
        let mut seen = vec![false; vocabulary.len()];
        let mut counts = Vec::new();
        let mut written = Ok(());
        for (at, segment) in self.segments().enumerate() {
            let is_training = at < self.training.len();
            let mut count = 0;
            let mut bytes_before = 0;
            let mut each = |tokens: &[u32], bytes: usize| {
                for &token in tokens {
                    seen[token as usize] |= is_training;
                }
                count += tokens.len();
                if written.is_ok() {
                    written = write_ids(tokens, width, to);
                }
                progress.inc((bytes - bytes_before) as u64);
                bytes_before = bytes;
            };
            encode_text(vocabulary, self.text(segment), &mut each).map_err(|error| {
                let place = self.sources[segment.source].path();
                wrong(place, &error.to_string()).caused_by(error)
            })?;
            counts.push(count);
        }
        // Memory takes all, and a file keeps to itself what went wrong.
        written.map_err(|error| Error::because(ErrorKind::Internal, "tokens", error))?;
        Ok(Encoded {
            names: vocabulary.names(),
            tokenizer: vocabulary.tokenizer_json(),
            counts,
            training: ids_of_some(&seen),
        })
    }
}

/// The tokens of all of `text`, in turn, with the bytes that are done.
fn encode_text(
    vocabulary: &Vocabulary,
    text: &str,
    each: &mut dyn FnMut(&[u32], usize),
) -> Result<(), EncodeError> {
    if let Vocabulary::Pieces(pieces) = vocabulary {
        return encode_in_chunks(pieces, text, ChunkSizes::USUAL, each);
    }
    let mut parts: Box<dyn Iterator<Item = &str>> = match vocabulary {
        Vocabulary::Words(_) => Box::new(words(text)),
        _ => Box::new(text.split_inclusive(|_| true)),
    };
    let mut done = 0;
    loop {
        let from = done;
        let batch: Vec<&str> = parts.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(());
        }
        done += batch.iter().map(|part| part.len()).sum::<usize>();
        let tokens = vocabulary
            .encode(&text[from..done])
            .map_err(|unknown| EncodeError::Unknown { from, unknown })?;
        each(&tokens, done);
    }
}

fn write_ids(tokens: &[u32], width: usize, to: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(tokens.len() * width);
    for token in tokens {
        bytes.extend_from_slice(&token.to_le_bytes()[..width]);
    }
    to.write_all(&bytes)
}

/// The places that are true, unless all are.
pub fn ids_of_some(seen: &[bool]) -> Option<Vec<u32>> {
    if seen.iter().all(|&seen| seen) {
        return None;
    }
    let ids = (0..seen.len() as u32).filter(|&id| seen[id as usize]);
    Some(ids.collect())
}

/// A bar on a terminal, for a text that takes a while.
pub fn progress_bar(path: &Path, bytes: u64) -> ProgressBar {
    if bytes < LEAST_BYTES {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "tokens of {msg}  {wide_bar} {bytes}/{total_bytes}  {eta} left",
    );
    let bar = ProgressBar::new(bytes).with_message(path.display().to_string());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn check_size(size: usize, what: &str, place: &Path) -> Result<(), Error> {
    if size <= MOST_TOKENS {
        return Ok(());
    }
    let message =
        format!("has more than {MOST_TOKENS} different {what}; cut it with bytes or a tokenizer");
    Err(Error::of(ErrorKind::Config, place.display(), message).key("task.tokens"))
}
