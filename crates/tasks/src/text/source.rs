//! The text's files, mapped into memory: pages are read when somebody needs them.

use std::{
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use headlight_run::{DataFile, Error, ErrorKind, sha256};
use memmap2::Mmap;

use super::Cache;

/// How UTF-8 files of some programs begin.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One file.
pub struct Source {
    file: DataFile,
    bytes: Arc<Mmap>,
}

/// Bytes of one file that a sequence may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The file.
    pub source: usize,
    /// Its bytes; begins and ends between characters.
    pub bytes: Range<usize>,
}

impl Source {
    /// Maps `path`, or every file in it if it is a folder, by name and at any depth.
    ///
    /// # Errors
    /// Names the file, and the line and byte of the first thing that is no text.
    pub fn open_all(path: &Path, cache: &Cache) -> Result<Vec<Self>, Error> {
        let mut paths = Vec::new();
        collect_files(path, &mut paths)?;
        if paths.is_empty() {
            return Err(wrong(
                path,
                "is a folder without files; expected UTF-8 text",
            ));
        }
        let open = |path: &PathBuf| Self::open(path, cache);
        paths.iter().map(open).collect()
    }

    fn open(path: &Path, cache: &Cache) -> Result<Self, Error> {
        let unreadable = |error| Error::io(path, "read", error).key("task.path");
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(wrong(path, "is neither a file nor a folder"));
        }
        let bytes = map(&file).map_err(unreadable)?;
        // A file whose hash is known was checked when the hash was taken.
        let sha256 = if let Some(hash) = cache.hash_of(path, &metadata) {
            hash
        } else {
            check(path, &bytes)?;
            let hash = sha256(&bytes);
            cache.keep_hash(path, &metadata, &hash);
            hash
        };
        Ok(Self {
            file: DataFile {
                path: path.to_owned(),
                bytes: bytes.len() as u64,
                sha256,
            },
            bytes: Arc::new(bytes),
        })
    }

    /// What it is.
    #[must_use]
    pub fn file(&self) -> &DataFile {
        &self.file
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &Arc<Mmap> {
        &self.bytes
    }

    /// Where its text is: all of it but for a byte order mark.
    fn text_range(&self) -> Range<usize> {
        text_start(&self.bytes)..self.bytes.len()
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
                self.path().display()
            )
        })
    }
}

fn text_start(bytes: &[u8]) -> usize {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    }
}

fn check(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if text_start(bytes) == bytes.len() {
        return Err(wrong(path, "is empty; expected UTF-8 text"));
    }
    let end = match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    let (at, what) = match (
        bytes[..end].iter().position(|&byte| byte == 0),
        bytes.get(end),
    ) {
        (Some(nul), _) => (nul, "is NUL; expected text, not binary data".to_owned()),
        (None, Some(byte)) => (
            end,
            format!("0x{byte:02X} is not UTF-8; expected UTF-8 text"),
        ),
        (None, None) => return Ok(()),
    };
    let line = bytes[..at].split(|&byte| byte == b'\n').count();
    let place = format!("{}:{line}", path.display());
    let message = format_args!("byte {at} {what}");
    Err(Error::of(ErrorKind::Config, place, message).key("task.path"))
}

/// The first `share` of all bytes, and the rest, as segments of files; cut between characters.
#[must_use]
pub fn split(sources: &[Source], share: f64) -> [Vec<Segment>; 2] {
    let total: usize = sources.iter().map(|source| source.bytes.len()).sum();
    let mut left = (total as f64 * share) as usize;
    let mut parts = [Vec::new(), Vec::new()];
    for (index, source) in sources.iter().enumerate() {
        let Range { start, end } = source.text_range();
        let mut cut = left.clamp(start, end);
        while cut < end && continues_character(source.bytes[cut]) {
            cut += 1;
        }
        left = left.saturating_sub(end);
        for (part, bytes) in parts.iter_mut().zip([start..cut, cut..end]) {
            part.extend((!bytes.is_empty()).then_some(Segment {
                source: index,
                bytes,
            }));
        }
    }
    parts
}

/// Bytes of UTF-8 that continue a character are 10xxxxxx.
fn continues_character(byte: u8) -> bool {
    byte & 0xC0 == 0x80
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
pub fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is only read. Text is checked again whenever it is decoded, so a file
    // that changes under it leads to a panic that says so; one that is cut short ends the process,
    // as the documentation of the task warns.
    unsafe { Mmap::map(file) }
}
