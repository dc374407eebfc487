//! A tokenizer of `SentencePiece` in a GGUF file: byte-pair encoding by scores (Kudo & Richardson 2018).
//!
//! `SentencePiece` joins the two neighbours whose piece has the highest score, as long as there are any.
//! A `tokenizer.json` has a list of pairs instead. So each cut of a piece into two pieces is a pair,
//! and the pairs stand in the order of the scores of their pieces. `transformers` does the same.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{
    metadata::Metadata,
    tokenizer::{
        CONTROL, Parts, TOKENS, TYPES, Tokens, USER_DEFINED, added_token, first_token, vocabulary,
    },
};
use crate::exchange::ExchangeError;

const SCORES: &str = "tokenizer.ggml.scores";
const PREFIX: &str = "tokenizer.ggml.add_space_prefix";

/// Types of tokens besides those that stand for themselves.
const NORMAL: i64 = 1;
const UNKNOWN: i64 = 2;
const UNUSED: i64 = 5;
const BYTE: i64 = 6;

/// Stands for a space.
const SPACE: &str = "▁";
/// Published pieces have at most 93 bytes. All cuts of a piece are tried, so its length is bounded.
const LONGEST_PIECE: usize = 512;

/// The `tokenizer.json`.
pub fn read(metadata: &Metadata) -> Result<Value, ExchangeError> {
    let tokens = Tokens::read(metadata)?;
    let merges = merges(metadata, &tokens)?;
    let spaced = metadata.flag(PREFIX)?.unwrap_or(true);
    let mut unknown = None;
    let mut added = Vec::new();
    let mut names = Vec::with_capacity(tokens.texts.len());
    for (id, (&text, &kind)) in tokens.texts.iter().zip(&tokens.kinds).enumerate() {
        match kind {
            UNKNOWN => {
                unknown = Some(text);
                added.push(added_token(id, text, true, false));
            }
            CONTROL | UNUSED => added.push(added_token(id, text, true, false)),
            // Without a prefix it is looked for in the text with its spaces replaced, as in
            // SentencePiece. With one, that text would begin with the prefix.
            USER_DEFINED => added.push(added_token(id, &with_spaces(text), false, !spaced)),
            NORMAL | BYTE => {}
            _ => {
                let reason = format!("has the unknown type {kind}");
                return Err(metadata.refused(TYPES, &reason));
            }
        }
        names.push(match kind {
            USER_DEFINED => with_spaces(text),
            _ => text.to_owned(),
        });
    }
    let has_bytes = tokens.kinds.contains(&BYTE);
    if unknown.is_none() && !has_bytes {
        let reason = "has neither a token for unknown text nor tokens for bytes";
        return Err(metadata.refused(TOKENS, reason));
    }
    let replaced = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    let back = json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " });
    let mut normalizers = vec![replaced];
    let mut decoders = vec![
        back,
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if spaced {
        normalizers.insert(0, json!({ "type": "Prepend", "prepend": SPACE }));
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    let parts = Parts {
        added,
        normalizer: json!({ "type": "Sequence", "normalizers": normalizers }),
        pre_tokenizer: Value::Null,
        post_processor: first_token(metadata, &tokens.texts, true)?,
        decoder: json!({ "type": "Sequence", "decoders": decoders }),
        vocabulary: vocabulary(metadata, &names)?,
        merges: json!(merges),
        whole_words_first: false,
        unknown: json!(unknown),
        bytes: has_bytes,
    };
    Ok(parts.json())
}

/// Two pieces that are joined.
struct Merge<'a> {
    score: f32,
    pair: [&'a str; 2],
}

/// The pairs whose pieces are joined, the first first. Of one score, those with the longest left piece
/// come first, as in `transformers`: the runs of spaces of Llama 2 have one score, and grow from the left.
fn merges<'a>(
    metadata: &Metadata,
    tokens: &Tokens<'a>,
) -> Result<Vec<[&'a str; 2]>, ExchangeError> {
    let scores = metadata.numbers(SCORES)?;
    if scores.len() != tokens.texts.len() {
        let reason = format!("must be as many as {TOKENS}, {}", tokens.texts.len());
        return Err(metadata.refused(SCORES, &reason));
    }
    let mut pieces = Vec::new();
    for ((&text, &kind), &score) in tokens.texts.iter().zip(&tokens.kinds).zip(&scores) {
        if !score.is_finite() {
            return Err(metadata.refused(SCORES, "has a number that is not finite"));
        }
        if kind != NORMAL {
            continue;
        }
        if text.len() > LONGEST_PIECE {
            let reason = format!(
                "has a piece of {} bytes, more than {LONGEST_PIECE}",
                text.len()
            );
            return Err(metadata.refused(TOKENS, &reason));
        }
        pieces.push((text, score));
    }
    let known: HashSet<&str> = pieces.iter().map(|(text, _)| *text).collect();
    let mut merges = Vec::new();
    let (mut joined, mut of_score) = (0, HashMap::new());
    for &(text, score) in &pieces {
        let before = merges.len();
        for (at, _) in text.char_indices() {
            let (left, right) = text.split_at(at);
            if known.contains(left) && known.contains(right) {
                let pair = [left, right];
                merges.push(Merge { score, pair });
            }
        }
        if merges.len() > before {
            joined += 1;
            *of_score.entry(score.to_bits()).or_insert(0) += 1;
        }
    }
    let most = of_score.into_values().max().unwrap_or(0);
    if most > 1 && 2 * most > joined {
        let reason = format!("gives {most} of {joined} pieces one score: it does not order them");
        return Err(metadata.refused(SCORES, &reason));
    }
    merges.sort_by(|a, b| {
        let lengths = |merge: &Merge| merge.pair.map(|piece| piece.chars().count());
        let by_score = b.score.total_cmp(&a.score);
        by_score.then_with(|| lengths(b).cmp(&lengths(a)))
    });
    Ok(merges.into_iter().map(|merge| merge.pair).collect())
}

fn with_spaces(text: &str) -> String {
    text.replace(SPACE, " ")
}
