//! `text`: the next token of any UTF-8 text.

mod names;
mod source;
mod tokens;

use headlight_run::{Error, TextConfig};
use rand::RngExt;

pub(super) use names::named_character;
pub use tokens::{Tokens, UnknownToken};

use self::source::{Segment, Source, split, wrong};
use super::{RowKey, Sequence, Task, Use};

/// Of all bytes, those that are learned from; the rest is measured on.
const TRAINING_SHARE: f64 = 0.9;
/// Of a text for a tokenizer, as many bytes are tried before training; all of a larger one would
/// take too long.
const MOST_TRIED_BYTES: usize = 16 << 20;
/// Sequences a model is measured on: as many as 100 batches of 12.
const VALIDATION_SEQUENCES: usize = 1200;

/// Windows of a file or of a folder of files, each inside one file, begun at a place drawn
/// uniformly. The first 90 % of the bytes are learned from, the rest is measured on; the vocabulary
/// is found in both. Every target is scored.
///
/// The files are mapped into memory and encoded window by window, so that a text larger than memory
/// trains; they must not be changed meanwhile. Nobody knows the best predictor of natural text, so
/// there is no floor.
pub struct Text {
    sources: Vec<Source>,
    tokens: Tokens,
    training: Vec<Stretch>,
    validation: Vec<Stretch>,
    n_ctx: usize,
}

/// A segment, and where the last window may begin.
struct Stretch {
    segment: Segment,
    last_start: usize,
}

impl Text {
    /// Opens and checks the files, and finds the vocabulary in one pass.
    ///
    /// # Errors
    /// Names the file, the place in it and what was expected.
    pub fn open(config: &TextConfig, n_ctx: usize) -> Result<Self, Error> {
        let sources = Source::open_all(&config.path)?;
        let texts = sources
            .iter()
            .map(|source| source.text(0..source.bytes().len()));
        let tokens = Tokens::of_texts(&config.tokens, &config.path, texts)?;
        let [training, validation] = split(&sources, TRAINING_SHARE, |before, next| {
            tokens.may_begin(before, next)
        });
        let mut text = Self {
            sources,
            tokens,
            training: Vec::new(),
            validation: Vec::new(),
            n_ctx,
        };
        text.try_tokenizer()?;
        text.training = text.stretches(training, "first 90 %")?;
        text.validation = text.stretches(validation, "last 10 %")?;
        Ok(text)
    }

    /// A tokenizer without a token for the unknown fails on text that it does not know: better now
    /// than later.
    fn try_tokenizer(&self) -> Result<(), Error> {
        let mut left = if matches!(self.tokens, Tokens::Pieces { .. }) {
            MOST_TRIED_BYTES
        } else {
            0
        };
        for (index, source) in self.sources.iter().enumerate() {
            let segment = Segment {
                source: index,
                bytes: 0..source.bytes().len(),
            };
            let mut start = 0;
            for line in source.bytes().split_inclusive(|&byte| byte == b'\n') {
                if line.len() > left {
                    return Ok(());
                }
                left -= line.len();
                self.encode(&segment, start..start + line.len())?;
                start += line.len();
            }
        }
        Ok(())
    }

    /// The segments that hold a window.
    fn stretches(&self, segments: Vec<Segment>, part: &str) -> Result<Vec<Stretch>, Error> {
        let mut stretches = Vec::new();
        let mut longest = 0;
        for segment in segments {
            let (start, length) = self.last_window(&segment)?;
            longest = longest.max(length);
            if length > self.n_ctx {
                stretches.push(Stretch {
                    segment,
                    last_start: start,
                });
            }
        }
        if stretches.is_empty() {
            let which = if self.sources.len() == 1 {
                "has"
            } else {
                "no file has more than"
            };
            let message = format!(
                "{which} {longest} tokens in its {part}; a sequence needs model.n_ctx + 1 = {}",
                self.n_ctx + 1
            );
            return Err(wrong(self.sources[0].path(), &message));
        }
        Ok(stretches)
    }

    /// The shortest ending of the segment, found by doubling, that holds a window: where it begins,
    /// and its tokens. If none does, that is the whole segment.
    fn last_window(&self, segment: &Segment) -> Result<(usize, usize), Error> {
        let Segment { bytes, .. } = segment;
        let mut reach = self.n_ctx + 1;
        loop {
            let start =
                self.boundary_before(segment, bytes.end.saturating_sub(reach).max(bytes.start));
            let length = self.encode(segment, start..bytes.end)?.len();
            if length > self.n_ctx || start == bytes.start {
                return Ok((start, length));
            }
            reach *= 2;
        }
    }

    /// The last place up to `at` where a token begins.
    fn boundary_before(&self, segment: &Segment, at: usize) -> usize {
        let bytes = self.sources[segment.source].bytes();
        let begins = |&at: &usize| self.tokens.may_begin(bytes[at - 1], bytes[at]);
        (segment.bytes.start + 1..=at)
            .rev()
            .find(begins)
            .unwrap_or(segment.bytes.start)
    }

    fn encode(&self, segment: &Segment, range: std::ops::Range<usize>) -> Result<Vec<u32>, Error> {
        let source = &self.sources[segment.source];
        let cannot = |unknown: UnknownToken| {
            wrong(
                source.path(),
                &format!("from byte {} on: {unknown} is no token", range.start),
            )
        };
        match &self.tokens {
            // A window of bytes may begin inside a character.
            Tokens::Bytes => Ok(source.bytes()[range]
                .iter()
                .copied()
                .map(u32::from)
                .collect()),
            tokens => tokens.encode(source.text(range.clone())).map_err(cannot),
        }
    }

    /// `n_ctx + 1` tokens from `start` on; fewer if the segment ends before.
    ///
    /// Panics if a tokenizer fails on text beyond [`MOST_TRIED_BYTES`]; all other text was read
    /// when it was opened.
    fn window(&self, segment: &Segment, start: usize) -> Vec<u32> {
        let bytes = self.sources[segment.source].bytes();
        let mut reach = self.n_ctx + 1;
        loop {
            // Cut where a token may begin, so that the last token is whole.
            let mut end = (start + reach).min(segment.bytes.end);
            while end < segment.bytes.end && !self.tokens.may_begin(bytes[end - 1], bytes[end]) {
                end += 1;
            }
            let mut tokens = self
                .encode(segment, start..end)
                .unwrap_or_else(|error| panic!("{error}"));
            if tokens.len() > self.n_ctx || end == segment.bytes.end {
                tokens.truncate(self.n_ctx + 1);
                return tokens;
            }
            reach *= 2;
        }
    }
}

impl Task for Text {
    fn vocabulary(&self) -> Vec<String> {
        self.tokens.names()
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let stretches = if row.usage == Use::Training {
            &self.training
        } else {
            &self.validation
        };
        let starts = |stretch: &Stretch| stretch.last_start - stretch.segment.bytes.start + 1;
        let mut at = row
            .rng()
            .random_range(0..stretches.iter().map(starts).sum());
        let chosen = stretches.iter().find(|stretch| {
            let here = at < starts(stretch);
            at -= if here { 0 } else { starts(stretch) };
            here
        });
        let Stretch {
            segment,
            last_start,
        } = chosen.expect("a number below the sum falls into one stretch");
        let mut tokens = self.window(
            segment,
            self.boundary_before(segment, segment.bytes.start + at),
        );
        if tokens.len() <= self.n_ctx {
            // A tokenizer may need fewer pieces for more text.
            tokens = self.window(segment, *last_start);
        }
        Sequence {
            tokens,
            scored: vec![true; self.n_ctx],
        }
    }

    fn validation_rows(&self) -> usize {
        VALIDATION_SEQUENCES
    }
}

#[cfg(test)]
mod tests;
