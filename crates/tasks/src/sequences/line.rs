//! One line of a file of sequences, as people write it.

use headlight_heads::Relation;
use headlight_run::{Question, SequenceRow, Shortcut};
use serde::Deserialize;

use super::token_names::TokenNames;

/// A line as it stands in the file: tokens by name or by id.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub tokens: Tokens,
    scored: Option<Scored>,
    #[serde(default)]
    relations: Box<[Relation]>,
    #[serde(default)]
    questions: Vec<LineQuestion>,
    floor: Option<Box<[f64]>>,
    bayes: Option<Box<[f64]>>,
    shortcut: Option<Shortcut>,
    best_accuracy: Option<Box<[f64]>>,
}

/// `["the", "cat"]` or `[3, 7]`
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "tokens must be a list of names, or a list of ids from 0 up"
)]
pub enum Tokens {
    Ids(Vec<u32>),
    Names(Vec<String>),
}

/// The inputs whose targets count, or for each input whether it does.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "scored must be a list of positions, or of true and false"
)]
enum Scored {
    Positions(Box<[usize]>),
    Mask(Vec<bool>),
}

/// A [`Question`] whose tokens are written as those of the line are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineQuestion {
    input: usize,
    right: Token,
    wrong: Vec<Token>,
    kinds: Vec<Box<str>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a token must be a name or an id")]
enum Token {
    Id(u32),
    Name(String),
}

impl Line {
    /// With ids in place of names.
    ///
    /// # Errors
    /// What is wrong, as a person is told.
    pub fn row(self, names: &TokenNames) -> Result<SequenceRow, String> {
        let tokens: Box<[u32]> = match self.tokens {
            Tokens::Ids(ids) => ids.into(),
            Tokens::Names(list) => list
                .iter()
                .map(|name| names.id(name))
                .collect::<Result<_, _>>()?,
        };
        let inputs = tokens.len().saturating_sub(1);
        let scored = match self.scored {
            None => None,
            Some(Scored::Positions(positions)) => Some(positions),
            Some(Scored::Mask(mask)) if mask.len() == inputs => {
                Some((0..inputs).filter(|&input| mask[input]).collect())
            }
            Some(Scored::Mask(mask)) => {
                return Err(format!(
                    "scored: has {} values for {inputs} inputs; the last token is only a target",
                    mask.len()
                ));
            }
        };
        let mut questions = Vec::new();
        for question in self.questions {
            questions.push(question.with_ids(names)?);
        }
        Ok(SequenceRow {
            tokens,
            scored,
            relations: self.relations,
            questions: questions.into(),
            floor: self.floor,
            bayes: self.bayes,
            shortcut: self.shortcut,
            best_accuracy: self.best_accuracy,
        })
    }
}

impl LineQuestion {
    fn with_ids(self, names: &TokenNames) -> Result<Question, String> {
        let mut wrong = Vec::new();
        for token in &self.wrong {
            wrong.push(token.id(names)?);
        }
        Ok(Question {
            input: self.input,
            right: self.right.id(names)?,
            wrong,
            kinds: self.kinds,
        })
    }
}

impl Token {
    fn id(&self, names: &TokenNames) -> Result<u32, String> {
        match self {
            Self::Id(id) => Ok(*id),
            Self::Name(name) => names.id(name),
        }
    }
}
