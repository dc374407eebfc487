//! The format of a run's files: which programs can read them.

use std::{fmt::Display, path::Path};

use serde::Deserialize;

use crate::{
    Error, ErrorKind, VERSION,
    untrusted::{MOST_FORMAT_BYTES, from_json, read_at_most},
};

/// The format of the runs that this program writes, and the only one that it reads.
///
/// It grows by 1 when older programs would read something else than was written, or when this
/// program needs what they did not write. A new file, or a new key, that both may do without is no
/// new format.
///
/// 1. The first; it may leave out its number.
/// 2. A run keeps what it depends on: `data.json`, `tokenizer.json`, `validation.jsonl` and
///    `probe.jsonl`. A number that JSON does not have is text.
///
/// A run says its format in the file `format`, which is there from the beginning, and again in
/// `summary.json` and `state.json`, which other programs read alone.
pub const FORMAT: u32 = 2;

/// The name of the file.
pub const FILE: &str = "format";

/// What the file holds.
pub fn file_text() -> String {
    format!("{FORMAT}\n")
}

/// The format of files that do not say it.
pub fn first() -> u32 {
    1
}

/// Checks that this program reads the run at `run`.
///
/// # Errors
/// Names both formats if the run's is another, or the file if it holds no format.
pub fn check_run(run: &Path) -> Result<(), Error> {
    let path = run.join(FILE);
    if !path.exists() {
        return check(run.display(), first());
    }
    let bytes = read_at_most(&path, MOST_FORMAT_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let format = text.trim().parse().map_err(|error| {
        Error::damaged(path.display(), "must hold the number of a format").caused_by(error)
    })?;
    check(run.display(), format)
}

/// Checks that this program reads the JSON of the file `place`. What else is in it may be anything
/// if it is of another format, so this comes before it is parsed.
///
/// # Errors
/// Names both formats if the file's is another.
pub fn check_json(place: impl Display, bytes: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct OfFormat {
        #[serde(default = "first")]
        format: u32,
    }
    let OfFormat { format } = from_json(&place, bytes)?;
    check(place, format)
}

fn check(place: impl Display, format: u32) -> Result<(), Error> {
    if format == FORMAT {
        return Ok(());
    }
    let message = format_args!(
        "is of format {format}; this is Headlight {VERSION}, which reads format {FORMAT}"
    );
    Err(Error::of(ErrorKind::Version, place, message))
}
