//! `vocabulary.json`: the tokens' printable names.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

use super::MOST_TOKENS;

/// Names in the order of the tokens' ids. Short names take many times their bytes in memory: no
/// more are read than a vocabulary may have.
pub struct TokenNames(pub Vec<String>);

impl<'de> Deserialize<'de> for TokenNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Names).map(Self)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a list of at most {MOST_TOKENS} names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = sequence.next_element()? {
            if names.len() == MOST_TOKENS {
                return Err(A::Error::invalid_length(MOST_TOKENS + 1, &self));
            }
            names.push(name);
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_has_at_most_300000_names() {
        let read = |count: usize| {
            serde_json::from_str::<TokenNames>(&format!("[{}\"\"]", "\"\",".repeat(count - 1)))
        };
        assert_eq!(read(300_000).unwrap().0.len(), 300_000);
        let error = read(300_001).err().unwrap().to_string();
        assert!(
            error.starts_with("invalid length 300001, expected a list of at most 300000 names"),
            "{error}"
        );
    }
}
