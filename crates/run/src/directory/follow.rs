//! A run that is read while it is written.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::RunDirectory;
use crate::{
    Error, EventRow, HeadRow, MetricsRow, TimingRow,
    untrusted::{LogRow, MOST_LOOK_BYTES, rows_of},
};

/// Reads each row of a run under way once, as soon as its line is whole.
///
/// A run that goes on from a checkpoint writes the rows after it again, to the same bytes: they are
/// not read twice.
#[derive(Debug)]
pub struct Follower {
    metrics: Tail,
    heads: Tail,
    events: Tail,
    timing: Tail,
}

/// Rows that came since the last look, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewRows {
    /// Of `metrics.jsonl`.
    pub metrics: Vec<MetricsRow>,
    /// Of `heads.jsonl`.
    pub heads: Vec<HeadRow>,
    /// Of `events.jsonl`.
    pub events: Vec<EventRow>,
    /// Of `timing.jsonl`.
    pub timing: Vec<TimingRow>,
}

impl Follower {
    /// Follows `run` from its first row on.
    #[must_use]
    pub fn new(run: &RunDirectory) -> Self {
        let log = |name: &str| Tail::new(run.path().join(name));
        Self {
            metrics: log("metrics.jsonl"),
            heads: log("heads.jsonl"),
            events: log("events.jsonl"),
            timing: log("timing.jsonl"),
        }
    }

    /// What is new.
    ///
    /// # Errors
    /// Names the log that cannot be read.
    pub fn new_rows(&mut self) -> Result<NewRows, Error> {
        Ok(NewRows {
            metrics: self.metrics.rows()?,
            heads: self.heads.rows()?,
            events: self.events.rows()?,
            timing: self.timing.rows()?,
        })
    }
}

/// A log, and how many of its bytes and lines were read.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    read: u64,
    lines: usize,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: 0,
            lines: 0,
        }
    }

    /// The rows of the lines that are whole by now; none of a log that is not there yet.
    fn rows<R: LogRow>(&mut self) -> Result<Vec<R>, Error> {
        let mut bytes = match read_from(&self.path, self.read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| Error::io(&self.path, "read", error))?,
        };
        // The last line may still be under way.
        bytes.truncate(
            bytes
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |end| end + 1),
        );
        let rows = rows_of(&self.path, self.lines, &bytes)?;
        self.read += bytes.len() as u64;
        self.lines += rows.len();
        Ok(rows)
    }
}

fn read_from(path: &Path, start: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let new = file
        .metadata()?
        .len()
        .saturating_sub(start)
        .min(MOST_LOOK_BYTES);
    let mut bytes = Vec::with_capacity(new as usize);
    file.take(new).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write};

    use super::*;

    impl LogRow for u32 {
        fn held(&self) -> usize {
            0
        }
    }

    #[test]
    fn every_row_is_read_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.jsonl");
        let append = |text: &str| {
            let file = OpenOptions::new().create(true).append(true).open(&path);
            file.unwrap().write_all(text.as_bytes()).unwrap();
        };
        let mut tail = Tail::new(path.clone());
        assert!(tail.rows::<u32>().unwrap().is_empty());
        append("1\n2\n3");
        assert_eq!(tail.rows::<u32>().unwrap(), [1, 2]);
        assert!(tail.rows::<u32>().unwrap().is_empty());
        append("4\n");
        assert_eq!(tail.rows::<u32>().unwrap(), [34]);

        // Cut back to a checkpoint and written again: known rows are not told anew.
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(2)
            .unwrap();
        assert!(tail.rows::<u32>().unwrap().is_empty());
        append("2\n34\n5\n");
        assert_eq!(tail.rows::<u32>().unwrap(), [5]);

        append("six\n");
        assert!(
            tail.rows::<u32>()
                .unwrap_err()
                .to_string()
                .contains("numbers.jsonl:5: ")
        );
    }
}
