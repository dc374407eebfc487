//! Tokens that have a name and no other text.

use std::collections::HashMap;

use super::UnknownToken;

/// Token names. In a text they stand between white space; where every name is one character, they
/// may also stand side by side.
#[derive(Debug)]
pub struct Names {
    pub(crate) by_id: Vec<String>,
    /// The first token of each name.
    ids: HashMap<String, u32>,
    /// Whether every name is one character. A word of such names can mean nothing else.
    are_characters: bool,
}

impl Names {
    pub(super) fn new(by_id: Vec<String>) -> Self {
        let mut ids = HashMap::with_capacity(by_id.len());
        for (id, name) in by_id.iter().enumerate() {
            ids.entry(name.clone()).or_insert(id as u32);
        }
        let are_characters = by_id.iter().all(|name| name.chars().count() == 1);
        Self {
            by_id,
            ids,
            are_characters,
        }
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let mut tokens = Vec::new();
        for word in text.split_whitespace() {
            if let Some(&id) = self.ids.get(word) {
                tokens.push(id);
                continue;
            }
            let unknown = || UnknownToken(word.to_owned());
            let characters = self.characters_of(word).ok_or_else(unknown)?;
            tokens.extend(characters);
        }
        Ok(tokens)
    }

    /// The tokens of a word that is spelled by names of one character.
    fn characters_of(&self, word: &str) -> Option<Vec<u32>> {
        if !self.are_characters {
            return None;
        }
        let id = |character: char| self.ids.get(character.encode_utf8(&mut [0; 4])).copied();
        word.chars().map(id).collect()
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        let name = |&token: &u32| self.by_id[token as usize].as_str();
        tokens.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}
