//! Checkpoints: everything that training goes on from, whole or not there, and checked against its
//! SHA-256.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use headlight_heads::{HeadName, Measure, Role};
use serde::{Deserialize, Serialize};

use super::{LogLengths, RunDirectory, format, log_lengths};
use crate::{
    Error, ErrorKind,
    atomic::write_directory_atomically,
    sha256,
    untrusted::{MOST_STATE_BYTES, MOST_TENSOR_BYTES, from_json, read_at_most},
};

const WEIGHTS: &str = "weights.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
/// In the format of `sha256sum`, so that `sha256sum --check` reads it.
const SUMS: &str = "SHA256SUMS";

/// Which weights of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// As kept after this many updates.
    Step(usize),
    /// Those of the lowest validation loss that was measured.
    Best,
    /// As training ended.
    Last,
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "step-{step}"),
            Self::Best => write!(f, "best"),
            Self::Last => write!(f, "last"),
        }
    }
}

/// A text that names no weights of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is none of best, last and step-N")]
pub struct NoWeights(String);

/// ```
/// use headlight_run::Weights;
///
/// assert_eq!("step-250".parse(), Ok(Weights::Step(250)));
/// assert_eq!("best".parse(), Ok(Weights::Best));
/// let error = "step 250".parse::<Weights>().unwrap_err().to_string();
/// assert_eq!(error, "step 250 is none of best, last and step-N");
/// ```
impl FromStr for Weights {
    type Err = NoWeights;

    fn from_str(text: &str) -> Result<Self, NoWeights> {
        let unknown = || NoWeights(text.to_owned());
        match text {
            "best" => Ok(Self::Best),
            "last" => Ok(Self::Last),
            _ => {
                let step = text.strip_prefix("step-").ok_or_else(unknown)?;
                Ok(Self::Step(step.parse().map_err(|_| unknown())?))
            }
        }
    }
}

impl Weights {
    fn directory(self) -> String {
        match self {
            Self::Step(step) => format!("checkpoints/step-{step}"),
            Self::Best => "best".to_owned(),
            Self::Last => "last".to_owned(),
        }
    }
}

/// The lowest validation loss so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// When it was measured.
    pub step: usize,
    /// Nats.
    #[serde(with = "exact")]
    pub validation: f64,
}

/// Where training stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointState {
    /// The [format](crate::FORMAT) of the checkpoint.
    #[serde(default = "format::first")]
    pub format: u32,
    /// The program that wrote it.
    pub version: String,
    /// Where it was trained: another device computes other bits.
    pub device: String,
    /// Updates done.
    pub step: usize,
    /// Whether there is nothing more to do.
    pub ended: bool,
    /// Wall time of training.
    pub seconds: f64,
    /// The lowest validation loss so far.
    pub best: Option<Best>,
    /// Measurements since then.
    pub measured_since_best: usize,
    /// The role that each head is known for, where it has one.
    pub roles: BTreeMap<HeadName, Role>,
    /// The roles that heads hold at some positions only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<HeadName, Vec<Measure>>,
    /// The measurements whose patterns were kept because something happened there.
    #[serde(default)]
    pub moments: usize,
    /// The optimizer's numbers that are not tensors, by parameter path.
    pub counts: BTreeMap<String, u64>,
    /// How long the logs were.
    pub logs: LogLengths,
}

/// Everything that training goes on from.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Where training stood.
    pub state: CheckpointState,
    /// A safetensors file of the model's parameters.
    pub weights: Vec<u8>,
    /// A safetensors file of the optimizer's tensors, by parameter path.
    pub optimizer: Vec<u8>,
}

impl RunDirectory {
    /// Writes a checkpoint, after all that the logs hold.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_checkpoint(&self, which: Weights, checkpoint: &Checkpoint) -> Result<(), Error> {
        log_lengths::flush(self.path())?;
        let path = self.directory_of(which);
        let state = state_json(&path, &checkpoint.state)?;
        let files: [(&str, &[u8]); 3] = [
            (WEIGHTS, &checkpoint.weights),
            (OPTIMIZER, &checkpoint.optimizer),
            (STATE, &state),
        ];
        write_with_sums(&path, &files)
    }

    /// Writes the weights of the lowest validation loss, which `state.best` speaks of.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_best(&self, state: &CheckpointState, weights: &[u8]) -> Result<(), Error> {
        let path = self.directory_of(Weights::Best);
        let state = state_json(&path, state)?;
        write_with_sums(&path, &[(WEIGHTS, weights), (STATE, &state)])
    }

    /// Reads a checkpoint and checks it: every file against its SHA-256, the logs against their
    /// lengths.
    ///
    /// # Errors
    /// Names the file that is missing, damaged or of another [format](crate::FORMAT).
    pub fn checkpoint(&self, which: Weights) -> Result<Checkpoint, Error> {
        let state = self.state(which)?;
        log_lengths::check(self.path(), &state.logs)?;
        let weights = self.checked(which, WEIGHTS, MOST_TENSOR_BYTES)?;
        let optimizer = self.checked(which, OPTIMIZER, MOST_TENSOR_BYTES)?;
        Ok(Checkpoint {
            state,
            weights,
            optimizer,
        })
    }

    /// Where training stood when it wrote these weights; at the best ones, when it had last found
    /// better ones.
    ///
    /// # Errors
    /// Names the file if it is missing, damaged or of another [format](crate::FORMAT).
    pub fn state(&self, which: Weights) -> Result<CheckpointState, Error> {
        let path = self.directory_of(which).join(STATE);
        let state = self.checked(which, STATE, MOST_STATE_BYTES)?;
        format::check_json(path.display(), &state)?;
        from_json(path.display(), &state)
    }

    /// Reads weights and checks them against their SHA-256.
    ///
    /// # Errors
    /// If a file cannot be read or the weights were changed.
    pub fn weights(&self, which: Weights) -> Result<Vec<u8>, Error> {
        self.checked(which, WEIGHTS, MOST_TENSOR_BYTES)
    }

    /// The weights to look at where nobody chose: those of the end, or of the newest checkpoint of a
    /// run that was stopped. `None` before the first checkpoint.
    #[must_use]
    pub fn newest_weights(&self) -> Option<Weights> {
        self.checkpoints().into_iter().next()
    }

    /// The checkpoints that there are, newest first, whole or not.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<Weights> {
        let last = self
            .directory_of(Weights::Last)
            .is_dir()
            .then_some(Weights::Last);
        last.into_iter()
            .chain(self.kept_steps().into_iter().map(Weights::Step))
            .collect()
    }

    /// Removes all but the newest `keep` of the checkpoints up to `step`.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn forget_checkpoints(&self, step: usize, keep: usize) -> Result<(), Error> {
        // Newer ones are damaged, or training would have gone on from them; they do not count.
        for old in self
            .kept_steps()
            .into_iter()
            .filter(|&kept| kept <= step)
            .skip(keep)
        {
            let path = self.directory_of(Weights::Step(old));
            fs::remove_dir_all(&path).map_err(|error| Error::io(&path, "remove", error))?;
        }
        Ok(())
    }

    /// Newest first.
    fn kept_steps(&self) -> Vec<usize> {
        let entries = fs::read_dir(self.path().join("checkpoints"))
            .into_iter()
            .flatten()
            .flatten();
        let step = |name: &str| name.strip_prefix("step-")?.parse().ok();
        let mut steps: Vec<usize> = entries
            .filter_map(|entry| step(entry.file_name().to_str()?))
            .collect();
        steps.sort_unstable_by(|a, b| b.cmp(a));
        steps
    }

    fn directory_of(&self, which: Weights) -> PathBuf {
        self.path().join(which.directory())
    }

    /// A file of a checkpoint, if it is the one that was written.
    fn checked(&self, which: Weights, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let directory = self.directory_of(which);
        let path = directory.join(name);
        let bytes = read_at_most(&path, most)?;
        let sums = read_at_most(&directory.join(SUMS), MOST_STATE_BYTES)?;
        let line = sum_line(name, &bytes);
        if !sums
            .split_inclusive(|&byte| byte == b'\n')
            .any(|written| written == line.as_bytes())
        {
            return Err(Error::damaged(
                path.display(),
                "is damaged: its SHA-256 is not the one written beside it",
            ));
        }
        Ok(bytes)
    }
}

fn state_json(path: &Path, state: &CheckpointState) -> Result<Vec<u8>, Error> {
    serde_json::to_vec_pretty(state)
        .map_err(|error| Error::because(ErrorKind::Internal, path.display(), error))
}

fn write_with_sums(path: &Path, files: &[(&str, &[u8])]) -> Result<(), Error> {
    let sums: String = files
        .iter()
        .map(|(name, bytes)| sum_line(name, bytes))
        .collect();
    let mut all = files.to_vec();
    all.push((SUMS, sums.as_bytes()));
    write_directory_atomically(path, &all)
}

fn sum_line(name: &str, bytes: &[u8]) -> String {
    format!("{}  {name}\n", sha256(bytes))
}

/// A number as text: JSON readers may round the last bit, and resuming must not. The feature
/// `float_roundtrip` of `serde_json` would read it back exactly. But Burn is built on `serde_json`,
/// and would be built again with that feature.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}
