//! `sequences`: sequences that somebody has written into files, one a line.

mod line;
mod order;
mod row_file;
mod token_names;

use std::sync::Mutex;

use headlight_run::{Error, SequenceRow, SequencesConfig};

use self::{order::Order, row_file::RowFile, token_names::TokenNames};
use crate::{DataFile, RowKey, Sequence, Task, Use, Validation, Vocabulary};

/// Validation runs over all of its sequences at every measurement.
const MOST_VALIDATION_ROWS: usize = 4096;

/// Every sequence of a file once in each epoch, in an order that the seed and the epoch decide. All
/// sequences of both files have one length.
///
/// The file that is learned from is mapped into memory and read line by line, so that one larger
/// than memory trains; it must not be changed meanwhile.
pub struct Sequences {
    training: RowFile,
    validation: Vec<SequenceRow>,
    names: TokenNames,
    files: Vec<DataFile>,
    training_tokens: Vec<u32>,
    order: Mutex<Order>,
}

impl Sequences {
    /// Opens the files and checks every line.
    ///
    /// # Errors
    /// Names the file, the line, and the field that is wrong.
    pub fn open(config: &SequencesConfig, n_ctx: usize) -> Result<Self, Error> {
        let mut names = match &config.vocabulary {
            Some(path) => TokenNames::read(path)?,
            None => TokenNames::default(),
        };
        let mut training = RowFile::map(&config.path, "task.path")?;
        let mut validation = RowFile::map(&config.validation, "task.validation")?;
        training.find_lines(&mut names)?;
        validation.find_lines(&mut names)?;
        names.finish();
        let mut files = vec![training.file(), validation.file()];
        if let Some(path) = &config.vocabulary {
            files.push(DataFile::read(path)?);
        }

        let length = training.row(0, &names)?.tokens.len();
        let mut occurs = vec![false; names.len()];
        for line in 0..training.len() {
            let row = training.checked_row(line, &names, length, n_ctx)?;
            for &token in &row.tokens {
                occurs[token as usize] = true;
            }
        }
        if validation.len() > MOST_VALIDATION_ROWS {
            let message = format_args!(
                "has {} sequences, more than {MOST_VALIDATION_ROWS}; all are measured on each time",
                validation.len()
            );
            return Err(validation.wrong(message));
        }
        let mut rows = Vec::new();
        for line in 0..validation.len() {
            let row = validation.checked_row(line, &names, length, n_ctx)?;
            if let Some(fault) = rows.first().and_then(|first| row.unlike(first)) {
                return Err(validation.wrong_line(line, fault));
            }
            rows.push(row);
        }
        let mut training_tokens = Vec::new();
        for (token, occurs) in (0..).zip(occurs) {
            if occurs {
                training_tokens.push(token);
            }
        }
        Ok(Self {
            training,
            validation: rows,
            names,
            files,
            training_tokens,
            order: Mutex::default(),
        })
    }
}

impl Task for Sequences {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names(self.names.list())
    }

    /// # Panics
    /// If a file was changed after it was opened.
    fn sequence(&self, row: RowKey) -> Sequence {
        if row.usage == Use::Validation {
            return Sequence::from(self.validation[row.row].clone());
        }
        let before = row.step.saturating_sub(1) * row.rows + row.row;
        let epoch = before / self.training.len();
        let line = {
            let mut order = self.order.lock().unwrap_or_else(|poisoned| {
                // Whatever is in it, an order is made anew for another seed or epoch.
                poisoned.into_inner()
            });
            order.line(
                row.seed,
                epoch,
                before % self.training.len(),
                self.training.len(),
            )
        };
        let read = self.training.row(line, &self.names);
        Sequence::from(read.unwrap_or_else(|error| panic!("changed while it was read: {error}")))
    }

    fn validation(&self, _seed: u64) -> Validation {
        Validation::of_rows(self.validation.clone())
    }

    fn validation_rows(&self) -> usize {
        self.validation.len()
    }

    fn files(&self) -> Vec<DataFile> {
        self.files.clone()
    }

    fn training_tokens(&self) -> Option<Vec<u32>> {
        Some(self.training_tokens.clone()).filter(|tokens| tokens.len() < self.names.len())
    }
}

#[cfg(test)]
mod tests;
