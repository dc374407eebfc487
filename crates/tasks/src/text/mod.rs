//! `text`: the next token of any UTF-8 text.

mod cache;
mod encode;
mod source;
mod token_ids;

use std::path::Path;

use headlight_run::{
    Error, ErrorKind, TaskConfig, TextConfig, TextTokens, sha256,
    untrusted::{MOST_TOKENIZER_BYTES, read_at_most},
};
use rand::RngExt;

pub use self::cache::Cache;
pub(super) use self::source::map;
use self::{
    cache::Encoded,
    encode::{Parts, ids_of_some, progress_bar},
    source::{Segment, Source, split, wrong},
    token_ids::TokenIds,
};
use super::{DataFile, RowKey, Sequence, Task, Use, Vocabulary};

/// Of all bytes, those that are learned from; the rest is measured on.
const TRAINING_SHARE: f64 = 0.9;
/// Sequences a model is measured on: as many as 100 batches of 12.
const VALIDATION_SEQUENCES: usize = 1200;
/// Sequences that a model of another tool is measured on: such a model is large.
const SEQUENCES_FOR_MODEL: usize = 64;

/// Windows of a file or of a folder of files, each inside one file, begun at a token drawn
/// uniformly. The first 90 % of the bytes are learned from, the rest is measured on; the vocabulary
/// is found in both, but a tokenizer is trained on the first part alone. Every target is scored.
///
/// Each part of each file is encoded as a whole, and a window is a cut of its tokens. The tokens of
/// a large text are kept in a [`Cache`] and mapped into memory, so that a text larger than memory
/// trains; the files must not be changed meanwhile. Nobody knows the best predictor of natural
/// text, so there is no floor.
pub struct Text {
    vocabulary: Vocabulary,
    files: Vec<DataFile>,
    training: Vec<TokenIds>,
    validation: Vec<TokenIds>,
    training_tokens: Option<Vec<u32>>,
    validation_rows: usize,
    n_ctx: usize,
}

/// A `tokenizer.json`, and the files that it is known by.
#[derive(Debug, Clone)]
pub struct TextTokenizer {
    /// Its text.
    pub json: Vec<u8>,
    /// The files that it came from: itself, or those of a model.
    pub files: Vec<DataFile>,
}

/// A text with its tokens.
struct Read {
    vocabulary: Vocabulary,
    training_tokens: Option<Vec<u32>>,
    /// The tokens of each segment.
    segments: Vec<TokenIds>,
}

impl Text {
    /// Opens and checks the files, and finds vocabulary and tokens; those of a large text are kept
    /// in the [`Cache`] of the environment.
    ///
    /// # Errors
    /// Names the file, the place in it and what was expected.
    pub fn open(config: &TextConfig, n_ctx: usize) -> Result<Self, Error> {
        Self::open_with(config, n_ctx, &Cache::of_environment())
    }

    /// [`open`](Self::open) with another cache.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(config: &TextConfig, n_ctx: usize, cache: &Cache) -> Result<Self, Error> {
        let tokenizer = match &config.tokens {
            TextTokens::Tokenizer(path) => Some(read_tokenizer(path)?),
            TextTokens::Model => {
                let message = "the text is cut by the tokenizer of a model, which is not at hand";
                return Err(Error::config(message).key("task.tokens").value("model"));
            }
            _ => None,
        };
        Self::cut_by(config, n_ctx, tokenizer, cache)
    }

    /// [`open`](Self::open) for a text that is cut by the tokenizer of a model. Fewer sequences are
    /// measured on than of other texts, since such a model is large.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_for_model(
        config: &TextConfig,
        n_ctx: usize,
        tokenizer: TextTokenizer,
    ) -> Result<Self, Error> {
        Self::cut_by(config, n_ctx, Some(tokenizer), &Cache::of_environment())
    }

    fn cut_by(
        config: &TextConfig,
        n_ctx: usize,
        tokenizer: Option<TextTokenizer>,
        cache: &Cache,
    ) -> Result<Self, Error> {
        let json = tokenizer.as_ref().map(|tokenizer| &tokenizer.json[..]);
        let sources = Source::open_all(&config.path, cache)?;
        let [training, validation] = split(&sources, TRAINING_SHARE);
        let parts = Parts {
            sources: &sources,
            training: &training,
            validation: &validation,
        };
        let read = if config.tokens == TextTokens::Bytes {
            Read::bytes(&parts)
        } else {
            Read::tokens(config, &parts, json, cache)?
        };
        let mut files: Vec<DataFile> = sources.iter().map(|source| source.file().clone()).collect();
        files.extend(tokenizer.into_iter().flat_map(|tokenizer| tokenizer.files));
        let (first, last) = read.segments.split_at(training.len());
        let windows = |tokens, part| with_windows(tokens, n_ctx, &files, part);
        Ok(Self {
            training: windows(first, "first 90 %")?,
            validation: windows(last, "last 10 %")?,
            vocabulary: read.vocabulary,
            training_tokens: read.training_tokens,
            files,
            validation_rows: match config.tokens {
                TextTokens::Model => SEQUENCES_FOR_MODEL,
                _ => VALIDATION_SEQUENCES,
            },
            n_ctx,
        })
    }
}

impl Read {
    /// Bytes are their own ids.
    fn bytes(parts: &Parts) -> Self {
        let ids = |segment: &Segment| {
            TokenIds::mapped(
                parts.sources[segment.source].bytes(),
                segment.bytes.clone(),
                1,
            )
        };
        let mut seen = vec![false; Vocabulary::Bytes.len()];
        for segment in parts.training {
            for &byte in &parts.sources[segment.source].bytes()[segment.bytes.clone()] {
                seen[usize::from(byte)] = true;
            }
        }
        Self {
            vocabulary: Vocabulary::Bytes,
            training_tokens: ids_of_some(&seen),
            segments: parts
                .training
                .iter()
                .chain(parts.validation)
                .map(ids)
                .collect(),
        }
    }

    fn tokens(
        config: &TextConfig,
        parts: &Parts,
        tokenizer: Option<&[u8]>,
        cache: &Cache,
    ) -> Result<Self, Error> {
        let bytes = parts.sources.iter().map(|source| source.file().bytes).sum();
        if !cache.keeps(bytes) {
            return Self::in_memory(config, parts, tokenizer);
        }
        let key = key(config, parts, tokenizer);
        if let Some(read) = cache
            .tokens(&key)
            .and_then(|kept| Self::kept(config, kept).ok())
        {
            return Ok(read);
        }
        let kept = cache.keep_tokens(&key, |to| {
            let progress = progress_bar(&config.path, bytes * passes(&config.tokens));
            let vocabulary = parts.vocabulary(config, tokenizer, &progress)?;
            let encoded = parts.encode(&vocabulary, to, &progress);
            progress.finish_and_clear();
            encoded
        })?;
        match kept {
            Some(kept) => Self::kept(config, kept),
            None => Self::in_memory(config, parts, tokenizer),
        }
    }

    fn in_memory(
        config: &TextConfig,
        parts: &Parts,
        tokenizer: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let bytes = parts.sources.iter().map(|source| source.file().bytes).sum();
        let progress = progress_bar(&config.path, bytes);
        let vocabulary = parts.vocabulary(config, tokenizer, &progress)?;
        let mut ids = Vec::new();
        let encoded = parts.encode(&vocabulary, &mut ids, &progress)?;
        progress.finish_and_clear();
        let ids = TokenIds::held(ids, TokenIds::width_for(vocabulary.len()));
        Ok(Self {
            vocabulary,
            segments: segments_of(&ids, &encoded.counts),
            training_tokens: encoded.training,
        })
    }

    /// The vocabulary comes back through the door through which it comes back from a run.
    fn kept(config: &TextConfig, (encoded, ids): (Encoded, TokenIds)) -> Result<Self, Error> {
        let Encoded {
            names,
            tokenizer,
            counts,
            training,
        } = encoded;
        let task = TaskConfig::Text(config.clone());
        let tokenizer = tokenizer.as_deref().map(str::as_bytes);
        Ok(Self {
            vocabulary: Vocabulary::of_run(&task, names, tokenizer)?,
            segments: segments_of(&ids, &counts),
            training_tokens: training,
        })
    }
}

/// Everything that the tokens of a text follow from.
fn key(config: &TextConfig, parts: &Parts, tokenizer: Option<&[u8]>) -> String {
    let kind = match tokenizer {
        Some(bytes) => sha256(bytes),
        None => config.tokens.to_string(),
    };
    let mut key = format!("{kind} {TRAINING_SHARE}");
    for source in parts.sources {
        key = key + " " + &source.file().sha256;
    }
    key
}

/// How often a text is read: once more where its vocabulary is found in it.
fn passes(tokens: &TextTokens) -> u64 {
    match tokens {
        TextTokens::Characters | TextTokens::Words => 2,
        TextTokens::Bytes
        | TextTokens::Tokenizer(_)
        | TextTokens::Trained(_)
        | TextTokens::Model => 1,
    }
}

fn segments_of(ids: &TokenIds, counts: &[usize]) -> Vec<TokenIds> {
    let mut start = 0;
    let mut segments = Vec::with_capacity(counts.len());
    for &count in counts {
        segments.push(ids.part(start..start + count));
        start += count;
    }
    segments
}

/// The segments that hold a window.
fn with_windows(
    segments: &[TokenIds],
    n_ctx: usize,
    files: &[DataFile],
    part: &str,
) -> Result<Vec<TokenIds>, Error> {
    let has_window = |tokens: &&TokenIds| tokens.len() > n_ctx;
    let found: Vec<TokenIds> = segments.iter().filter(has_window).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let which = if segments.len() <= 1 {
        "has"
    } else {
        "no file has more than"
    };
    let longest = segments.iter().map(TokenIds::len).max().unwrap_or(0);
    let message = format!(
        "{which} {longest} tokens in its {part}; a sequence needs model.n_ctx + 1 = {}",
        n_ctx + 1
    );
    Err(wrong(&files[0].path, &message))
}

fn read_tokenizer(path: &Path) -> Result<TextTokenizer, Error> {
    if !path.is_file() {
        let message = "there is no such tokenizer file";
        return Err(Error::of(ErrorKind::Config, path.display(), message).key("task.tokens"));
    }
    let json = read_at_most(path, MOST_TOKENIZER_BYTES)?;
    let file = DataFile {
        path: path.to_owned(),
        bytes: json.len() as u64,
        sha256: sha256(&json),
    };
    Ok(TextTokenizer {
        json,
        files: vec![file],
    })
}

impl Task for Text {
    fn vocabulary(&self) -> Vocabulary {
        self.vocabulary.clone()
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let segments = if row.usage == Use::Training {
            &self.training
        } else {
            &self.validation
        };
        let starts = |tokens: &TokenIds| tokens.len() - self.n_ctx;
        let mut at = row.rng().random_range(0..segments.iter().map(starts).sum());
        let mut chosen = &segments[0];
        for segment in segments {
            chosen = segment;
            if at < starts(segment) {
                break;
            }
            at -= starts(segment);
        }
        Sequence {
            tokens: chosen.window(at..at + self.n_ctx + 1),
            scored: vec![true; self.n_ctx],
        }
    }

    fn files(&self) -> Vec<DataFile> {
        self.files.clone()
    }

    fn training_share(&self) -> Option<f64> {
        Some(TRAINING_SHARE)
    }

    fn training_tokens(&self) -> Option<Vec<u32>> {
        self.training_tokens.clone()
    }

    fn validation_rows(&self) -> usize {
        self.validation_rows
    }
}

#[cfg(test)]
mod tests;
