//! The text's files, mapped into memory: pages are read when a sequence needs them.

use std::{
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
};

use headlight_run::{Error, ErrorKind};
use memmap2::Mmap;

/// One file.
pub struct Source {
    path: PathBuf,
    bytes: Mmap,
}

/// Bytes of one file that a sequence may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The file.
    pub source: usize,
    /// Its bytes; begins and ends between tokens.
    pub bytes: Range<usize>,
}

impl Source {
    /// Maps `path`, or every file in it if it is a folder, by name and at any depth.
    ///
    /// # Errors
    /// Names the file, and the line and byte of the first thing that is no text.
    pub fn open_all(path: &Path) -> Result<Vec<Self>, Error> {
        let mut paths = Vec::new();
        collect_files(path, &mut paths)?;
        if paths.is_empty() {
            return Err(wrong(
                path,
                "is a folder without files; expected UTF-8 text",
            ));
        }
        paths.into_iter().map(Self::open).collect()
    }

    fn open(path: PathBuf) -> Result<Self, Error> {
        let unreadable = |error| Error::io(&path, "read", error).key("task.path");
        let file = File::open(&path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(wrong(&path, "is neither a file nor a folder"));
        }
        let bytes = map(&file).map_err(unreadable)?;
        let source = Self { path, bytes };
        source.check()?;
        Ok(source)
    }

    fn check(&self) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Err(wrong(&self.path, "is empty; expected UTF-8 text"));
        }
        let end = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let (at, what) = match (
            self.bytes[..end].iter().position(|&byte| byte == 0),
            self.bytes.get(end),
        ) {
            (Some(nul), _) => (nul, "is NUL; expected text, not binary data".to_owned()),
            (None, Some(byte)) => (
                end,
                format!("0x{byte:02X} is not UTF-8; expected UTF-8 text"),
            ),
            (None, None) => return Ok(()),
        };
        let line = self.bytes[..at].split(|&byte| byte == b'\n').count();
        let place = format!("{}:{line}", self.path.display());
        let message = format_args!("byte {at} {what}");
        Err(Error::of(ErrorKind::Config, place, message).key("task.path"))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its text from `range`, which begins and ends between characters.
    ///
    /// # Panics
    /// If the file was changed after it was opened, so that it is no longer UTF-8.
    #[must_use]
    pub fn text(&self, range: Range<usize>) -> &str {
        std::str::from_utf8(&self.bytes[range]).unwrap_or_else(|_| {
            panic!(
                "{} was changed while it was being read",
                self.path.display()
            )
        })
    }
}

/// The first `share` of all bytes, and the rest, as segments of files; cut where a token may begin,
/// which `may_begin(byte before, next byte)` tells.
#[must_use]
pub fn split(
    sources: &[Source],
    share: f64,
    may_begin: impl Fn(u8, u8) -> bool,
) -> [Vec<Segment>; 2] {
    let total: usize = sources.iter().map(|source| source.bytes.len()).sum();
    let mut left = (total as f64 * share) as usize;
    let mut parts = [Vec::new(), Vec::new()];
    for (index, source) in sources.iter().enumerate() {
        let length = source.bytes.len();
        let mut cut = left.min(length);
        while 0 < cut && cut < length && !may_begin(source.bytes[cut - 1], source.bytes[cut]) {
            cut += 1;
        }
        left = left.saturating_sub(length);
        for (part, bytes) in parts.iter_mut().zip([0..cut, cut..length]) {
            part.extend((!bytes.is_empty()).then_some(Segment {
                source: index,
                bytes,
            }));
        }
    }
    parts
}

/// Files in the order of their paths; whatever begins with a dot is skipped, as `ls` does.
fn collect_files(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let unreadable = |error| Error::io(path, "read", error).key("task.path");
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(unreadable)?.collect();
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries
        .iter()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
    {
        // A link to a folder might lead back here.
        let is_link = entry.file_type().map_err(unreadable)?.is_symlink();
        if !(is_link && entry.path().is_dir()) {
            collect_files(&entry.path(), found)?;
        }
    }
    Ok(())
}

/// An error about a file of the text.
pub fn wrong(path: &Path, message: &str) -> Error {
    Error::of(ErrorKind::Config, path.display(), message).key("task.path")
}

#[expect(
    unsafe_code,
    reason = "a mapped file must not be cut short meanwhile; that cannot be ruled out, only asked for"
)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is only read. Text is checked again whenever it is decoded, so a file
    // that changes under it leads to a panic that says so; one that is cut short ends the process,
    // as the documentation of the task warns.
    unsafe { Mmap::map(file) }
}
