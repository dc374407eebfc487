//! `[task]` of `text`.

use std::{fmt, path::PathBuf, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CheckTask;
use crate::{Error, ModelConfig, config::requirements::require};

/// `task.name = "text"`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// A UTF-8 file, or a folder of such files. A relative path starts at the working directory.
    pub path: PathBuf,
    /// What a token is.
    #[serde(default)]
    pub tokens: TextTokens,
}

/// `task.tokens`: what a text is cut into.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum TextTokens {
    /// Unicode scalar values.
    #[default]
    Characters,
    /// The bytes of UTF-8: 256 tokens, whatever the text.
    Bytes,
    /// Runs of letters, digits and apostrophes; every other character that is no white space is a
    /// token of its own.
    Words,
    /// The pieces of a Hugging Face `tokenizer.json`, by its path; a relative one starts at the
    /// working directory.
    Tokenizer(PathBuf),
}

/// A text that names no kind of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be characters, bytes, words or the path of a tokenizer.json")]
pub struct NoTextTokens;

impl FromStr for TextTokens {
    type Err = NoTextTokens;

    fn from_str(text: &str) -> Result<Self, NoTextTokens> {
        match text {
            "characters" => Ok(Self::Characters),
            "bytes" => Ok(Self::Bytes),
            "words" => Ok(Self::Words),
            path if path.to_ascii_lowercase().ends_with(".json") => {
                Ok(Self::Tokenizer(path.into()))
            }
            _ => Err(NoTextTokens),
        }
    }
}

impl fmt::Display for TextTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Characters => f.pad("characters"),
            Self::Bytes => f.pad("bytes"),
            Self::Words => f.pad("words"),
            Self::Tokenizer(path) => path.display().fmt(f),
        }
    }
}

impl TryFrom<String> for TextTokens {
    type Error = NoTextTokens;

    fn try_from(text: String) -> Result<Self, NoTextTokens> {
        text.parse()
    }
}

impl From<TextTokens> for String {
    fn from(tokens: TextTokens) -> Self {
        tokens.to_string()
    }
}

impl CheckTask for TextConfig {
    fn check(&self, _model: &ModelConfig) -> Result<(), Error> {
        require(
            !self.path.as_os_str().is_empty(),
            "task.path",
            "\"\"",
            "must name a text file or a folder of them",
        )
    }
}
