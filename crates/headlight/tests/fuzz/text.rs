//! Texts to learn from, and tokenizers.

use std::fs;

use crate::{
    harness::{SLOW, fuzz, watch},
    mutation::changed,
};
use headlight_run::{TextConfig, TextTokens};
use headlight_tasks::{Cache, RowKey, Task, Text, Use};
use tempfile::TempDir;

const N_CTX: usize = 4;

const TOKENIZER: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"the": 0, "lamp": 1, "burns": 2, "again": 5}, "unk_token": "the"}
}"#;

/// A text that was accepted gives sequences of its own tokens.
fn check(config: &TextConfig) {
    let Ok(text) = Text::open_with(config, N_CTX, &Cache::none()) else {
        return;
    };
    let vocabulary = text.vocabulary().len();
    for row in 0..4 {
        for usage in [Use::Training, Use::Validation] {
            let sequence = text.sequence(RowKey {
                seed: 0,
                usage,
                step: 0,
                row,
            });
            assert_eq!(
                (sequence.tokens.len(), sequence.scored.len()),
                (N_CTX + 1, N_CTX)
            );
            assert!(
                sequence
                    .tokens
                    .iter()
                    .all(|&token| (token as usize) < vocabulary)
            );
        }
    }
}

fn texts(name: &str, tokens: &TextTokens) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    let shipped = fs::read("../../data/lighthouse.txt").unwrap();
    let valid = vec![
        shipped[..1500].to_vec(),
        "é🦀 \u{301}a\r\n—".repeat(20).into_bytes(),
        b"the lamp ".repeat(30),
    ];
    fuzz(name, SLOW * 2, changed(valid), |bytes| {
        fs::write(&path, bytes).unwrap();
        check(&TextConfig {
            path: path.clone(),
            tokens: tokens.clone(),
        });
    });
}

#[test]
fn texts_by_characters() {
    texts("texts by characters", &TextTokens::Characters);
}

#[test]
fn texts_by_bytes() {
    texts("texts by bytes", &TextTokens::Bytes);
}

#[test]
fn texts_by_words() {
    texts("texts by words", &TextTokens::Words);
}

#[test]
fn large_texts_stay_within_bounds() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    let words = (0..2_000_000_u32)
        .map(|word| word.to_string())
        .collect::<Vec<_>>()
        .join(" ");
    let characters: String = ('a'..='\u{ffff}').cycle().take(4_000_000).collect();
    for text in [
        words,
        characters,
        "a".repeat(24 << 20),
        "a ".repeat(12 << 20),
    ] {
        fs::write(&path, &text).unwrap();
        for tokens in [TextTokens::Characters, TextTokens::Bytes, TextTokens::Words] {
            watch(&format!("text by {tokens}"), text.len(), || {
                check(&TextConfig {
                    path: path.clone(),
                    tokens: tokens.clone(),
                });
            });
        }
    }
}

#[test]
fn tokenizers() {
    let folder = TempDir::new().unwrap();
    let (path, tokenizer) = (
        folder.path().join("a.txt"),
        folder.path().join("tokenizer.json"),
    );
    fs::write(&path, "the lamp burns again ".repeat(20)).unwrap();
    fuzz(
        "tokenizers",
        SLOW,
        changed(vec![TOKENIZER.as_bytes().to_vec()]),
        |bytes| {
            fs::write(&tokenizer, bytes).unwrap();
            check(&TextConfig {
                path: path.clone(),
                tokens: TextTokens::Tokenizer(tokenizer.clone()),
            });
        },
    );
}
