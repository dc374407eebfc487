//! Tokens that have a name and no other text.

use std::collections::HashMap;

use super::UnknownToken;

/// Token names. In a text they stand between white space.
#[derive(Debug)]
pub struct Names {
    pub(crate) by_id: Vec<String>,
    /// The first token of each name.
    ids: HashMap<String, u32>,
}

impl Names {
    pub(super) fn new(by_id: Vec<String>) -> Self {
        let mut ids = HashMap::with_capacity(by_id.len());
        for (id, name) in by_id.iter().enumerate() {
            ids.entry(name.clone()).or_insert(id as u32);
        }
        Self { by_id, ids }
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let id = |name: &str| {
            let id = self.ids.get(name).copied();
            id.ok_or_else(|| UnknownToken(name.to_owned()))
        };
        text.split_whitespace().map(id).collect()
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        let name = |&token: &u32| self.by_id[token as usize].as_str();
        tokens.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}
