//! A file that sequences were made from, known by its bytes.

use std::{
    fmt::Write,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::Error;

/// Bytes that are hashed at once.
const PART: usize = 1 << 20;

/// A file that a task read, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its path, as it was opened; a relative one starts at the working directory of training.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
}

/// A path that is no text is written as near as can be: it is for a person.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
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
            let mut part = vec![0; PART];
            let mut bytes = 0;
            loop {
                let count = file.read(&mut part)?;
                if count == 0 {
                    break;
                }
                hash.update(&part[..count]);
                bytes += count as u64;
            }
            Ok(Self {
                path: path.to_owned(),
                bytes,
                sha256: digits(&hash.finalize()),
            })
        };
        read().map_err(|error| Error::io(path, "read", error))
    }
}

/// SHA-256 of `bytes`, 64 hexadecimal digits.
///
/// ```
/// // FIPS 180-2, appendix B.1.
/// assert!(headlight_run::sha256(b"abc").starts_with("ba7816bf8f01cfea"));
/// ```
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

fn digits(digest: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * digest.len());
    for byte in digest {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
