//! The tokens of files of sequences: given, or found in them.

use std::{collections::BTreeMap, path::Path};

use headlight_run::{
    Error, ErrorKind,
    untrusted::{MOST_TEXT_BYTES, MOST_TOKENS, read_at_most},
};

use super::line::Tokens;

/// Names and ids of the tokens.
#[derive(Default)]
pub struct TokenNames {
    ids: BTreeMap<String, u32>,
    /// A list was given, so that no other name and no larger id may occur.
    is_given: bool,
    /// Whether the files have ids, not names; unknown before the first line.
    has_ids: Option<bool>,
    count: usize,
}

impl TokenNames {
    /// The list at `path`.
    ///
    /// # Errors
    /// If it is no JSON list of names, each once.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = |message: &str| {
            Error::of(ErrorKind::Config, path.display(), message).key("task.vocabulary")
        };
        let bytes = read_at_most(path, MOST_TEXT_BYTES)?;
        let list: Vec<String> = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(&format!("is no JSON list of names: {error}")))?;
        let mut names = Self {
            is_given: true,
            count: list.len(),
            ..Self::default()
        };
        for (id, name) in (0..).zip(list) {
            check_name(&name).map_err(|fault| wrong(&fault))?;
            if let Some(first) = names.ids.insert(name.clone(), id) {
                return Err(wrong(&format!(
                    "{name:?} is the name of {first} and of {id}"
                )));
            }
        }
        if names.count < 2 {
            return Err(wrong("has fewer than 2 names"));
        }
        Ok(names)
    }

    /// Takes note of the tokens of a line.
    ///
    /// # Errors
    /// What is wrong with them, as a person is told.
    pub fn learn(&mut self, tokens: &Tokens) -> Result<(), String> {
        let has_ids = matches!(tokens, Tokens::Ids(_));
        let expected = *self.has_ids.get_or_insert(has_ids);
        if has_ids != expected {
            let kind = if expected { "ids" } else { "names" };
            return Err(format!("tokens: must be {kind} as in the lines before"));
        }
        match tokens {
            Tokens::Ids(ids) => {
                let largest = ids.iter().copied().max().unwrap_or(0) as usize;
                if self.is_given && largest >= self.count {
                    return Err(format!(
                        "tokens: {largest} is no token; the vocabulary has {}",
                        self.count
                    ));
                }
                self.count = self.count.max(largest + 1);
            }
            Tokens::Names(names) if self.is_given => {
                for name in names {
                    self.id(name)?;
                }
            }
            Tokens::Names(names) => {
                for name in names {
                    if !self.ids.contains_key(name) {
                        check_name(name)?;
                        self.ids.insert(name.clone(), 0);
                    }
                }
                self.count = self.ids.len();
            }
        }
        if self.count > MOST_TOKENS {
            return Err(format!("tokens: are of more than {MOST_TOKENS} kinds"));
        }
        Ok(())
    }

    /// Numbers the names that were found.
    pub fn finish(&mut self) {
        if !self.is_given {
            for (id, found) in (0..).zip(self.ids.values_mut()) {
                *found = id;
            }
        }
    }

    /// The id of a name.
    ///
    /// # Errors
    /// That there is no such token, as a person is told.
    pub fn id(&self, name: &str) -> Result<u32, String> {
        let known = self.ids.get(name).copied();
        known.ok_or_else(|| format!("tokens: {name:?} is no token of the vocabulary"))
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The names, by id.
    pub fn list(&self) -> Vec<String> {
        if self.ids.is_empty() {
            return (0..self.count).map(|id| id.to_string()).collect();
        }
        let mut names = vec![String::new(); self.count];
        for (name, &id) in &self.ids {
            names[id as usize].clone_from(name);
        }
        names
    }
}

/// Prompts are names with spaces between them.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!(
            "tokens: {name:?} cannot be a name: prompts part names by white space"
        ));
    }
    Ok(())
}
