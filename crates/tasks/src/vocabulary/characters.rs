//! One token for each character.

use super::{UnknownToken, spelling::character_name};

/// Unicode scalar values in their order.
#[derive(Debug)]
pub struct Characters {
    pub(crate) by_id: Vec<char>,
}

impl Characters {
    pub(super) fn new(by_id: Vec<char>) -> Self {
        debug_assert!(by_id.is_sorted());
        Self { by_id }
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let id = |c: char| {
            let found = self.by_id.binary_search(&c);
            found
                .map(|id| id as u32)
                .map_err(|_| UnknownToken(character_name(c)))
        };
        text.chars().map(id).collect()
    }
}
