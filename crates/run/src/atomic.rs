//! A file is there whole or not at all.

use std::{fs::File, io::Write, path::Path};

use crate::InputError;

/// Writes beside `path`, flushes to disk and renames: a reader sees the old file or the new one, never a part.
///
/// # Errors
/// Names the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), InputError> {
    let write = || -> std::io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let file = file.persist(path).map_err(|error| error.error)?;
        make_readable(&file)?;
        // The rename itself is on disk once the directory is.
        if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
    };
    write().map_err(|error| InputError::io(path, "write", &error))
}

/// Temporary files are private; a run's files are as readable as any other.
fn make_readable(file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}
