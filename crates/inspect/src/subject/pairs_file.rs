//! A file of prompt pairs as a behaviour: a line of JSON for each pair.

use std::{fmt::Display, path::Path};

use headlight_lens::{PromptPair, PromptPairs};
use headlight_run::{Error, untrusted::read_at_most};
use headlight_tasks::{Vocabulary, encode_prompt};
use serde::Deserialize;

/// The largest file, far more than the most pairs take.
const MOST_BYTES: u64 = 16 << 20;
/// The most pairs: one pass runs over all of them.
const MOST_PAIRS: usize = 1024;

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    clean: String,
    corrupted: String,
    answer: String,
    wrong: String,
}

/// The pairs in the file at `path`. Empty lines are left out.
///
/// # Errors
/// Names the line and the field that is wrong: the prompts of a pair have as many tokens as each
/// other and no more than `n_ctx`; answer and wrong are one token each, and differ.
pub fn read_pairs(
    path: &Path,
    vocabulary: &Vocabulary,
    n_ctx: usize,
) -> Result<PromptPairs, Error> {
    let place = format!("--pairs {}", path.display());
    let text = String::from_utf8(read_at_most(path, MOST_BYTES)?)
        .map_err(|_| Error::new(&place, "is no UTF-8"))?;
    let mut pairs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{place} line {}", index + 1);
        if pairs.len() == MOST_PAIRS {
            return Err(Error::new(
                place,
                format_args!("is one of more than {MOST_PAIRS} pairs"),
            ));
        }
        let line: Line = serde_json::from_str(line).map_err(|error| {
            let expected = "must be {\"clean\", \"corrupted\", \"answer\", \"wrong\"}, each a text";
            Error::new(&place, format_args!("{expected}: {error}"))
        })?;
        pairs.push(line.pair(&place, vocabulary, n_ctx)?);
    }
    if pairs.is_empty() {
        return Err(Error::new(place, "has no pair"));
    }
    Ok(PromptPairs::new(pairs))
}

impl Line {
    fn pair(
        &self,
        place: &str,
        vocabulary: &Vocabulary,
        n_ctx: usize,
    ) -> Result<PromptPair, Error> {
        let prompt = |field: &str, text: &str| {
            encode_prompt(vocabulary, text, n_ctx).map_err(|error| error.at(place).key(field))
        };
        let pair = PromptPair {
            clean: prompt("clean", &self.clean)?,
            corrupted: prompt("corrupted", &self.corrupted)?,
            answer: one_token(place, "answer", &self.answer, vocabulary)?,
            wrong: one_token(place, "wrong", &self.wrong, vocabulary)?,
        };
        if pair.clean.len() != pair.corrupted.len() {
            let message = format_args!(
                "has {} tokens, clean has {}",
                pair.corrupted.len(),
                pair.clean.len()
            );
            return Err(wrong(place, "corrupted", &self.corrupted, message));
        }
        if pair.clean == pair.corrupted {
            let message = "has the same tokens as clean";
            return Err(wrong(place, "corrupted", &self.corrupted, message));
        }
        if pair.answer == pair.wrong {
            return Err(wrong(place, "wrong", &self.wrong, "is the answer"));
        }
        Ok(pair)
    }
}

fn one_token(place: &str, field: &str, text: &str, vocabulary: &Vocabulary) -> Result<u32, Error> {
    match vocabulary.encode(text).as_deref() {
        Ok(&[token]) => Ok(token),
        Ok(tokens) => {
            let message = format_args!("is {} tokens, and must be one", tokens.len());
            Err(wrong(place, field, text, message))
        }
        Err(unknown) => Err(wrong(
            place,
            field,
            text,
            format_args!("is no token: {unknown}"),
        )),
    }
}

fn wrong(place: &str, field: &str, text: &str, message: impl Display) -> Error {
    Error::new(place, message)
        .key(field)
        .value(format_args!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PromptPairs, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.jsonl");
        std::fs::write(&path, text).unwrap();
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let read = read_pairs(&path, &Vocabulary::of_names(names), 4);
        read.map_err(|error| {
            error
                .to_string()
                .replace(&path.display().to_string(), "FILE")
        })
    }

    #[test]
    fn a_line_is_a_pair_of_prompts_of_any_length() {
        let text = r#"{"clean": "a b a", "corrupted": "a c a", "answer": "b", "wrong": "c"}

            {"clean": "b d", "corrupted": "c d", "answer": "a", "wrong": "d"}"#;
        let pairs = read(text).unwrap();
        let expected = PromptPair {
            clean: vec![0, 1, 0],
            corrupted: vec![0, 2, 0],
            answer: 1,
            wrong: 2,
        };
        assert_eq!(pairs.pairs()[0], expected);
        assert_eq!(pairs.pairs()[1].clean, [1, 3]);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_field_and_value() {
        let good = r#"{"clean": "a b", "corrupted": "a c", "answer": "b", "wrong": "c"}"#;
        for (from, to, message) in [
            (
                r#""a c""#,
                r#""a c c""#,
                r#"corrupted = "a c c": has 3 tokens, clean has 2"#,
            ),
            (
                r#""a c""#,
                r#""a b""#,
                r#"corrupted = "a b": has the same tokens as clean"#,
            ),
            (r#""a c""#, r#""a x""#, "corrupted"),
            (
                r#""b","#,
                r#""b b","#,
                r#"answer = "b b": is 2 tokens, and must be one"#,
            ),
            (
                r#""b","#,
                r#""","#,
                r#"answer = "": is 0 tokens, and must be one"#,
            ),
            (r#""c"}"#, r#""b"}"#, r#"wrong = "b": is the answer"#),
            (r#""c"}"#, r#""x"}"#, r#"wrong = "x": is no token"#),
            ("wrong", "worng", "unknown field `worng`"),
            (r#""a b""#, "3", "expected a string"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good, "{from}");
            let error = read(&format!("{good}\n{bad}")).unwrap_err();
            assert!(error.starts_with("--pairs FILE line 2: "), "{error}");
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(read("\n").unwrap_err(), "--pairs FILE: has no pair");
        let many = format!("{good}\n").repeat(MOST_PAIRS + 1);
        assert!(
            read(&many)
                .unwrap_err()
                .contains("line 1025: is one of more than 1024 pairs")
        );
    }
}
