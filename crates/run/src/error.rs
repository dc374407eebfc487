//! What went wrong: one line for a person, a kind and a cause for a program.

use std::{error, fmt, io, path::Path};

/// Anything that goes wrong with a run. Prints as one line:
/// `place: key = value: what is wrong`.
///
/// The line is for a person and is complete: it holds the words of the cause too. A program asks
/// for the [`kind`](Self::kind), and for the cause itself by
/// [`source`](error::Error::source): the `std::io::Error` of a disk, the `serde_json::Error` of a
/// file.
///
/// ```
/// use std::{error::Error as _, io, path::Path};
/// use headlight_run::{Config, Error, ErrorKind};
///
/// let error = Error::config("must be at least 1").key("train.steps").value(0);
/// assert_eq!(error.to_string(), "config: train.steps = 0: must be at least 1");
/// assert_eq!(error.kind(), ErrorKind::Config);
///
/// let error = Config::load(Path::new("nowhere.toml"), &[]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Missing);
/// let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
/// assert_eq!(cause.kind(), io::ErrorKind::NotFound);
/// ```
#[derive(Debug)]
pub struct Error {
    /// Boxed, so that a `Result` is not much larger than what it holds when all is well.
    parts: Box<Parts>,
}

#[derive(Debug)]
struct Parts {
    kind: ErrorKind,
    place: String,
    key: Option<String>,
    value: Option<String>,
    message: String,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, a prompt or a question asks for something that cannot be.
    Argument,
    /// A key of a configuration is unknown, missing or has a value that cannot be.
    Config,
    /// A file, a folder or a value that must be there is not.
    Missing,
    /// A file or a folder is there already and is left alone.
    Exists,
    /// Another process has the run or the port.
    Busy,
    /// The system does not let this path or address be used: it belongs to somebody else, cannot
    /// be written, or is a folder where a file is due.
    Denied,
    /// A file does not hold what it must: it is damaged, of another run, or no such file at all.
    Damaged,
    /// A file is larger than any that a run writes; see [`untrusted`](crate::untrusted).
    TooLarge,
    /// A run of another version of this program, or of another device.
    Version,
    /// Reading or writing failed: a disk is full, a pipe is broken.
    Io,
    /// A signal asked to stop before the end.
    Interrupted,
    /// The program could not do its own part: start a thread, handle signals, write a value as
    /// JSON.
    Internal,
}

impl ErrorKind {
    /// Whether asking for something else would help: what was asked for is wrong, or what it names.
    /// Otherwise the program or the machine failed.
    ///
    /// ```
    /// use headlight_run::ErrorKind;
    ///
    /// assert!(ErrorKind::Missing.is_wrong_input());
    /// assert!(!ErrorKind::Io.is_wrong_input()); // a full disk
    /// ```
    #[must_use]
    pub fn is_wrong_input(self) -> bool {
        !matches!(self, Self::Io | Self::Internal | Self::Interrupted)
    }

    /// The kind of what the system answered about a path or an address.
    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::AddrInUse => Self::Busy,
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename => Self::Denied,
            _ => Self::Io,
        }
    }
}

impl Error {
    /// An error about `place`, a file or an argument.
    #[must_use]
    pub fn of(kind: ErrorKind, place: impl fmt::Display, message: impl fmt::Display) -> Self {
        let parts = Box::new(Parts {
            kind,
            place: one_line(place),
            key: None,
            value: None,
            message: one_line(message),
            source: None,
        });
        Self { parts }
    }

    /// [`ErrorKind::Argument`]: `place` asks for something that cannot be.
    #[must_use]
    pub fn new(place: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Argument, place, message)
    }

    /// [`ErrorKind::Config`]; to be completed by [`key`](Self::key) and [`value`](Self::value).
    #[must_use]
    pub fn config(message: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Config, "config", message)
    }

    /// [`ErrorKind::Damaged`]: `place`, a file or a run, does not hold what it must.
    #[must_use]
    pub fn damaged(place: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Damaged, place, message)
    }

    /// An error about `place` that says what its cause says.
    #[must_use]
    pub fn because(
        kind: ErrorKind,
        place: impl fmt::Display,
        cause: impl error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::of(kind, place, &cause).caused_by(cause)
    }

    /// A file that could not be read or written, of the kind that the system's answer is.
    #[must_use]
    pub fn io(path: &Path, doing: &str, cause: io::Error) -> Self {
        let message = format_args!("cannot {doing}: {cause}");
        Self::of(ErrorKind::of_io(&cause), path.display(), message).caused_by(cause)
    }

    /// What the system answered about `place`, for example a port.
    #[must_use]
    pub fn system(place: impl fmt::Display, cause: io::Error) -> Self {
        Self::because(ErrorKind::of_io(&cause), place, cause)
    }

    /// Names the key.
    #[must_use]
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.parts.key = Some(one_line(key));
        self
    }

    /// Names the value.
    #[must_use]
    pub fn value(mut self, value: impl fmt::Display) -> Self {
        self.parts.value = Some(one_line(value));
        self
    }

    /// Keeps the error that this one comes from.
    #[must_use]
    pub fn caused_by(mut self, cause: impl error::Error + Send + Sync + 'static) -> Self {
        self.parts.source = Some(Box::new(cause));
        self
    }

    /// The same error about another place.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.parts.place = one_line(place);
        self
    }

    /// The same error, in which `path` is called `name`.
    ///
    /// ```
    /// use std::path::Path;
    /// use headlight_run::Error;
    ///
    /// let error = Error::damaged("/tmp/x3f/summary.json", "is cut off").calling(Path::new("/tmp/x3f"), "compiled:sort");
    /// assert_eq!(error.to_string(), "compiled:sort/summary.json: is cut off");
    /// ```
    #[must_use]
    pub fn calling(mut self, path: &Path, name: impl fmt::Display) -> Self {
        let (path, name) = (path.display().to_string(), one_line(name));
        for text in [&mut self.parts.place, &mut self.parts.message] {
            *text = text.replace(&path, &name);
        }
        self
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.parts.kind
    }

    /// The file or the argument that it is about.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.parts.place
    }

    /// The key, if one was named.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.parts.key.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            place,
            key,
            value,
            message,
            ..
        } = &*self.parts;
        write!(f, "{place}: ")?;
        match (key, value) {
            (Some(key), Some(value)) => write!(f, "{key} = {value}: ")?,
            (Some(key), None) => write!(f, "{key}: ")?,
            (None, Some(value)) => write!(f, "{value}: ")?,
            (None, None) => {}
        }
        f.write_str(message)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.parts.source {
            Some(source) => Some(&**source),
            None => None,
        }
    }
}

/// Whatever the input held, the message stays one readable line.
pub(crate) fn one_line(text: impl fmt::Display) -> String {
    let mut line: String = text
        .to_string()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(400)
        .collect();
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use std::{error::Error as _, fs};

    use super::*;
    use crate::{Config, Data, RunData, RunDirectory};

    const CONFIG: &str = "
        task = { name = 'repeat' }
        model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }
        train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }
    ";

    fn has_cause<E: error::Error + 'static>(error: &Error) -> bool {
        error.source().is_some_and(<dyn error::Error>::is::<E>)
    }

    #[test]
    fn what_differs_in_kind_is_told_apart_and_its_cause_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let config = Config::parse(CONFIG, "a.toml", &[]).unwrap();

        let wrong_key = Config::parse(CONFIG, "a.toml", &["sede=1".to_owned()]).unwrap_err();
        assert_eq!(wrong_key.kind(), ErrorKind::Config);
        assert!(has_cause::<toml::de::Error>(&wrong_key));

        let run = RunDirectory::create(&path, &config, &RunData::default(), false).unwrap();
        let exists = RunDirectory::create(&path, &config, &RunData::default(), false).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::Exists);
        let busy = RunDirectory::resume(&path, &config, &Data::default()).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);

        let missing = run.summary().unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Missing);
        assert!(has_cause::<io::Error>(&missing));

        fs::write(path.join("vocabulary.json"), "[1]").unwrap();
        let damaged = run.vocabulary().unwrap_err();
        assert_eq!(damaged.kind(), ErrorKind::Damaged);
        assert!(has_cause::<serde_json::Error>(&damaged));

        let long = " ".repeat(crate::untrusted::MOST_CONFIG_BYTES as usize + 1);
        fs::write(path.join("config.toml"), long).unwrap();
        assert_eq!(run.config().unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn a_full_disk_is_no_wrong_input_and_a_path_that_cannot_be_is() {
        let kind = |cause: io::ErrorKind| Error::io(Path::new("a"), "write", cause.into()).kind();
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(kind(full), ErrorKind::Io);
            assert!(!kind(full).is_wrong_input());
        }
        for (cause, expected) in [
            (io::ErrorKind::NotFound, ErrorKind::Missing),
            (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
            (io::ErrorKind::IsADirectory, ErrorKind::Denied),
            (io::ErrorKind::AddrInUse, ErrorKind::Busy),
        ] {
            assert_eq!(kind(cause), expected);
            assert!(expected.is_wrong_input());
        }
    }
}
