//! A vocabulary as a `tokenizer.json`, for other tools.

use serde_json::{Map, Value, json};

use crate::{Vocabulary, vocabulary::word_pattern};

/// The `tokenizer.json` that cuts a text as `vocabulary` does and adds no token of its own.
///
/// Text that the vocabulary has no token for is an error there too. A byte order mark at the
/// beginning of a text is the only difference: other tools take it for text.
///
/// ```
/// use headlight_tasks::{Vocabulary, tokenizer_json};
///
/// let vocabulary = Vocabulary::of_names(vec!["a".into(), "b".into()]);
/// let json: serde_json::Value = serde_json::from_str(&tokenizer_json(&vocabulary))?;
/// assert_eq!(json["model"]["vocab"], serde_json::json!({ "a": 0, "b": 1 }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn tokenizer_json(vocabulary: &Vocabulary) -> String {
    let fused = json!({ "type": "Fuse" });
    match vocabulary {
        Vocabulary::Names(names) => {
            let names = names.by_id.iter().cloned();
            let between_spaces = json!({ "type": "WhitespaceSplit" });
            word_level(names, between_spaces, Value::Null).to_string()
        }
        Vocabulary::Characters(characters) => {
            let characters = characters.by_id.iter().map(char::to_string);
            word_level(characters, each_match(r"[\s\S]"), fused).to_string()
        }
        Vocabulary::Words(words) => {
            let words = words.by_id.iter().cloned();
            word_level(words, each_match(&word_pattern()), fused).to_string()
        }
        Vocabulary::Bytes => byte_level().to_string(),
        Vocabulary::Pieces(pieces) => pieces.json().to_owned(),
    }
}

/// The pre-tokenizer that makes a piece of each match of `pattern`.
fn each_match(pattern: &str) -> Value {
    json!({
        "type": "Split",
        "pattern": { "Regex": pattern },
        "behavior": "Isolated",
        "invert": false,
    })
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

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use tokenizers::Tokenizer;

    use super::*;
    use crate::{Pieces, train_bpe, vocabulary::words};

    fn exported(vocabulary: &Vocabulary) -> Tokenizer {
        Tokenizer::from_str(&tokenizer_json(vocabulary)).unwrap()
    }

    /// As other tools ask by default: with whatever special tokens the tokenizer adds.
    fn ids(tokenizer: &Tokenizer, prompt: &str) -> Vec<u32> {
        tokenizer.encode(prompt, true).unwrap().get_ids().to_vec()
    }

    fn assert_same(vocabulary: &Vocabulary, prompts: &[&str]) {
        let tokenizer = exported(vocabulary);
        for prompt in prompts {
            let expected = vocabulary.encode(prompt).unwrap();
            assert_eq!(ids(&tokenizer, prompt), expected, "{prompt:?}");
        }
    }

    fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
        let set: std::collections::BTreeSet<T> = items.collect();
        set.into_iter().collect()
    }

    const EVERYTHING: &str = "a b\n\r\t\0  é e\u{301} 🦀\u{a0}—\\␣<unk>\u{2028}\u{7f} a'b";

    #[test]
    fn characters_have_the_run_s_ids_and_come_back_as_text() {
        let vocabulary = Vocabulary::of_characters(sorted(EVERYTHING.chars()));
        assert_same(&vocabulary, &[EVERYTHING, " a", "\n\n", "🦀", "a  b "]);
        let tokenizer = exported(&vocabulary);
        let back = tokenizer.decode(&ids(&tokenizer, EVERYTHING), false);
        assert_eq!(back.unwrap(), EVERYTHING);
        assert!(tokenizer.encode("aZ", false).is_err(), "Z is no token");
    }

    #[test]
    fn bytes_have_the_run_s_ids_and_come_back_as_text() {
        let vocabulary = Vocabulary::Bytes;
        let every_byte: String = ('\0'..='\u{7ff}').chain('\u{ffff}'..='\u{10100}').collect();
        assert_same(&vocabulary, &[EVERYTHING, " a", "the  lamp's 12"]);
        let tokenizer = exported(&vocabulary);
        for text in [EVERYTHING, &every_byte] {
            let found = ids(&tokenizer, text);
            let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
            assert!(found == bytes);
            assert_eq!(tokenizer.decode(&found, false).unwrap(), text);
        }
    }

    #[test]
    fn words_have_the_run_s_ids_and_come_back_as_text() {
        let text =
            format!("{EVERYTHING} the  keeper's lamp, 3.14 नमस्ते दुनिया。日本 👩\u{200d}💻🇩🇪\r\n");
        let vocabulary = Vocabulary::of_words(sorted(words(&text).map(str::to_owned)));
        assert_same(&vocabulary, &[&text, " the", " नमस्ते दुनिया日本", "\r\n\n"]);
        let tokenizer = exported(&vocabulary);
        let back = tokenizer.decode(&ids(&tokenizer, &text), false);
        assert_eq!(back.unwrap(), text);
        assert!(
            tokenizer.encode("theme", false).is_err(),
            "theme is no token"
        );
    }

    #[test]
    fn names_between_spaces_have_the_run_s_ids() {
        let names = ["a", "b", "t10", "→", "<unk>"].map(str::to_owned);
        let vocabulary = Vocabulary::of_names(names.to_vec());
        assert_same(&vocabulary, &["a b a", "  t10\n→\u{2003}a ", "<unk>"]);
        let tokenizer = exported(&vocabulary);
        assert!(tokenizer.encode("a c", false).is_err(), "c is no token");
    }

    #[test]
    fn a_trained_tokenizer_gives_the_run_s_ids() {
        let text = EVERYTHING.repeat(3) + "the lamp the lamp the lamp";
        let vocabulary = Vocabulary::Pieces(train_bpe(&[&text], 300).unwrap());
        assert_same(&vocabulary, &[&text, " the lamp", "न🦀", "the\n\n lamps"]);
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
        let vocabulary = Vocabulary::Pieces(Pieces::parse(TOKENIZER.as_bytes()).unwrap());
        assert_same(&vocabulary, &["lamp lamp la", "s lap", "mp  a"]);
        let mut tokenizer = exported(&vocabulary);
        assert_eq!(ids(&tokenizer, "lamp lamp"), [9, 10, 11, 10]);
        assert_eq!(vocabulary.decode(&[9, 10, 11, 10]), "lamp lamp");
        // With `split_special_tokens`, as the export's tokenizer_config.json says.
        tokenizer.set_encode_special_tokens(true);
        let expected = vocabulary.encode("lamp<s>").unwrap();
        assert_eq!(ids(&tokenizer, "lamp<s>"), expected);
        assert_eq!(expected, [9, 10, 1, 2, 3]);
    }

    #[test]
    fn a_tokenizer_file_that_adds_nothing_is_copied_byte_by_byte() {
        let mut parts: Map<String, Value> = serde_json::from_str(TOKENIZER).unwrap();
        for part in ["truncation", "padding", "post_processor"] {
            parts.remove(part);
        }
        let file = format!("{:#}\n", Value::Object(parts));
        let pieces = Pieces::parse(file.as_bytes()).unwrap();
        assert_eq!(tokenizer_json(&Vocabulary::Pieces(pieces)), file);
    }
}
