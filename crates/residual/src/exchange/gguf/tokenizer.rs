//! The tokenizer in a GGUF file, as a `tokenizer.json`.
//!
//! A file names its tokenizer's kind. That of byte-level BPE names also the rule that splits text before
//! merges (`tokenizer.ggml.pre`); the rules themselves are in `llama-vocab.cpp` of llama.cpp. Those that
//! are known here are below. Another name is refused: tokens that are nearly right are wrong.

use serde_json::{Map, Value, json};

use super::{metadata::Metadata, sentencepiece};
use crate::exchange::ExchangeError;

const KIND: &str = "tokenizer.ggml.model";
const RULE: &str = "tokenizer.ggml.pre";
pub const TOKENS: &str = "tokenizer.ggml.tokens";
pub const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const BEGINS: &str = "tokenizer.ggml.add_bos_token";
const FIRST: &str = "tokenizer.ggml.bos_token_id";

/// Types of tokens that stand for themselves in a text: control tokens and those of a user.
pub const CONTROL: i64 = 3;
pub const USER_DEFINED: i64 = 4;

/// Contractions, words, numbers of up to three digits (Llama 3) or of one (Qwen 2), signs, lines.
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The `tokenizer.json`; `None` if the file has no tokenizer.
pub fn read(metadata: &Metadata) -> Result<Option<String>, ExchangeError> {
    let tokenizer = match metadata.text(KIND)? {
        None => return Ok(None),
        Some("gpt2") => byte_level(metadata)?,
        Some("llama") => sentencepiece::read(metadata)?,
        Some(_) => {
            let reason = "is not supported; gpt2 (byte-level BPE) and llama (SentencePiece) are";
            return Err(metadata.refused(KIND, reason));
        }
    };
    Ok(Some(tokenizer.to_string()))
}

fn byte_level(metadata: &Metadata) -> Result<Value, ExchangeError> {
    let rule = Rule::named(metadata)?;
    let tokens = Tokens::read(metadata)?;
    let mut added = Vec::new();
    for (id, (text, &kind)) in tokens.texts.iter().zip(&tokens.kinds).enumerate() {
        if kind == CONTROL || kind == USER_DEFINED {
            added.push(added_token(id, text, kind == CONTROL, false));
        }
    }
    let parts = Parts {
        added,
        normalizer: rule.normalizer,
        pre_tokenizer: rule.pre_tokenizer,
        post_processor: first_token(metadata, &tokens.texts, false)?,
        decoder: json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
        }),
        vocabulary: vocabulary(metadata, &tokens.texts)?,
        merges: json!(metadata.texts(MERGES)?),
        whole_words_first: rule.whole_words_first,
        unknown: Value::Null,
        bytes: false,
    };
    Ok(parts.json())
}

/// The tokens of a file, and the type of each.
pub struct Tokens<'a> {
    pub texts: Vec<&'a str>,
    pub kinds: Vec<i64>,
}

impl<'a> Tokens<'a> {
    pub fn read(metadata: &'a Metadata) -> Result<Self, ExchangeError> {
        let (texts, kinds) = (metadata.texts(TOKENS)?, metadata.wholes(TYPES)?);
        if kinds.len() != texts.len() {
            let reason = format!("must be as many as {TOKENS}, {}", texts.len());
            return Err(metadata.refused(TYPES, &reason));
        }
        Ok(Self { texts, kinds })
    }
}

/// The ids of tokens by their names.
pub fn vocabulary(metadata: &Metadata, names: &[impl AsRef<str>]) -> Result<Value, ExchangeError> {
    let mut vocabulary = Map::new();
    for (id, name) in names.iter().enumerate() {
        let name = name.as_ref();
        if vocabulary.insert(name.to_owned(), json!(id)).is_some() {
            return Err(metadata.refused(TOKENS, &format!("has {name:?} twice")));
        }
    }
    Ok(Value::Object(vocabulary))
}

/// A token that is looked for in a text before the others.
pub fn added_token(id: usize, text: &str, is_special: bool, is_normalized: bool) -> Value {
    json!({
        "id": id,
        "content": text,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": is_normalized,
        "special": is_special,
    })
}

/// The parts of a `tokenizer.json` whose model is byte-pair encoding.
pub struct Parts {
    pub added: Vec<Value>,
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    pub post_processor: Value,
    pub decoder: Value,
    pub vocabulary: Value,
    pub merges: Value,
    /// A word that is a token is not merged.
    pub whole_words_first: bool,
    /// The token for text that no token stands for. Several in a row are one.
    pub unknown: Value,
    /// Text that no token stands for becomes the tokens of its bytes.
    pub bytes: bool,
}

impl Parts {
    pub fn json(self) -> Value {
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added,
            "normalizer": self.normalizer,
            "pre_tokenizer": self.pre_tokenizer,
            "post_processor": self.post_processor,
            "decoder": self.decoder,
            "model": {
                "type": "BPE",
                "dropout": null,
                "unk_token": self.unknown,
                "continuing_subword_prefix": null,
                "end_of_word_suffix": null,
                "fuse_unk": !self.unknown.is_null(),
                "byte_fallback": self.bytes,
                "ignore_merges": self.whole_words_first,
                "vocab": self.vocabulary,
                "merges": self.merges,
            },
        })
    }
}

/// The token that stands before every text, as a post-processor; null if none does. Where the file does
/// not say whether one does, a file that names it has it `by_default`.
pub fn first_token(
    metadata: &Metadata,
    tokens: &[&str],
    by_default: bool,
) -> Result<Value, ExchangeError> {
    let begins = metadata.flag(BEGINS)?;
    if !begins.unwrap_or(by_default && metadata.has(FIRST)) {
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
