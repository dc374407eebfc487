//! A run's tokens as a `tokenizer.json`, for other tools.

use headlight_run::{
    Error, TaskConfig, TextConfig, TextTokens,
    untrusted::{MOST_TOKENIZER_BYTES, read_at_most},
};
use serde_json::{Map, Value, json};

use super::text::Tokens;

/// The `tokenizer.json` that cuts a text as [`encode_prompt`](super::encode_prompt) does and adds no
/// token of its own. `vocabulary` are the names that the run wrote.
///
/// Text that the run knows no token for is an error there too.
///
/// # Errors
/// If the run cuts its text by words, for which the format has no rule, or the tokenizer that it was
/// trained with cannot be read.
///
/// ```
/// use headlight_run::{TaskConfig, TextConfig, TextTokens};
/// use headlight_tasks::tokenizer_json;
///
/// let task = TaskConfig::Text(TextConfig { path: "a.txt".into(), tokens: TextTokens::Characters });
/// let json: serde_json::Value = serde_json::from_str(&tokenizer_json(&task, &["␣".into(), "a".into()])?)?;
/// assert_eq!(json["model"]["vocab"], serde_json::json!({ " ": 0, "a": 1 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tokenizer_json(task: &TaskConfig, vocabulary: &[String]) -> Result<String, Error> {
    let TaskConfig::Text(config) = task else {
        let names = vocabulary.iter().cloned();
        return Ok(
            word_level(names, json!({ "type": "WhitespaceSplit" }), Value::Null).to_string(),
        );
    };
    match Tokens::of_vocabulary(&config.tokens, vocabulary)? {
        Tokens::Characters(characters) => {
            let each_alone = json!({
                "type": "Split",
                "pattern": { "Regex": r"[\s\S]" },
                "behavior": "Isolated",
                "invert": false,
            });
            let characters = characters.into_iter().map(String::from);
            Ok(word_level(characters, each_alone, json!({ "type": "Fuse" })).to_string())
        }
        Tokens::Bytes => Ok(byte_level().to_string()),
        Tokens::Words { .. } => Err(Error::new(
            "tokenizer.json",
            "has no rule that cuts text into words as this run does",
        )),
        Tokens::Pieces { .. } => as_trained_with(config),
    }
}

/// A tokenizer without normalising, special tokens, truncation and padding.
fn plain(pre_tokenizer: Value, model: Value, decoder: Value) -> Value {
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": decoder,
        "model": model,
    })
}

/// Each piece that the pre-tokenizer makes is a token. The format wants a name for what is unknown;
/// as no token has it, unknown text is an error.
fn word_level(tokens: impl Iterator<Item = String>, pre_tokenizer: Value, decoder: Value) -> Value {
    let ids: Map<String, Value> = tokens
        .enumerate()
        .map(|(id, token)| (token, json!(id)))
        .collect();
    let model = json!({ "type": "WordLevel", "vocab": ids, "unk_token": "<unknown>" });
    plain(pre_tokenizer, model, decoder)
}

/// Byte-pair encoding without any pair: each byte is a token.
fn byte_level() -> Value {
    let ids: Map<String, Value> = byte_characters()
        .into_iter()
        .enumerate()
        .map(|(byte, character)| (character.to_string(), json!(byte)))
        .collect();
    let bytes = json!({
        "type": "ByteLevel",
        "add_prefix_space": false,
        "trim_offsets": false,
        "use_regex": false,
    });
    let model = json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": null,
        "continuing_subword_prefix": null,
        "end_of_word_suffix": null,
        "fuse_unk": false,
        "byte_fallback": false,
        "ignore_merges": false,
        "vocab": ids,
        "merges": [],
    });
    plain(bytes.clone(), model, bytes)
}

/// The printable character that stands for each byte in byte-level tokenizers (Radford et al. 2019):
/// itself in Latin-1 where that is printable, else the next one from U+0100 on.
fn byte_characters() -> [char; 256] {
    let mut next = '\u{100}'..;
    std::array::from_fn(|byte| match byte as u8 {
        byte @ (b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) => char::from(byte),
        _ => next.next().expect("there are more than 256 characters"),
    })
}

/// The run's own tokenizer, without what adds tokens to a text or cuts some off.
fn as_trained_with(config: &TextConfig) -> Result<String, Error> {
    let TextTokens::Tokenizer(path) = &config.tokens else {
        unreachable!("pieces come from a tokenizer file");
    };
    let wrong = |error: &dyn std::fmt::Display| Error::new(path.display(), error);
    let text = String::from_utf8(read_at_most(path, MOST_TOKENIZER_BYTES)?)
        .map_err(|error| wrong(&error))?;
    let mut parts: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let mut as_it_was = true;
    for part in ["truncation", "padding", "post_processor"] {
        let was = parts.insert(part.to_owned(), Value::Null);
        as_it_was &= was.is_none_or(|was| was.is_null());
    }
    if as_it_was {
        return Ok(text);
    }
    Ok(Value::Object(parts).to_string())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, str::FromStr};

    use tokenizers::Tokenizer;

    use super::*;
    use crate::encode_prompt;

    fn text(tokens: TextTokens) -> TaskConfig {
        let path = PathBuf::from("a.txt");
        TaskConfig::Text(TextConfig { path, tokens })
    }

    /// The names of the tokens that `seen` is made of.
    fn names(tokens: &TextTokens, seen: &str) -> Vec<String> {
        Tokens::of_texts(tokens, "a.txt".as_ref(), std::iter::once(seen))
            .unwrap()
            .names()
    }

    fn exported(task: &TaskConfig, vocabulary: &[String]) -> Tokenizer {
        Tokenizer::from_str(&tokenizer_json(task, vocabulary).unwrap()).unwrap()
    }

    /// As other tools ask by default: with whatever special tokens the tokenizer adds.
    fn ids(tokenizer: &Tokenizer, prompt: &str) -> Vec<u32> {
        tokenizer.encode(prompt, true).unwrap().get_ids().to_vec()
    }

    fn assert_same(task: &TaskConfig, vocabulary: &[String], prompts: &[&str]) {
        let tokenizer = exported(task, vocabulary);
        for prompt in prompts {
            let expected = encode_prompt(task, prompt, vocabulary, 1000).unwrap();
            assert_eq!(ids(&tokenizer, prompt), expected, "{prompt:?}");
        }
    }

    const EVERYTHING: &str = "a b\n\r\t\0  é e\u{301} 🦀\u{a0}—\\␣<unk>\u{2028}\u{7f} a'b";

    #[test]
    fn characters_have_the_run_s_ids_and_come_back_as_text() {
        let task = text(TextTokens::Characters);
        let vocabulary = names(&TextTokens::Characters, EVERYTHING);
        assert_same(
            &task,
            &vocabulary,
            &[EVERYTHING, " a", "\n\n", "🦀", "a  b "],
        );
        let tokenizer = exported(&task, &vocabulary);
        let back = tokenizer.decode(&ids(&tokenizer, EVERYTHING), false);
        assert_eq!(back.unwrap(), EVERYTHING);
        assert!(tokenizer.encode("aZ", false).is_err(), "Z is no token");
    }

    #[test]
    fn bytes_have_the_run_s_ids_and_come_back_as_text() {
        let task = text(TextTokens::Bytes);
        let vocabulary = names(&TextTokens::Bytes, "");
        let every_byte: String = ('\0'..='\u{7ff}').chain('\u{ffff}'..='\u{10100}').collect();
        assert_same(&task, &vocabulary, &[EVERYTHING, " a", "the  lamp's 12"]);
        let tokenizer = exported(&task, &vocabulary);
        for text in [EVERYTHING, &every_byte] {
            let found = ids(&tokenizer, text);
            let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
            assert!(found == bytes);
            assert_eq!(tokenizer.decode(&found, false).unwrap(), text);
        }
    }

    #[test]
    fn names_between_spaces_have_the_run_s_ids() {
        let vocabulary = ["a", "b", "t10", "→", "<unk>"].map(str::to_owned);
        let task = TaskConfig::Grammar(headlight_run::GrammarConfig::default());
        assert_same(
            &task,
            &vocabulary,
            &["a b a", "  t10\n→\u{2003}a ", "<unk>"],
        );
        let tokenizer = exported(&task, &vocabulary);
        assert!(tokenizer.encode("a c", false).is_err(), "c is no token");
    }

    #[test]
    fn words_are_refused_in_one_line() {
        let vocabulary = names(&TextTokens::Words, "a b");
        let error = tokenizer_json(&text(TextTokens::Words), &vocabulary).unwrap_err();
        let expected = "tokenizer.json: has no rule that cuts text into words as this run does";
        assert_eq!(error.to_string(), expected);
    }

    /// Byte-pair encoding that begins every text with a special token, ends it with another, pads
    /// to 8 and cuts to 2.
    const TOKENIZER: &str = r#"{
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "<s>"},
        "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": {"<s>": 0, "<": 1, "s": 2, ">": 3, "l": 4, "a": 5, "m": 6, "p": 7, "Ġ": 8, "la": 9, "mp": 10, "Ġla": 11},
            "merges": [["l", "a"], ["m", "p"], ["Ġ", "la"]]}
    }"#;

    #[test]
    fn a_tokenizer_file_gives_the_run_s_ids_and_adds_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        fs::write(&path, TOKENIZER).unwrap();
        let tokens = TextTokens::Tokenizer(path);
        let (task, vocabulary) = (text(tokens.clone()), names(&tokens, ""));
        assert_same(&task, &vocabulary, &["lamp lamp la", "s lap", "mp  a"]);
        let mut tokenizer = exported(&task, &vocabulary);
        assert_eq!(ids(&tokenizer, "lamp lamp"), [9, 10, 11, 10]);
        let back = tokenizer.decode(&[9, 10, 11, 10], false).unwrap();
        assert_eq!(back, "lamp lamp");
        // With `split_special_tokens`, as the export's tokenizer_config.json says.
        tokenizer.set_encode_special_tokens(true);
        let expected = encode_prompt(&task, "lamp<s>", &vocabulary, 1000).unwrap();
        assert_eq!(ids(&tokenizer, "lamp<s>"), expected);
        assert_eq!(expected, [9, 10, 1, 2, 3]);
    }

    #[test]
    fn a_tokenizer_file_that_adds_nothing_is_copied_byte_by_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        let mut parts: Map<String, Value> = serde_json::from_str(TOKENIZER).unwrap();
        for part in ["truncation", "padding", "post_processor"] {
            parts.remove(part);
        }
        let file = format!("{:#}\n", Value::Object(parts));
        fs::write(&path, &file).unwrap();
        let tokens = TextTokens::Tokenizer(path);
        let vocabulary = names(&tokens, "");
        assert_eq!(tokenizer_json(&text(tokens), &vocabulary).unwrap(), file);
    }
}
