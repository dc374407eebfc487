//! Pairs of prompts that causal tests are measured on: made from the probe, or given in a file.

use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

use headlight_heads::Corruption;
use headlight_lens::PromptPairs;
use headlight_run::Error;

use super::{ModelParts, Subject, pairs_file::read_pairs};

/// What `--pairs` says: a kind of pairs that are made, or else a file.
///
/// ```
/// use headlight_heads::Corruption;
/// use headlight_inspect::Pairs;
///
/// assert_eq!("key".parse(), Ok(Pairs::Made(Corruption::Key)));
/// assert_eq!("pairs.jsonl".parse(), Ok(Pairs::File("pairs.jsonl".into())));
/// assert_eq!("./key".parse(), Ok(Pairs::File("./key".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairs {
    /// Made from the probe, for a model that continues what came before.
    Made(Corruption),
    /// A file with a line of JSON for each pair.
    File(PathBuf),
}

impl FromStr for Pairs {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(corruption) => Self::Made(corruption),
            Err(_) => Self::File(text.into()),
        })
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(corruption) => corruption.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Pairs and what they are called.
pub(super) struct NamedPairs {
    pairs: PromptPairs,
    pub name: String,
    /// What differs between their prompts; `None` where they were given.
    corruption: Option<Corruption>,
}

impl Subject {
    /// The same, whose causal tests are measured on pairs of prompts.
    ///
    /// # Errors
    /// Names the line and the field of a file that is wrong. If the model does not continue what came
    /// before, so that no pairs can be made.
    pub fn on_pairs(self, asked: &Pairs) -> Result<Self, Error> {
        if self.is_on_text() {
            return Err(Error::new("--pairs", "does not go with --text"));
        }
        let pairs = match asked {
            Pairs::File(path) => NamedPairs {
                pairs: read_pairs(path, &self.vocabulary()?, self.n_ctx())?,
                name: format!("the pairs of prompts in {}", path.display()),
                corruption: None,
            },
            Pairs::Made(corruption) => {
                let ModelParts { model, .. } = self.model()?;
                let made = self.made_pairs(&model, *corruption)?;
                NamedPairs {
                    pairs: PromptPairs::new(made.pairs),
                    name: format!("{corruption} pairs made from the probe"),
                    corruption: Some(*corruption),
                }
            }
        };
        Ok(Self {
            pairs: Some(pairs),
            ..self
        })
    }

    /// The pairs of prompts that causal tests are measured on, if they are not measured on sequences.
    #[must_use]
    pub fn pairs(&self) -> Option<&PromptPairs> {
        self.pairs.as_ref().map(|named| &named.pairs)
    }

    /// What differs between the prompts of pairs that were made.
    pub(crate) fn corruption(&self) -> Option<Corruption> {
        self.pairs.as_ref()?.corruption
    }
}
