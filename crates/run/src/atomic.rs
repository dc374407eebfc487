//! A file or a directory is there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use tempfile::TempDir;

use crate::Error;

/// How the names begin of what is not whole yet.
const TEMPORARY: &str = ".tmp";

/// Writes beside `path`, flushes to disk and renames: a reader sees the old file or the new one,
/// never a part.
///
/// # Errors
/// Names the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let directory = parent_of(path);
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let file = file.persist(path).map_err(|error| error.error)?;
        make_readable(&file)?;
        sync_directory(directory)
    };
    write().map_err(|error| Error::io(path, "write", error))
}

/// Writes the files of a directory beside `path`, flushes them to disk and renames: whoever finds
/// the directory finds all of its files, whole. A directory that was there before goes only when
/// the new one is on disk.
pub fn write_directory_atomically(path: &Path, files: &[(&str, &[u8])]) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(parent_of(path))?;
        let new = temporary_directory_beside(path)?;
        for (name, bytes) in files {
            write_new(&new.path().join(name), bytes)?;
        }
        put_in_place(new, path)
    };
    write().map_err(|error| Error::io(path, "write", error))
}

/// Writes a file into a directory that is not in its place yet, and flushes it to disk.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// An empty directory beside `path`, removed again unless it is [put in place](put_in_place).
pub fn temporary_directory_beside(path: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o755));
    }
    builder.tempdir_in(parent_of(path))
}

/// Renames `new` to `path`; what was there before is moved aside first and removed last.
pub fn put_in_place(new: TempDir, path: &Path) -> io::Result<()> {
    sync_directory(new.path())?;
    let old = temporary_directory_beside(path)?;
    if fs::symlink_metadata(path).is_ok() {
        fs::rename(path, old.path().join("replaced"))?;
    }
    fs::rename(new.path(), path)?;
    // Nothing is left under its name for the guard to remove.
    let _ = new.keep();
    sync_directory(parent_of(path))
}

/// Removes what a process that was killed left half-written below `directory`.
pub fn remove_temporary(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        let is_directory = entry?.is_dir();
        let is_temporary = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()));
        match (is_temporary, is_directory) {
            (true, true) => fs::remove_dir_all(path)?,
            (true, false) => fs::remove_file(path)?,
            (false, true) => remove_temporary(&path)?,
            (false, false) => {}
        }
    }
    Ok(())
}

/// The directory that `path` is in.
pub fn parent_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A rename is on disk once the directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

/// Temporary files are private; a run's files are as readable as any other.
fn make_readable(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}
