//! The directory of a run.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::{
    Config, EventRow, HeadRow, InputError, MetricsRow, PatternFile, SeedsSummary, Summary, TimingRow, UsesRow,
    capped::read_capped, tensorboard::EventFile, vocabulary::TokenNames, write_atomically,
};

/// The largest weights file that is read.
const MOST_WEIGHT_BYTES: u64 = 4 << 30;
/// The largest of the other files that is read.
const MOST_BYTES: u64 = 1 << 30;

/// A run on disk.
///
/// ```text
/// config.toml      vocabulary.json   summary.json     report.html
/// metrics.jsonl    heads.jsonl       uses.jsonl       events.jsonl     timing.jsonl
/// tensorboard/events.out.tfevents.*              metrics and head scores once more, for TensorBoard
/// patterns/step-N/{probe,task}.safetensors
/// checkpoints/step-N/weights.safetensors              last/weights.safetensors, beside each its SHA-256
/// ```
#[derive(Debug, Clone)]
pub struct RunDirectory {
    path: PathBuf,
    events: EventFile,
}

/// Which weights of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// As kept after this many updates.
    Step(usize),
    /// As training ended.
    Last,
}

impl RunDirectory {
    /// Makes a new run directory and writes the configuration into it.
    ///
    /// # Errors
    /// If the directory exists and `overwrite` is false, or it is not a run.
    pub fn create(path: &Path, config: &Config, overwrite: bool) -> Result<Self, InputError> {
        let run = Self::at(path);
        let toml = config.to_toml()?;
        run.check_free(overwrite)?;
        if path.exists() {
            fs::remove_dir_all(path).map_err(|error| InputError::io(path, "remove", &error))?;
        }
        fs::create_dir_all(path).map_err(|error| InputError::io(path, "create", &error))?;
        write_atomically(&run.path.join("config.toml"), toml.as_bytes())?;
        Ok(run)
    }

    /// Checks that [`create`](Self::create) would go ahead, without touching anything.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    fn check_free(&self, overwrite: bool) -> Result<(), InputError> {
        let place = self.path.display();
        match fs::symlink_metadata(&self.path) {
            Err(_) => Ok(()),
            Ok(_) if !overwrite => {
                Err(InputError::new(place, "exists already; choose another --out, or --overwrite to replace it"))
            }
            Ok(found) if found.is_dir() && self.path.join("config.toml").is_file() => Ok(()),
            Ok(_) => Err(InputError::new(place, "is not a run of this program and is left alone")),
        }
    }

    /// Opens a run.
    ///
    /// # Errors
    /// If `path` is not a run directory.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if !path.is_dir() {
            return Err(InputError::new(path.display(), "there is no such run directory"));
        }
        if !path.join("config.toml").is_file() {
            return Err(InputError::new(path.display(), "is not a run directory: it has no config.toml"));
        }
        Ok(Self::at(path))
    }

    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), events: EventFile::new(path) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved configuration.
    ///
    /// # Errors
    /// If it cannot be read or is not valid.
    pub fn config(&self) -> Result<Config, InputError> {
        Config::load(&self.path.join("config.toml"), &[])
    }

    /// Writes the tokens' printable names, in the order of their ids.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_vocabulary(&self, names: &[String]) -> Result<(), InputError> {
        self.write_json("vocabulary.json", &names)
    }

    /// The tokens' printable names.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn vocabulary(&self) -> Result<Vec<String>, InputError> {
        self.read_json("vocabulary.json").map(|TokenNames(names)| names)
    }

    /// Appends to `metrics.jsonl`, and to the TensorBoard file of this process.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append_metrics(&self, row: &MetricsRow) -> Result<(), InputError> {
        self.append("metrics.jsonl", std::slice::from_ref(row))?;
        self.events.append_metrics(row)
    }

    /// Appends to `timing.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_timing(&self, row: &TimingRow) -> Result<(), InputError> {
        self.append("timing.jsonl", std::slice::from_ref(row))
    }

    /// Appends to `heads.jsonl`, and to the TensorBoard file of this process.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append_heads(&self, rows: &[HeadRow]) -> Result<(), InputError> {
        self.append("heads.jsonl", rows)?;
        self.events.append_heads(rows)
    }

    /// Appends to `events.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_event(&self, row: &EventRow) -> Result<(), InputError> {
        self.append("events.jsonl", std::slice::from_ref(row))
    }

    /// Appends to `uses.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_uses(&self, row: &UsesRow) -> Result<(), InputError> {
        self.append("uses.jsonl", std::slice::from_ref(row))
    }

    /// All rows of `uses.jsonl`; none where nothing was tested.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn uses(&self) -> Result<Vec<UsesRow>, InputError> {
        if self.path.join("uses.jsonl").exists() { self.read_rows("uses.jsonl") } else { Ok(Vec::new()) }
    }

    /// All rows of `metrics.jsonl`.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, InputError> {
        self.read_rows("metrics.jsonl")
    }

    /// All rows of `heads.jsonl`.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn heads(&self) -> Result<Vec<HeadRow>, InputError> {
        self.read_rows("heads.jsonl")
    }

    /// All rows of `events.jsonl`; none where nothing has happened.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn events(&self) -> Result<Vec<EventRow>, InputError> {
        if self.path.join("events.jsonl").exists() { self.read_rows("events.jsonl") } else { Ok(Vec::new()) }
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), InputError> {
        self.write_json("summary.json", summary)
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// If the file cannot be read; a run that has not ended has none.
    pub fn summary(&self) -> Result<Summary, InputError> {
        self.read_json("summary.json")
    }

    /// Writes the patterns seen after `step` updates.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_patterns(&self, step: usize, name: &str, patterns: &PatternFile) -> Result<(), InputError> {
        let directory = self.subdirectory(&format!("patterns/step-{step}"))?;
        write_atomically(&directory.join(format!("{name}.safetensors")), &patterns.to_bytes()?)
    }

    /// What runs that differ in the seed alone have in common, if this is one of several.
    ///
    /// # Errors
    /// If the file beside the runs cannot be read.
    pub fn seeds(&self) -> Result<Option<SeedsSummary>, InputError> {
        let beside = self.path.join("../seeds.json");
        if beside.exists() { self.read_json("../seeds.json").map(Some) } else { Ok(None) }
    }

    /// The steps whose patterns were written, in order.
    ///
    /// # Errors
    /// If the run has no patterns.
    pub fn pattern_steps(&self) -> Result<Vec<usize>, InputError> {
        let path = self.path.join("patterns");
        let entries = fs::read_dir(&path).map_err(|error| InputError::io(&path, "read", &error))?;
        let step = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("step-")?.parse().ok();
        let mut steps: Vec<usize> = entries.filter_map(|entry| step(entry.ok()?)).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Reads the patterns seen after `step` updates.
    ///
    /// # Errors
    /// If the file cannot be read or is no pattern file.
    pub fn patterns(&self, step: usize, name: &str) -> Result<PatternFile, InputError> {
        let path = self.path.join(format!("patterns/step-{step}/{name}.safetensors"));
        PatternFile::from_bytes(&read_capped(&path, MOST_BYTES)?).map_err(|error| error.at(path.display()))
    }

    /// Writes weights and, beside them, their SHA-256.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_weights(&self, which: Weights, bytes: &[u8]) -> Result<(), InputError> {
        let directory = self.subdirectory(&which.directory())?;
        write_atomically(&directory.join("weights.safetensors"), bytes)?;
        write_atomically(&directory.join("weights.sha256"), checksum(bytes).as_bytes())
    }

    /// Reads weights and checks them against their SHA-256.
    ///
    /// # Errors
    /// If a file cannot be read or the weights were changed.
    pub fn weights(&self, which: Weights) -> Result<Vec<u8>, InputError> {
        let path = self.path.join(which.directory()).join("weights.safetensors");
        let bytes = read_capped(&path, MOST_WEIGHT_BYTES)?;
        let expected = read_capped(&path.with_extension("sha256"), MOST_BYTES)?;
        if checksum(&bytes).as_bytes() != expected.trim_ascii() {
            return Err(InputError::new(path.display(), "is damaged: its SHA-256 is not the one written beside it"));
        }
        Ok(bytes)
    }

    fn subdirectory(&self, name: &str) -> Result<PathBuf, InputError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|error| InputError::io(&path, "create", &error))?;
        Ok(path)
    }

    fn append<T: Serialize>(&self, name: &str, rows: &[T]) -> Result<(), InputError> {
        let path = self.path.join(name);
        let mut lines = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut lines, row).map_err(|error| InputError::new(path.display(), error))?;
            lines.push(b'\n');
        }
        let write = || OpenOptions::new().create(true).append(true).open(&path)?.write_all(&lines);
        write().map_err(|error| InputError::io(&path, "append", &error))
    }

    fn read_rows<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, InputError> {
        let path = self.path.join(name);
        let text = String::from_utf8(read_capped(&path, MOST_BYTES)?)
            .map_err(|_| InputError::new(path.display(), "is not UTF-8"))?;
        text.lines()
            .enumerate()
            .map(|(line, row)| {
                serde_json::from_str(row)
                    .map_err(|error| InputError::new(format_args!("{}:{}", path.display(), line + 1), error))
            })
            .collect()
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), InputError> {
        let path = self.path.join(name);
        let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| InputError::new(path.display(), error))?;
        bytes.push(b'\n');
        write_atomically(&path, &bytes)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, InputError> {
        let path = self.path.join(name);
        serde_json::from_slice(&read_capped(&path, MOST_BYTES)?).map_err(|error| InputError::new(path.display(), error))
    }
}

impl Weights {
    fn directory(self) -> String {
        match self {
            Self::Step(step) => format!("checkpoints/step-{step}"),
            Self::Last => "last".to_owned(),
        }
    }
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
