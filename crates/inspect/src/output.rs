//! How the result of a verb is printed: as text, as JSON, as tables for other programs.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use headlight_report::{Printout, Terminal, tidy_tables};
use headlight_run::{Error, ErrorKind, write_atomically};
use serde::Serialize;

/// Where the result of a verb goes.
#[derive(Debug, Clone)]
pub struct Output {
    /// Whether JSON is asked for.
    pub json: bool,
    /// Where its tables are written; none if nobody asked.
    pub csv: Option<PathBuf>,
    /// What text is laid out for.
    pub terminal: Terminal,
}

impl Output {
    /// Whether text alone is asked for: neither JSON nor tables.
    #[must_use]
    pub fn is_text(&self) -> bool {
        !self.json && self.csv.is_none()
    }

    /// Checks that nobody asked for the tables of a verb that has none.
    ///
    /// # Errors
    /// If somebody did.
    pub fn check_no_tables(&self, verb: &str) -> Result<(), Error> {
        match &self.csv {
            Some(file) => {
                let message = format!("{verb} has no tables");
                Err(Error::new("--csv", message).value(file.display()))
            }
            None => Ok(()),
        }
    }

    /// Prints the result as JSON, or as text within the columns of the terminal, and writes its
    /// tables where they are asked for.
    ///
    /// # Errors
    /// If a file or standard output cannot be written.
    pub fn show<T: Serialize + ?Sized>(
        &self,
        result: &T,
        text: impl FnOnce(&T) -> Printout,
    ) -> Result<(), Error> {
        self.show_text(result, result, Vec::new(), |result| {
            text(result).draw(&self.terminal)
        })
    }

    /// [`show`](Self::show) for text that is no [`Printout`]. `rows` is what is written as tables;
    /// `written` are files that the verb has written already, whose names stand in place of the
    /// text.
    ///
    /// # Errors
    /// As [`show`](Self::show).
    pub fn show_text<T: Serialize + ?Sized, R: Serialize + ?Sized>(
        &self,
        result: &T,
        rows: &R,
        mut written: Vec<PathBuf>,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Error> {
        if let Some(file) = &self.csv {
            written.extend(write_tables(rows, file)?);
        }
        if self.json {
            let json = serde_json::to_string_pretty(result);
            return print(&json.map_err(|error| internal("--json", error))?);
        }
        if written.is_empty() {
            return print(&text(result));
        }
        let names: Vec<String> = written
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        print(&format!("Written to {}.", names.join(", ")))
    }
}

/// Writes the table of `rows` to `file`, and those inside beside it: `heads.csv`,
/// `heads.scores.csv`.
fn write_tables<R: Serialize + ?Sized>(rows: &R, file: &Path) -> Result<Vec<PathBuf>, Error> {
    let rows = serde_json::to_value(rows).map_err(|error| internal("--csv", error))?;
    let tables = tidy_tables(&rows);
    if tables.is_empty() {
        return Err(Error::new("--csv", "there are no rows to write").value(file.display()));
    }
    let mut written = Vec::new();
    for table in tables {
        let path = beside(file, &table.name);
        write_atomically(&path, table.csv.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// `heads.csv` and `scores` make `heads.scores.csv`.
fn beside(file: &Path, table: &str) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    if !table.is_empty() {
        name.push(format!(".{table}"));
    }
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

fn internal(place: &str, error: serde_json::Error) -> Error {
    Error::because(ErrorKind::Internal, place, error)
}

/// Prints a result on standard output. A reader that has gone away (`| head`) is no failure.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    match writeln!(anstream::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::because(ErrorKind::Io, "standard output", error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_beside_the_file_that_is_named() {
        for (file, table, expected) in [
            ("a/heads.csv", "", "a/heads.csv"),
            ("a/heads.csv", "scores", "a/heads.scores.csv"),
            ("heads", "scores", "heads.scores"),
            (
                "run.1/heads.v2.csv",
                "heads.ranges",
                "run.1/heads.v2.heads.ranges.csv",
            ),
        ] {
            assert_eq!(beside(Path::new(file), table), Path::new(expected));
        }
    }
}
