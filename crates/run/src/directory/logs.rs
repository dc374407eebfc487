//! The logs of a run directory: rows appended as training goes on, and read back.

use serde::Serialize;

use super::{LogLengths, RunDirectory, log_lengths};
use crate::{
    Error, ErrorKind, EventRow, HeadRow, MetricsRow, TimingRow, UsesRow,
    untrusted::{LogRow, MOST_LOG_BYTES, read_at_most, rows_of},
};

impl RunDirectory {
    /// Appends to `metrics.jsonl`, and to the TensorBoard file of this process.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append_metrics(&self, row: &MetricsRow) -> Result<(), Error> {
        self.append("metrics.jsonl", std::slice::from_ref(row))?;
        self.events.append_metrics(row)
    }

    /// Appends to `timing.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_timing(&self, row: &TimingRow) -> Result<(), Error> {
        self.append("timing.jsonl", std::slice::from_ref(row))
    }

    /// Appends to `heads.jsonl`, and to the TensorBoard file of this process.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append_heads(&self, rows: &[HeadRow]) -> Result<(), Error> {
        self.append("heads.jsonl", rows)?;
        self.events.append_heads(rows)
    }

    /// Appends to `events.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_event(&self, row: &EventRow) -> Result<(), Error> {
        self.append("events.jsonl", std::slice::from_ref(row))
    }

    /// Appends to `uses.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_uses(&self, row: &UsesRow) -> Result<(), Error> {
        self.append("uses.jsonl", std::slice::from_ref(row))
    }

    /// All rows of `uses.jsonl`; none where nothing was tested.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn uses(&self) -> Result<Vec<UsesRow>, Error> {
        if self.path().join("uses.jsonl").exists() {
            self.read_rows("uses.jsonl")
        } else {
            Ok(Vec::new())
        }
    }

    /// All rows of `metrics.jsonl`.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, Error> {
        self.read_rows("metrics.jsonl")
    }

    /// All rows of `heads.jsonl`: at each step every head of the model once on each kind of
    /// sequences, at most.
    ///
    /// # Errors
    /// Names the line that cannot be read, or that does not follow on the one before.
    pub fn heads(&self) -> Result<Vec<HeadRow>, Error> {
        let rows: Vec<HeadRow> = self.read_rows("heads.jsonl")?;
        let model = self.config()?.model;
        let at = |row: &HeadRow| (row.step, row.on, row.head);
        let unknown =
            |row: &HeadRow| row.head.layer >= model.n_layers || row.head.head >= model.n_heads;
        let wrong = |index: usize| {
            unknown(&rows[index]) || index > 0 && at(&rows[index - 1]) >= at(&rows[index])
        };
        match (0..rows.len()).find(|&index| wrong(index)) {
            None => Ok(rows),
            Some(index) => {
                let HeadRow { head, step, .. } = &rows[index];
                let place = format!(
                    "{}:{}",
                    self.path().join("heads.jsonl").display(),
                    index + 1
                );
                let message = if unknown(&rows[index]) {
                    "is no head of this model"
                } else {
                    "comes twice or too late"
                };
                Err(Error::damaged(
                    place,
                    format_args!("{head} at step {step} {message}"),
                ))
            }
        }
    }

    /// All rows of `events.jsonl`; none where nothing has happened.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn events(&self) -> Result<Vec<EventRow>, Error> {
        if self.path().join("events.jsonl").exists() {
            self.read_rows("events.jsonl")
        } else {
            Ok(Vec::new())
        }
    }

    /// Cuts every log back to the length it had at a checkpoint.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub fn cut_logs(&self, lengths: &LogLengths) -> Result<(), Error> {
        log_lengths::cut_back(self.path(), lengths)
    }

    /// Every log's length.
    ///
    /// # Errors
    /// If a log cannot be asked.
    pub fn log_lengths(&self) -> Result<LogLengths, Error> {
        log_lengths::lengths(self.path())
    }

    fn append<T: Serialize>(&self, name: &str, rows: &[T]) -> Result<(), Error> {
        let path = self.path().join(name);
        let mut lines = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut lines, row)
                .map_err(|error| Error::because(ErrorKind::Internal, path.display(), error))?;
            lines.push(b'\n');
        }
        log_lengths::append(&path, &lines)
    }

    fn read_rows<R: LogRow>(&self, name: &str) -> Result<Vec<R>, Error> {
        let path = self.path().join(name);
        rows_of(&path, 0, &read_at_most(&path, MOST_LOG_BYTES)?)
    }
}
