//! `[task]` of `text`.

use std::{fmt, path::PathBuf, str::FromStr};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, value::MapAccessDeserializer},
};

use super::TaskKeys;
use crate::{Error, ModelConfig, config::requirements::require, untrusted::MOST_TOKENS};

/// The least tokens of a trained tokenizer: one for each byte.
const BYTES: usize = 256;

/// `task.name = "text"`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// A UTF-8 file, or a folder of such files. A relative path starts at the working directory.
    pub path: PathBuf,
    /// What a token is. `characters`: A Unicode scalar value. `bytes`: A byte of UTF-8, one of 256.
    /// `words`: A word with its marks, a sign or a white space; one space before a word or a sign
    /// belongs to it. The path of a `tokenizer.json`: Its pieces; a relative path starts at the
    /// working directory. `{ train = "bpe", size = 512 }`: The pieces of a tokenizer with so many
    /// tokens, trained on the text's training part. `model`: The pieces of the tokenizer of the model
    /// of `model.from`, for which this is the default.
    #[serde(default)]
    pub tokens: TextTokens,
}

/// `task.tokens`: what a text is cut into.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(with = "TokensInToml")]
pub enum TextTokens {
    /// Unicode scalar values.
    #[default]
    Characters,
    /// The bytes of UTF-8: 256 tokens, whatever the text.
    Bytes,
    /// Words with their marks, signs and white space. One space before a word or a sign belongs to
    /// it, so that the tokens in a row are the text.
    Words,
    /// The pieces of a Hugging Face `tokenizer.json`, by its path; a relative one starts at the
    /// working directory.
    Tokenizer(PathBuf),
    /// The pieces of a tokenizer that is trained on the text.
    Trained(TrainedTokens),
    /// The pieces of the tokenizer of the model of `model.from`.
    Model,
}

/// `tokens = { train = "bpe", size = 512 }`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainedTokens {
    /// The kind of tokenizer.
    pub train: TokenTrainer,
    /// Its most tokens; a small text has fewer.
    pub size: usize,
}

/// How a tokenizer is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenTrainer {
    /// Byte-pair encoding over bytes (Sennrich et al. 2016, Radford et al. 2019).
    Bpe,
}

/// The two forms of `task.tokens`, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema is made from the form alone")]
enum TokensInToml {
    Named(String),
    Trained(TrainedTokens),
}

/// A text that names no kind of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be characters, bytes, words, the path of a tokenizer.json or {{ train = \"bpe\", size = 512 }}"
)]
pub struct NoTextTokens;

impl FromStr for TextTokens {
    type Err = NoTextTokens;

    fn from_str(text: &str) -> Result<Self, NoTextTokens> {
        match text {
            "characters" => Ok(Self::Characters),
            "bytes" => Ok(Self::Bytes),
            "words" => Ok(Self::Words),
            "model" => Ok(Self::Model),
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
            Self::Model => f.pad("model"),
            Self::Tokenizer(path) => path.display().fmt(f),
            Self::Trained(TrainedTokens { train, size }) => match train {
                TokenTrainer::Bpe => write!(f, "{{ train = \"bpe\", size = {size} }}"),
            },
        }
    }
}

impl Serialize for TextTokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Trained(trained) => trained.serialize(serializer),
            named => serializer.collect_str(named),
        }
    }
}

impl<'de> Deserialize<'de> for TextTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TokensVisitor)
    }
}

struct TokensVisitor;

impl<'de> de::Visitor<'de> for TokensVisitor {
    type Value = TextTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("characters, bytes, words, the path of a tokenizer.json or { train = \"bpe\", size = 512 }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TextTokens, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TextTokens, A::Error> {
        TrainedTokens::deserialize(MapAccessDeserializer::new(map)).map(TextTokens::Trained)
    }
}

impl TaskKeys for TextConfig {
    fn check(&self, _model: &ModelConfig) -> Result<(), Error> {
        require(
            !self.path.as_os_str().is_empty(),
            "task.path",
            "\"\"",
            "must name a text file or a folder of them",
        )?;
        if let TextTokens::Trained(TrainedTokens { size, .. }) = self.tokens {
            let message =
                format_args!("must be between {BYTES}, a token for each byte, and {MOST_TOKENS}");
            require(
                (BYTES..=MOST_TOKENS).contains(&size),
                "task.tokens.size",
                size,
                message,
            )?;
        }
        Ok(())
    }

    fn forget_places(&mut self) {
        self.path = PathBuf::new();
        if let TextTokens::Tokenizer(path) = &mut self.tokens {
            *path = "tokenizer.json".into();
        }
    }
}
