//! What a run depends on beside its configuration, kept in its directory: which data it was made
//! from, its vocabulary, and the sequences that it is measured on.

use std::fs;

use serde::{Deserialize, Deserializer, Serialize};

use super::RunDirectory;
use crate::{
    DataFile, Error, ErrorKind, SequenceRow,
    untrusted::{
        MOST_FILES, MOST_LOG_BYTES, MOST_TEXT_BYTES, MOST_TOKENIZER_BYTES, MOST_TOKENS,
        MOST_UNQUOTED_BYTES, list_of_at_most, read_at_most, rows_of,
    },
};

const DATA: &str = "data.json";
const VOCABULARY: &str = "vocabulary.json";
const TOKENIZER: &str = "tokenizer.json";
const VALIDATION: &str = "validation.jsonl";
const PROBE: &str = "probe.jsonl";

/// Digits of a SHA-256 that messages show.
const SHOWN_DIGITS: usize = 12;

/// `data.json`: what a task read to make its sequences.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Data {
    /// Every file that was read, in the order in which it was; none where sequences are generated.
    #[serde(deserialize_with = "files")]
    pub files: Vec<DataFile>,
    /// The share of all bytes of a text that is learned from; the rest is measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_share: Option<f64>,
    /// The accuracy of guessing.
    pub chance: f64,
    /// The token that begins every sequence and stands nowhere else; none where tokens are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
}

/// All that a run keeps beside its configuration, so that it can be looked at without the data that
/// it was made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunData {
    /// `data.json`.
    pub data: Data,
    /// `vocabulary.json`: the tokens' printable names, by id.
    pub vocabulary: Vec<String>,
    /// `tokenizer.json`, where text was cut by one.
    pub tokenizer: Option<Vec<u8>>,
    /// `validation.jsonl`: every sequence that the run is measured on.
    pub validation: Vec<SequenceRow>,
    /// `probe.jsonl`: the sequences on which roles are read.
    pub probe: Vec<SequenceRow>,
}

/// The tokens' names, as they are read.
#[derive(Deserialize)]
struct TokenNames(#[serde(deserialize_with = "token_names")] Vec<String>);

fn token_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    list_of_at_most(MOST_TOKENS, "names", deserializer)
}

fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DataFile>, D::Error> {
    list_of_at_most(MOST_FILES, "files", deserializer)
}

impl Data {
    /// Checks that `now` is this data, which a run was begun with: the same bytes in the same
    /// order. Where they lie does not matter.
    ///
    /// # Errors
    /// Names the first file that was changed, added or removed.
    ///
    /// ```
    /// use headlight_run::{Data, DataFile};
    ///
    /// let data = |path: &str, sha256: &str| Data {
    ///     files: vec![DataFile { path: path.into(), bytes: 9, sha256: sha256.repeat(64) }],
    ///     ..Data::default()
    /// };
    /// let begun = data("old/a.txt", "a");
    /// assert!(begun.check_same(&data("new/a.txt", "a")).is_ok());
    /// assert_eq!(
    ///     begun.check_same(&data("old/a.txt", "b")).unwrap_err().to_string(),
    ///     "old/a.txt: has 9 bytes with SHA-256 bbbbbbbbbbbb…; the run was begun with 9 bytes with SHA-256 aaaaaaaaaaaa…"
    /// );
    /// ```
    pub fn check_same(&self, now: &Self) -> Result<(), Error> {
        let (begun, now) = (&self.files, &now.files);
        let content = |file: &DataFile| (file.bytes, file.sha256.clone());
        let pairs = begun.iter().zip(now);
        let same = pairs
            .take_while(|(begun, now)| content(begun) == content(now))
            .count();
        let known = |file: &DataFile| begun.iter().any(|begun| begun.path == file.path);
        let (place, message) = match (begun.get(same), now.get(same)) {
            (None, None) => return Ok(()),
            (None, Some(new)) => (&new.path, was_added(begun.len())),
            (Some(_), Some(new)) if now.len() > begun.len() && !known(new) => {
                (&new.path, was_added(begun.len()))
            }
            (Some(gone), next) if now.len() < begun.len() || next.is_none() => (
                &gone.path,
                format!(
                    "is not there; the run was begun with it: {}",
                    in_words(gone)
                ),
            ),
            (Some(old), Some(new)) => {
                let named = if old.path == new.path {
                    String::new()
                } else {
                    format!("{}: ", old.path.display())
                };
                let (now, then) = (in_words(new), in_words(old));
                let message = format!("has {now}; the run was begun with {named}{then}");
                (&new.path, message)
            }
            (Some(_), None) => unreachable!("then there are fewer files"),
        };
        Err(Error::damaged(place.display(), message))
    }
}

fn was_added(files: usize) -> String {
    let s = if files == 1 { "" } else { "s" };
    format!("was not there when the run was begun; it was begun with {files} file{s}")
}

/// `9 bytes with SHA-256 aaaaaaaaaaaa…`
fn in_words(file: &DataFile) -> String {
    let digits: String = file.sha256.chars().take(SHOWN_DIGITS).collect();
    format!("{} bytes with SHA-256 {digits}…", file.bytes)
}

impl RunData {
    /// The files of all this, by name.
    ///
    /// # Errors
    /// If a sequence is longer than any that is read.
    pub(super) fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
        let mut files = vec![
            (DATA, json(DATA, &self.data)?),
            (VOCABULARY, json(VOCABULARY, &self.vocabulary)?),
            (VALIDATION, lines(VALIDATION, &self.validation)?),
            (PROBE, lines(PROBE, &self.probe)?),
        ];
        if let Some(tokenizer) = &self.tokenizer {
            files.push((TOKENIZER, tokenizer.clone()));
        }
        Ok(files)
    }
}

fn json<T: Serialize>(name: &str, value: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::because(ErrorKind::Internal, name, error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A line for each sequence, as [`RunDirectory::sequences`] reads them.
fn lines(name: &str, rows: &[SequenceRow]) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    for row in rows {
        let before = lines.len();
        serde_json::to_writer(&mut lines, row)
            .map_err(|error| Error::because(ErrorKind::Internal, name, error))?;
        lines.push(b'\n');
        check_size(
            name,
            "a sequence",
            lines.len() - before,
            MOST_UNQUOTED_BYTES,
        )?;
    }
    check_size(name, "all sequences", lines.len(), MOST_LOG_BYTES as usize)?;
    Ok(lines)
}

impl RunDirectory {
    /// The data that the run was begun with.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn data(&self) -> Result<Data, Error> {
        self.read_json(DATA, MOST_TEXT_BYTES)
    }

    /// The tokens' printable names.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn vocabulary(&self) -> Result<Vec<String>, Error> {
        self.read_json(VOCABULARY, MOST_TEXT_BYTES)
            .map(|TokenNames(names)| names)
    }

    /// The `tokenizer.json` that cut the run's text; none where no tokenizer did.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn tokenizer(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path().join(TOKENIZER);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        read_at_most(&path, MOST_TOKENIZER_BYTES).map(Some)
    }

    /// Every sequence that the run is measured on: at least one, all of one length.
    ///
    /// # Errors
    /// Names the line that is no sequence of this run's model.
    pub fn validation(&self) -> Result<Vec<SequenceRow>, Error> {
        self.sequences(VALIDATION)
    }

    /// The sequences on which roles are read: at least one, all of one length.
    ///
    /// # Errors
    /// As [`validation`](Self::validation).
    pub fn probe(&self) -> Result<Vec<SequenceRow>, Error> {
        self.sequences(PROBE)
    }

    fn sequences(&self, name: &str) -> Result<Vec<SequenceRow>, Error> {
        let path = self.path().join(name);
        let n_ctx = self.config()?.model.n_ctx;
        let vocabulary = self.vocabulary()?.len();
        let rows: Vec<SequenceRow> = rows_of(&path, 0, &read_at_most(&path, MOST_LOG_BYTES)?)?;
        let Some(first) = rows.first() else {
            return Err(Error::damaged(path.display(), "has no sequences"));
        };
        for (index, row) in rows.iter().enumerate() {
            if let Some(fault) = row.fault(vocabulary, n_ctx).or_else(|| row.unlike(first)) {
                let place = format!("{}:{}", path.display(), index + 1);
                return Err(Error::damaged(place, fault));
            }
        }
        Ok(rows)
    }
}

fn check_size(name: &str, part: &str, bytes: usize, most: usize) -> Result<(), Error> {
    if bytes <= most {
        return Ok(());
    }
    let message = format_args!(
        "{part} would take {bytes} bytes in {name}, more than {most}; choose a smaller model.n_ctx"
    );
    Err(Error::of(ErrorKind::TooLarge, name, message))
}
