//! The logs of a run: files of rows that only grow, and their lengths at a checkpoint.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::Error;

/// The logs. Other files of rows are written once and never cut.
const LOGS: [&str; 5] = [
    "events.jsonl",
    "heads.jsonl",
    "metrics.jsonl",
    "timing.jsonl",
    "uses.jsonl",
];

/// Every log's length in bytes, by the name of its file.
pub type LogLengths = BTreeMap<String, u64>;

/// Appends lines, or leaves the file as it was.
pub fn append(path: &Path, lines: &[u8]) -> Result<(), Error> {
    let append = || -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        file.write_all(lines).inspect_err(|_| {
            // The disk may be full: half a line would make the whole file unreadable.
            let _ = file.set_len(length);
        })
    };
    append().map_err(|error| Error::io(path, "append", error))
}

/// Every log's length.
pub fn lengths(run: &Path) -> Result<LogLengths, Error> {
    let length = |name: &str| {
        let path = run.join(name);
        let found = fs::metadata(&path).map_err(|error| Error::io(&path, "measure", error))?;
        Ok((name.to_owned(), found.len()))
    };
    names(run).into_iter().map(length).collect()
}

/// Flushes every log of `run` to disk.
pub fn flush(run: &Path) -> Result<(), Error> {
    names(run).iter().try_for_each(|name| {
        let path = run.join(name);
        // Windows flushes only what is open for writing.
        let flush = || OpenOptions::new().append(true).open(&path)?.sync_all();
        flush().map_err(|error| Error::io(&path, "flush", error))
    })
}

/// Checks that every log is at least as long as it was.
pub fn check(run: &Path, lengths: &LogLengths) -> Result<(), Error> {
    for (name, &length) in lengths {
        // A name from a file: it must not lead out of the run.
        if !LOGS.contains(&name.as_str()) {
            return Err(Error::damaged(
                run.display(),
                format_args!("{name} is not the name of a log"),
            ));
        }
        let found = fs::metadata(run.join(name)).map_or(0, |file| file.len());
        if found < length {
            let message = format!("has {found} bytes, at the checkpoint it had {length}");
            return Err(Error::damaged(run.join(name).display(), message));
        }
    }
    Ok(())
}

/// Cuts every log back to the length it had; a log that was not there then is emptied.
pub fn cut_back(run: &Path, lengths: &LogLengths) -> Result<(), Error> {
    for name in names(run) {
        let path = run.join(name);
        let cut = || {
            OpenOptions::new()
                .write(true)
                .open(&path)?
                .set_len(lengths.get(name).copied().unwrap_or(0))
        };
        cut().map_err(|error| Error::io(&path, "cut", error))?;
    }
    Ok(())
}

/// The logs that there are.
fn names(run: &Path) -> Vec<&'static str> {
    let mut names = LOGS.to_vec();
    names.retain(|name| run.join(name).exists());
    names
}
