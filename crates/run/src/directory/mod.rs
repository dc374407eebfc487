//! The directory of a run.

mod checkpoint;
mod data;
mod follow;
mod format;
mod lock;
mod log_lengths;
mod logs;
mod patterns;
mod tensorboard;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use headlight_heads::SequenceKind;
use serde::{Serialize, de::DeserializeOwned};

pub use checkpoint::{Best, Checkpoint, CheckpointState, NoWeights, Weights};
pub use data::{Data, RunData};
pub use follow::{Follower, NewRows};
pub use format::FORMAT;
pub(crate) use format::first as first_format;
pub use log_lengths::LogLengths;
pub use patterns::PatternFile;

use crate::{
    Config, Error, ErrorKind, OwnTasks, SeedsSummary, Summary,
    atomic::{parent_of, put_in_place, remove_temporary, temporary_directory_beside, write_new},
    untrusted::{
        MOST_PATTERN_BYTES, MOST_SEEDS_BYTES, MOST_SUMMARY_BYTES, MOST_TEXT_BYTES, from_json,
        read_at_most,
    },
    write_atomically,
};
use lock::Lock;
use tensorboard::EventFile;

/// A run on disk.
///
/// ```text
/// config.toml      data.json         vocabulary.json  tokenizer.json   format, lock
/// validation.jsonl probe.jsonl       summary.json     report.html
/// metrics.jsonl    heads.jsonl       uses.jsonl       events.jsonl     timing.jsonl
/// tensorboard/events.out.tfevents.*              metrics and head scores once more, for TensorBoard
/// patterns/step-N/{probe,task}.safetensors
/// checkpoints/step-N/{weights.safetensors, optimizer.safetensors, state.json, SHA256SUMS}
/// last/            the same, as training ended
/// best/            {weights.safetensors, state.json, SHA256SUMS}
/// ```
#[derive(Debug, Clone)]
pub struct RunDirectory {
    path: PathBuf,
    /// The process' own file for TensorBoard.
    pub(crate) events: EventFile,
    /// Held by who writes.
    _lock: Option<Arc<Lock>>,
}

impl RunDirectory {
    /// Makes a new run directory with the configuration and the data in it, for this process to
    /// write.
    ///
    /// # Errors
    /// If the directory exists and `overwrite` is false, it is not a run, another process writes it,
    /// or a sequence of the data is too long for a file.
    pub fn create(
        path: &Path,
        config: &Config,
        data: &RunData,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let toml = format!(
            "# Written by Headlight {}: every key, defaults too.\n{}",
            crate::VERSION,
            config.to_toml()?
        );
        let mut files = vec![
            ("config.toml", toml.into_bytes()),
            (format::FILE, format::file_text().into_bytes()),
        ];
        files.extend(data.files().map_err(|error| error.at(path.display()))?);
        let _replaced = Self::lock_replaced(path, overwrite)?;
        let cannot = |error: io::Error| Error::io(path, "create", error);
        fs::create_dir_all(parent_of(path)).map_err(cannot)?;
        let new = temporary_directory_beside(path).map_err(cannot)?;
        for (name, bytes) in files {
            write_new(&new.path().join(name), &bytes)
                .map_err(|error| Error::io(&path.join(name), "write", error))?;
        }
        let lock = Lock::take(new.path())?;
        put_in_place(new, path).map_err(cannot)?;
        Ok(Self {
            _lock: Some(Arc::new(lock)),
            ..Self::at(path)
        })
    }

    /// Checks that [`create`](Self::create) may go ahead, without touching anything.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn check_free(path: &Path, overwrite: bool) -> Result<(), Error> {
        Self::lock_replaced(path, overwrite).map(drop)
    }

    /// Checks that a run can be made at `path`; gives the lock of what it replaces.
    fn lock_replaced(path: &Path, overwrite: bool) -> Result<Option<Lock>, Error> {
        let place = path.display();
        match fs::symlink_metadata(path) {
            Err(_) => Ok(None),
            Ok(_) if !overwrite => Err(Error::of(
                ErrorKind::Exists,
                place,
                "exists already; choose another --out, --resume to go on with it, or --overwrite to replace it",
            )),
            Ok(found) if found.is_dir() && path.join("config.toml").is_file() => {
                Lock::take(path).map(Some)
            }
            Ok(_) => Err(Error::of(
                ErrorKind::Exists,
                place,
                "is not a run of this program and is left alone",
            )),
        }
    }

    /// Opens a run that was begun, for this process to go on with. Nothing is changed before
    /// everything is checked.
    ///
    /// # Errors
    /// If it is not a run, is one of another configuration or of other data, or another process
    /// writes it.
    pub fn resume(path: &Path, config: &Config, data: &Data) -> Result<Self, Error> {
        let run = Self::open(path)?;
        run.config()?
            .check_same(config)
            .map_err(|error| error.at(path.display()))?;
        run.data()?.check_same(data)?;
        let lock = Lock::take(path)?;
        remove_temporary(path).map_err(|error| Error::io(path, "clean", error))?;
        Ok(Self {
            _lock: Some(Arc::new(lock)),
            ..run
        })
    }

    /// Whether training has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.path.join("summary.json").is_file()
    }

    /// Opens a run.
    ///
    /// # Errors
    /// If `path` is not a run directory, or one of another [format](FORMAT).
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.is_dir() {
            return Err(Error::of(
                ErrorKind::Missing,
                path.display(),
                "there is no such run directory",
            ));
        }
        if !path.join("config.toml").is_file() {
            return Err(Error::of(
                ErrorKind::Missing,
                path.display(),
                "is not a run directory: it has no config.toml",
            ));
        }
        format::check_run(path)?;
        Ok(Self::at(path))
    }

    fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            events: EventFile::new(path),
            _lock: None,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved configuration. Its task may be one that this program does not have.
    ///
    /// # Errors
    /// If it cannot be read or is not valid.
    pub fn config(&self) -> Result<Config, Error> {
        Config::load_with(&self.path.join("config.toml"), &[], OwnTasks::Any, None)
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), Error> {
        self.write_json("summary.json", summary)
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// If the file cannot be read, or is of another [format](FORMAT); a run that has not ended has
    /// none.
    pub fn summary(&self) -> Result<Summary, Error> {
        let path = self.path.join("summary.json");
        let bytes = read_at_most(&path, MOST_SUMMARY_BYTES)?;
        format::check_json(path.display(), &bytes)?;
        from_json(path.display(), &bytes)
    }

    /// Reads `report.html`.
    ///
    /// # Errors
    /// If the file cannot be read; a run that has not ended has none.
    pub fn report(&self) -> Result<String, Error> {
        let path = self.path.join("report.html");
        String::from_utf8(read_at_most(&path, MOST_TEXT_BYTES)?)
            .map_err(|error| Error::damaged(path.display(), "is not UTF-8").caused_by(error))
    }

    /// Writes the patterns seen after `step` updates on these sequences.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_patterns(
        &self,
        step: usize,
        kind: SequenceKind,
        patterns: &PatternFile,
    ) -> Result<(), Error> {
        let directory = self.subdirectory(&format!("patterns/step-{step}"))?;
        write_atomically(
            &directory.join(format!("{kind}.safetensors")),
            &patterns.to_bytes()?,
        )
    }

    /// What runs that differ in the seed alone have in common, if this is one of several.
    ///
    /// # Errors
    /// If the file beside the runs cannot be read.
    pub fn seeds(&self) -> Result<Option<SeedsSummary>, Error> {
        let beside = self.path.join("../seeds.json");
        if beside.exists() {
            self.read_json("../seeds.json", MOST_SEEDS_BYTES).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The steps whose patterns were written, in order.
    ///
    /// # Errors
    /// If the run has no patterns.
    pub fn pattern_steps(&self) -> Result<Vec<usize>, Error> {
        let path = self.path.join("patterns");
        let entries = fs::read_dir(&path).map_err(|error| Error::io(&path, "read", error))?;
        let step = |entry: fs::DirEntry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("step-")?
                .parse()
                .ok()
        };
        let mut steps: Vec<usize> = entries.filter_map(|entry| step(entry.ok()?)).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Reads the patterns seen after `step` updates on these sequences.
    ///
    /// # Errors
    /// If the file cannot be read or is no pattern file.
    pub fn patterns(&self, step: usize, kind: SequenceKind) -> Result<PatternFile, Error> {
        let path = self
            .path
            .join(format!("patterns/step-{step}/{kind}.safetensors"));
        PatternFile::from_bytes(&read_at_most(&path, MOST_PATTERN_BYTES)?)
            .map_err(|error| error.at(path.display()))
    }

    fn subdirectory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|error| Error::io(&path, "create", error))?;
        Ok(path)
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        let path = self.path.join(name);
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|error| Error::because(ErrorKind::Internal, path.display(), error))?;
        bytes.push(b'\n');
        write_atomically(&path, &bytes)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str, most: u64) -> Result<T, Error> {
        let path = self.path.join(name);
        from_json(path.display(), &read_at_most(&path, most)?)
    }
}
