//! An exported folder's tokenizer cuts text as the run does.

mod common;

use std::{collections::HashMap, fs, path::Path};

use common::{Workshop, assert_ok, json};
use tokenizers::Tokenizer;

const TEXT: &str = "the lamp burns well; é 🦀\n";

/// Pairs of bytes, and a special token before every text.
const TOKENIZER: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "decoder": null,
    "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true}],
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s*\\S+"}, "behavior": "Isolated", "invert": false},
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
    "model": {"type": "WordLevel", "vocab": {"<s>": 0, "the": 1, " lamp": 2, " burns": 3, " well;": 4, "\nthe": 5, "?": 6},
        "unk_token": "?"}
}"#;

/// A run of a text cut by `tokens`, exported.
fn exported(tokens: &str) -> Workshop {
    let workshop = Workshop::new();
    workshop.write("text.txt", &TEXT.repeat(60));
    workshop.write("t.json", TOKENIZER);
    let config = format!(
        "task = {{ name = \"text\", path = \"text.txt\", tokens = \"{tokens}\" }}
         model = {{ n_layers = 1, n_heads = 2, d_model = 16, n_ctx = 32 }}
         train = {{ steps = 1, batch_size = 2, learning_rate = 1e-3 }}"
    );
    let config = workshop.write("text.toml", &config);
    assert_ok(&workshop.train(&config, &["--out", "run"]));
    assert_ok(&workshop.inspect("run", &["export", "--to", "out"]));
    workshop
}

fn names(folder: &Path) -> Vec<String> {
    serde_json::from_slice(&fs::read(folder.join("vocabulary.json")).unwrap()).unwrap()
}

#[test]
fn the_exported_tokenizer_gives_the_tokens_that_predict_reads() {
    for (tokens, prompts) in [
        ("characters", ["the lamp", " é🦀\n\n", "w"]),
        ("bytes", ["the lamp", " é🦀\n\n", "Zwölf"]),
        ("words", ["the lamp", " lamp burns;", "\n é 🦀"]),
        ("t.json", ["the lamp burns", "the lamp lit\nthe", "<s>"]),
    ] {
        let workshop = exported(tokens);
        let folder = workshop.path("out");
        let names = names(&folder);
        let ids: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        let mut tokenizer = tokenizer;
        tokenizer.set_encode_special_tokens(true); // as tokenizer_config.json asks
        for prompt in prompts {
            let arguments = ["predict", "--prompt", prompt, "--json"];
            let predicted = json(&workshop.inspect("run", &arguments));
            let expected: Vec<usize> = predicted["tokens"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| ids[name.as_str().unwrap()])
                .collect();
            let encoding = tokenizer.encode(prompt, true).unwrap();
            let found: Vec<usize> = encoding.get_ids().iter().map(|&id| id as usize).collect();
            assert_eq!(found, expected, "{tokens}: {prompt:?}");
        }
        let config = fs::read_to_string(folder.join("tokenizer_config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["tokenizer_class"], "PreTrainedTokenizerFast");
        assert_eq!(config["split_special_tokens"], true);
        assert_eq!(config["model_max_length"], 32);
    }
}
