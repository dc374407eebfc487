//! What was found out about large texts, kept between runs: their hashes and their tokens.
//!
//! Nothing here is needed: whatever is missing, damaged or of another version is made anew.

use std::{
    fs::{File, Metadata},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Arc, Once},
    time::UNIX_EPOCH,
};

use etcetera::{BaseStrategy, base_strategy::choose_native_strategy};
use headlight_run::write_atomically;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{source::map, token_ids::TokenIds};
use headlight_run::sha256;

/// The variable that names the folder.
const FOLDER: &str = "HEADLIGHT_CACHE";
/// Less text is hashed and encoded anew each time: that takes less than a second, for words and
/// characters some milliseconds.
pub const LEAST_BYTES: u64 = 1 << 20;
/// How a file of tokens ends. The number goes up when the same text and tokenizer get other tokens,
/// or the file another form.
const MAGIC: &[u8; 8] = b"hltokn01";

/// A folder for what can be made anew.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// What is known about the tokens in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoded {
    /// The names of all tokens.
    pub names: Vec<String>,
    /// The tokenizer, if one cut the text.
    pub tokenizer: Option<String>,
    /// The number of tokens in each segment.
    pub counts: Vec<usize>,
    /// The tokens that occur in training, if some do not.
    pub training: Option<Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
struct KnownFile {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds since 1970.
    modified: u128,
    sha256: String,
}

impl Cache {
    /// The folder that the variable `HEADLIGHT_CACHE` names; without it, `headlight` in the
    /// platform's folder for caches: `~/.cache` on Linux, `~/Library/Caches` on macOS,
    /// `%LOCALAPPDATA%` on Windows. An empty variable means no cache.
    #[must_use]
    pub fn of_environment() -> Self {
        let folder = match std::env::var_os(FOLDER) {
            Some(folder) if folder.is_empty() => None,
            Some(folder) => Some(folder.into()),
            None => choose_native_strategy()
                .ok()
                .map(|folders| folders.cache_dir().join("headlight")),
        };
        Self { folder }
    }

    /// The folder `folder`, made when something is written.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = Some(folder.into());
        Self { folder }
    }

    /// Keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { folder: None }
    }

    /// The place of a file of this kind and name; `None` where nothing is kept. Neither the file nor
    /// its folder need be there.
    #[must_use]
    pub fn file(&self, kind: &str, name: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(kind).join(name))
    }

    pub(super) fn keeps(&self, bytes: u64) -> bool {
        self.folder.is_some() && bytes >= LEAST_BYTES
    }

    /// The hash of the file at `path` when it had this size and date.
    pub(super) fn hash_of(&self, path: &Path, now: &Metadata) -> Option<String> {
        let place = self.place_of_hash(path, now)?;
        let known: KnownFile = serde_json::from_slice(&std::fs::read(place).ok()?).ok()?;
        let same = known.path == path.canonicalize().ok()?
            && known.bytes == now.len()
            && known.modified == modified(now)?;
        same.then_some(known.sha256)
    }

    pub(super) fn keep_hash(&self, path: &Path, metadata: &Metadata, sha256: &str) {
        let Some(place) = self.place_of_hash(path, metadata) else {
            return;
        };
        let (Ok(path), Some(modified)) = (path.canonicalize(), modified(metadata)) else {
            return;
        };
        let known = KnownFile {
            path,
            bytes: metadata.len(),
            modified,
            sha256: sha256.to_owned(),
        };
        let write = || -> Result<(), headlight_run::Error> {
            let folder = place.parent().unwrap_or(&place);
            std::fs::create_dir_all(folder)
                .map_err(|error| headlight_run::Error::io(folder, "create", error))?;
            write_atomically(&place, &serde_json::to_vec(&known).unwrap_or_default())
        };
        if let Err(error) = write() {
            warn_once(&error);
        }
    }

    fn place_of_hash(&self, path: &Path, metadata: &Metadata) -> Option<PathBuf> {
        if !self.keeps(metadata.len()) {
            return None;
        }
        let path = path.canonicalize().ok()?;
        let name = sha256(path.as_os_str().as_encoded_bytes());
        Some(self.folder.as_ref()?.join("files").join(name + ".json"))
    }

    fn place_of_tokens(&self, key: &str) -> Option<PathBuf> {
        let name = sha256(key.as_bytes());
        Some(self.folder.as_ref()?.join("tokens").join(name))
    }

    /// The tokens kept under `key`, if they are whole.
    pub(super) fn tokens(&self, key: &str) -> Option<(Encoded, TokenIds)> {
        let file = File::open(self.place_of_tokens(key)?).ok()?;
        let file = Arc::new(map(&file).ok()?);
        let (encoded, ids) = read_footer(&file)?;
        let width = TokenIds::width_for(encoded.names.len());
        let count = encoded
            .counts
            .iter()
            .try_fold(0_usize, |sum, &count| sum.checked_add(count))?;
        let is_whole = count.checked_mul(width) == Some(ids);
        is_whole.then(|| (encoded, TokenIds::mapped(&file, 0..ids, width)))
    }

    /// Keeps under `key` what `encode` writes, and opens it. `None` where there is no folder or it
    /// cannot be written, which is said once.
    pub(super) fn keep_tokens<E>(
        &self,
        key: &str,
        encode: impl FnOnce(&mut dyn Write) -> Result<Encoded, E>,
    ) -> Result<Option<(Encoded, TokenIds)>, E> {
        let Some(place) = self.place_of_tokens(key) else {
            return Ok(None);
        };
        let mut file = match TokenFile::create(&place) {
            Ok(file) => file,
            Err(error) => {
                warn_once(&headlight_run::Error::io(&place, "write", error));
                return Ok(None);
            }
        };
        let encoded = encode(&mut file)?;
        if let Err(error) = file.finish(&encoded, &place) {
            warn_once(&headlight_run::Error::io(&place, "write", error));
            return Ok(None);
        }
        Ok(self.tokens(key))
    }
}

fn warn_once(error: &headlight_run::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::warn!("{error}; the tokens of the text are kept in memory (set {FOLDER})");
    });
}

fn modified(metadata: &Metadata) -> Option<u128> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH);
    Some(since.ok()?.as_nanos())
}

/// What stands after the ids, and the bytes that those take.
fn read_footer(file: &[u8]) -> Option<(Encoded, usize)> {
    let rest = file.strip_suffix(MAGIC)?;
    let (rest, checksum) = rest.split_last_chunk::<4>()?;
    if crc32c::crc32c(rest) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (rest, length) = rest.split_last_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let ids = rest.len().checked_sub(length)?;
    Some((serde_json::from_slice(&rest[ids..]).ok()?, ids))
}

/// A file of tokens that is not whole yet.
struct TokenFile {
    file: BufWriter<NamedTempFile>,
    checksum: u32,
    /// What went wrong first. Nothing is written after it.
    failed: Option<io::Error>,
}

impl TokenFile {
    fn create(place: &Path) -> io::Result<Self> {
        let folder = place.parent().unwrap_or(place);
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, NamedTempFile::new_in(folder)?),
            checksum: 0,
            failed: None,
        })
    }

    fn finish(mut self, encoded: &Encoded, place: &Path) -> io::Result<()> {
        let footer = serde_json::to_vec(encoded)?;
        self.write_all(&footer)?;
        self.write_all(&(footer.len() as u64).to_le_bytes())?;
        let checksum = self.checksum.to_le_bytes();
        self.write_all(&checksum)?;
        self.write_all(MAGIC)?;
        if let Some(error) = self.failed {
            return Err(error);
        }
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(place).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for TokenFile {
    /// Never fails: encoding goes on to the end, and [`finish`](Self::finish) says what went wrong.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_none() {
            self.checksum = crc32c::crc32c_append(self.checksum, bytes);
            self.failed = self.file.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
