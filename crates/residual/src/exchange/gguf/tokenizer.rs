//! The tokenizer in a GGUF file, as a `tokenizer.json`.
//!
//! A file names its tokenizer's kind and the rule that splits text before merges
//! (`tokenizer.ggml.pre`); the rules themselves are in `llama-vocab.cpp` of llama.cpp. Those that
//! are known here are below. Another name is refused: tokens that are nearly right are wrong.

use serde_json::{Map, Value, json};

use super::metadata::Metadata;
use crate::exchange::ExchangeError;

const KIND: &str = "tokenizer.ggml.model";
const RULE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const BEGINS: &str = "tokenizer.ggml.add_bos_token";
const FIRST: &str = "tokenizer.ggml.bos_token_id";

/// Types of tokens that stand for themselves in a text: control tokens and those of a user.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Contractions, words, numbers of up to three digits (Llama 3) or of one (Qwen 2), signs, lines.
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The `tokenizer.json`; `None` if the file has no tokenizer.
pub fn read(metadata: &Metadata) -> Result<Option<String>, ExchangeError> {
    match metadata.text(KIND)? {
        None => return Ok(None),
        Some("gpt2") => {}
        Some(_) => return Err(metadata.refused(KIND, "is not supported; gpt2 (byte-level BPE) is")),
    }
    let rule = Rule::named(metadata)?;
    let tokens = metadata.texts(TOKENS)?;
    let types = metadata.wholes(TYPES)?;
    if types.len() != tokens.len() {
        let reason = format!("must be as many as {TOKENS}, {}", tokens.len());
        return Err(metadata.refused(TYPES, &reason));
    }
    let mut vocabulary = Map::new();
    let mut added = Vec::new();
    for (id, (&token, &kind)) in tokens.iter().zip(&types).enumerate() {
        if vocabulary.insert(token.to_owned(), json!(id)).is_some() {
            return Err(metadata.refused(TOKENS, &format!("has {token:?} twice")));
        }
        if kind == CONTROL || kind == USER_DEFINED {
            added.push(json!({
                "id": id,
                "content": token,
                "single_word": false,
                "lstrip": false,
                "rstrip": false,
                "normalized": false,
                "special": kind == CONTROL,
            }));
        }
    }
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": rule.normalizer,
        "pre_tokenizer": rule.pre_tokenizer,
        "post_processor": first_token(metadata, &tokens)?,
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
        },
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": rule.whole_words_first,
            "vocab": vocabulary,
            "merges": metadata.texts(MERGES)?,
        },
    });
    Ok(Some(tokenizer.to_string()))
}

/// The token that stands before every text, as a post-processor; null if none does.
fn first_token(metadata: &Metadata, tokens: &[&str]) -> Result<Value, ExchangeError> {
    if metadata.flag(BEGINS)? != Some(true) {
        return Ok(Value::Null);
    }
    let id = metadata.token(FIRST)?;
    let Some((id, &token)) = id.and_then(|id| Some((id, tokens.get(id)?))) else {
        return Err(metadata.refused(FIRST, &format!("must be a token, since {BEGINS} is true")));
    };
    let first = json!({ "SpecialToken": { "id": token, "type_id": 0 } });
    let text = |name: &str, part: u32| json!({ "Sequence": { "id": name, "type_id": part } });
    Ok(json!({
        "type": "TemplateProcessing",
        "single": [first, text("A", 0)],
        "pair": [first, text("A", 0), text("B", 1)],
        "special_tokens": { token: { "id": token, "ids": [id], "tokens": [token] } },
    }))
}

/// What is done to a text before merges.
struct Rule {
    normalizer: Value,
    pre_tokenizer: Value,
    /// A word that is a token is not merged.
    whole_words_first: bool,
}

impl Rule {
    fn named(metadata: &Metadata) -> Result<Self, ExchangeError> {
        let bytes = |splits: bool| {
            json!({
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": splits,
            })
        };
        let split_by = |pattern: &str| {
            let split = json!({
                "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated",
                "invert": false,
            });
            json!({ "type": "Sequence", "pretokenizers": [split, bytes(false)] })
        };
        let digits = json!({ "type": "Digits", "individual_digits": true });
        let (normalizer, pre_tokenizer, whole_words_first) = match metadata.text(RULE)? {
            Some("gpt-2" | "mpt" | "olmo" | "phi-2") => (Value::Null, bytes(true), false),
            Some("smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone") => {
                let sequence =
                    json!({ "type": "Sequence", "pretokenizers": [digits, bytes(true)] });
                (Value::Null, sequence, false)
            }
            Some("llama-bpe") => (Value::Null, split_by(LLAMA_3), true),
            Some("qwen2") => (json!({ "type": "NFC" }), split_by(QWEN_2), false),
            _ => {
                let known = "is not supported; gpt-2, smollm, llama-bpe and qwen2 are";
                return Err(metadata.refused(RULE, known));
            }
        };
        Ok(Self {
            normalizer,
            pre_tokenizer,
            whole_words_first,
        })
    }
}
