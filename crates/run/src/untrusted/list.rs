//! Lists whose parts take many times their bytes in memory: no more are read than a run writes.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// Reads a list of at most `most` parts, which errors call `name`.
///
/// # Errors
/// If there are more, or one cannot be read.
pub fn list_of_at_most<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    most: usize,
    name: &'static str,
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = List {
        most,
        name,
        part: PhantomData,
    };
    deserializer.deserialize_seq(list)
}

struct List<T> {
    most: usize,
    name: &'static str,
    part: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a list of at most {} {}", self.most, self.name)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = sequence.next_element()? {
            if parts.len() == self.most {
                return Err(A::Error::invalid_length(self.most + 1, &self));
            }
            parts.push(part);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_at_most_so_many_parts() {
        let read = |text: &str| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            list_of_at_most::<String, _>(2, "names", &mut deserializer)
        };
        assert_eq!(read(r#"["a","b"]"#).unwrap(), ["a", "b"]);
        let error = read(r#"["a","b","c"]"#).unwrap_err().to_string();
        let expected = "invalid length 3, expected a list of at most 2 names";
        assert!(error.starts_with(expected), "{error}");
    }
}
