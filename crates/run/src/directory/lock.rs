//! One process at a time writes a run. Readers need no permission.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
};

use crate::{Error, ErrorKind};

/// Held as long as this lives; the system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the run at `run`.
    ///
    /// # Errors
    /// If another process has it.
    pub fn take(run: &Path) -> Result<Self, Error> {
        let path = run.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| Error::io(&path, "open", error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::of(
                ErrorKind::Busy,
                run.display(),
                "is being written by another process; wait for it or stop it",
            )),
            Err(TryLockError::Error(error)) => Err(Error::io(&path, "lock", error)),
        }
    }
}
