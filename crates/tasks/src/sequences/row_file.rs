//! A file of sequences, mapped into memory and read line by line.

use std::{
    fmt::Display,
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
};

use headlight_run::{DataFile, Error, ErrorKind, SequenceRow, sha256, untrusted::MOST_LINE_BYTES};
use memmap2::Mmap;

use super::{line::Line, token_names::TokenNames};
use crate::text::map;

/// A file, and where its lines begin.
pub struct RowFile {
    path: PathBuf,
    /// The key of the configuration that names the file.
    key: &'static str,
    bytes: Mmap,
    /// Where each line begins, and where the last one ends.
    starts: Vec<u64>,
}

impl RowFile {
    /// Maps the file at `path`, which `key` of the configuration names.
    ///
    /// # Errors
    /// If it is no file, or empty.
    pub fn map(path: &Path, key: &'static str) -> Result<Self, Error> {
        let unreadable = |error| Error::io(path, "read", error).key(key);
        let file = File::open(path).map_err(unreadable)?;
        let is_file = file.metadata().map_err(unreadable)?.is_file();
        let wrong = |message: &str| Error::of(ErrorKind::Config, path.display(), message).key(key);
        if !is_file {
            return Err(wrong("is no file"));
        }
        let bytes = map(&file).map_err(unreadable)?;
        if bytes.is_empty() {
            return Err(wrong("is empty; expected a JSON object a line"));
        }
        Ok(Self {
            path: path.to_owned(),
            key,
            bytes,
            starts: Vec::new(),
        })
    }

    /// Finds the lines, and the tokens in them.
    ///
    /// # Errors
    /// Names the first line that is wrong.
    pub fn find_lines(&mut self, names: &mut TokenNames) -> Result<(), Error> {
        let mut start = 0;
        let mut starts = vec![0];
        for (index, line) in self
            .bytes
            .split_inclusive(|&byte| byte == b'\n')
            .enumerate()
        {
            let parsed = parse(line).map_err(|fault| self.wrong_line(index, fault))?;
            names
                .learn(&parsed.tokens)
                .map_err(|fault| self.wrong_line(index, fault))?;
            start += line.len() as u64;
            starts.push(start);
        }
        if u32::try_from(starts.len()).is_err() {
            return Err(self.wrong("has more than 4294967294 lines"));
        }
        self.starts = starts;
        Ok(())
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// What the file is, by its bytes.
    pub fn file(&self) -> DataFile {
        DataFile {
            path: self.path.clone(),
            bytes: self.bytes.len() as u64,
            sha256: sha256(&self.bytes),
        }
    }

    /// The sequence in one line, counted from 0.
    ///
    /// # Errors
    /// If the line is none.
    pub fn row(&self, index: usize, names: &TokenNames) -> Result<SequenceRow, Error> {
        let Range { start, end } = self.starts[index]..self.starts[index + 1];
        let line = &self.bytes[start as usize..end as usize];
        parse(line)
            .and_then(|line| line.row(names))
            .map_err(|fault| self.wrong_line(index, fault))
    }

    /// The sequence in one line, if it has `length` tokens and fits a model.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn checked_row(
        &self,
        index: usize,
        names: &TokenNames,
        length: usize,
        n_ctx: usize,
    ) -> Result<SequenceRow, Error> {
        let row = self.row(index, names)?;
        if row.tokens.len() != length {
            let message = format_args!(
                "tokens: are {}, in the first line of task.path {length}; all sequences have one \
                 length. Fill short ones up with a token of your own and leave it out of scored",
                row.tokens.len()
            );
            return Err(self.wrong_line(index, message));
        }
        match row.fault(names.len(), n_ctx) {
            None => Ok(row),
            Some(fault) => Err(self.wrong_line(index, fault)),
        }
    }

    /// An error about the file.
    pub fn wrong(&self, message: impl Display) -> Error {
        Error::of(ErrorKind::Config, self.path.display(), message).key(self.key)
    }

    /// An error about one line, counted from 0.
    pub fn wrong_line(&self, index: usize, message: impl Display) -> Error {
        let place = format_args!("{}:{}", self.path.display(), index + 1);
        Error::of(ErrorKind::Config, place, message).key(self.key)
    }
}

fn parse(line: &[u8]) -> Result<Line, String> {
    if line.len() > MOST_LINE_BYTES {
        return Err(format!(
            "has {} bytes, more than {MOST_LINE_BYTES}",
            line.len()
        ));
    }
    serde_json::from_slice(line).map_err(|error| {
        // The line is named already; the library counts it as the first.
        error
            .to_string()
            .replace(" at line 1 column ", " at column ")
    })
}
