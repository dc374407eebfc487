//! `[task]` of `sequences`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "sequences"`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequencesConfig {
    /// The file of sequences that are learned from, one JSON object a line. A relative path starts
    /// at the working directory.
    pub path: PathBuf,
    /// The file of sequences that are measured on.
    pub validation: PathBuf,
    /// A JSON list of the tokens' names, by id; left out: the names that occur, in alphabetical
    /// order, or the numbers from 0 to the largest id that occurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<PathBuf>,
}

impl TaskKeys for SequencesConfig {
    fn check(&self, _model: &ModelConfig) -> Result<(), Error> {
        named("task.path", &self.path)?;
        named("task.validation", &self.validation)?;
        match &self.vocabulary {
            Some(vocabulary) => named("task.vocabulary", vocabulary),
            None => Ok(()),
        }
    }

    fn forget_places(&mut self) {
        self.path = PathBuf::new();
        self.validation = PathBuf::new();
        if let Some(vocabulary) = &mut self.vocabulary {
            *vocabulary = PathBuf::new();
        }
    }
}

fn named(key: &'static str, path: &Path) -> Result<(), Error> {
    let is_named = !path.as_os_str().is_empty();
    require(is_named, key, "\"\"", "must name a file")
}
