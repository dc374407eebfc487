//! A file that sequences were made from.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use headlight_run::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A file that a task read, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its path, as it was opened.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
}

impl DataFile {
    /// Reads the whole file at `path`, however its size and date compare with earlier ones.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let read = || -> io::Result<Self> {
            let mut file = File::open(path)?;
            let mut hash = Sha256::new();
            let mut buffer = vec![0; 1 << 20];
            let mut bytes = 0;
            loop {
                let count = file.read(&mut buffer)?;
                if count == 0 {
                    break;
                }
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
            Ok(Self {
                path: path.to_owned(),
                bytes,
                sha256: hex(&hash.finalize()),
            })
        };
        read().map_err(|error| Error::io(path, "read", error))
    }
}

/// SHA-256 of `bytes`, 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
