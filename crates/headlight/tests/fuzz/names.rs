//! What people type: heads, sites, targets, prompts.

use crate::{
    harness::{CHEAP, fuzz},
    mutation::{changed, text},
};
use headlight_heads::HeadName;
use headlight_residual::Site;
use headlight_run::{Quantity, StopWhen, TaskConfig, TextConfig, TextTokens};
use headlight_tasks::{Vocabulary, encode_prompt, parse_stop};

fn of(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn head_names() {
    fuzz(
        "head names",
        CHEAP,
        changed(of(&["L0H1", "L12H345", "L1H2,L0H0"])),
        |bytes| {
            if let Ok(head) = text(bytes).parse::<HeadName>() {
                assert_eq!(head.to_string(), text(bytes));
            }
        },
    );
}

#[test]
fn sites() {
    let mut valid: Vec<String> = Site::of_block(1).iter().map(Site::to_string).collect();
    valid.extend(Site::outside_blocks().iter().map(Site::to_string));
    fuzz(
        "sites",
        CHEAP / 2,
        changed(valid.into_iter().map(String::into_bytes).collect()),
        |bytes| {
            if let Ok(site) = text(bytes).parse::<Site>() {
                assert_eq!(site.to_string(), text(bytes));
            }
        },
    );
}

#[test]
fn targets() {
    let valid = of(&["accuracy >= 0.98", "exact >= 1", "validation <= 0.05"]);
    fuzz("targets", CHEAP, changed(valid), |bytes| {
        if let Ok(target) = text(bytes).parse::<StopWhen>() {
            assert_eq!(target.to_string().parse(), Ok(target));
            // The best there is reaches every target, what is no number none.
            assert!(
                target.is_reached(|quantity| if quantity == Quantity::Validation {
                    0.0
                } else {
                    1.0
                })
            );
            assert!(!target.is_reached(|_| f64::NAN));
        }
    });
}

#[test]
fn kinds_of_tokens() {
    fuzz(
        "kinds of tokens",
        CHEAP,
        changed(of(&["characters", "bytes", "words", "a/tokenizer.json"])),
        |bytes| {
            if let Ok(kind) = text(bytes).parse::<TextTokens>() {
                assert_eq!(kind.to_string(), text(bytes));
            }
        },
    );
}

/// A prompt, and after a line feed the vocabulary's names, one a line.
fn prompts(name: &str, task: &TaskConfig) {
    let valid = of(&[
        "a b c\na\nb\nc",
        "the cat's lamp\nthe\ncat's\nlamp\n,",
        "é \\n␣\n\\n\n␣\né\n\\u{301}\n\\\\",
        "\n",
    ]);
    fuzz(name, CHEAP, changed(valid), |bytes| {
        let whole = text(bytes);
        let mut lines = whole.lines();
        let prompt = lines.next().unwrap_or_default();
        let names = if name == "prompts of bytes" {
            vec![String::new(); 256]
        } else {
            lines.map(String::from).collect()
        };
        let Ok(vocabulary) = Vocabulary::of_run(task, names, None) else {
            return;
        };
        let known = |tokens: &[u32]| {
            let mut ids = tokens.iter().map(|&token| token as usize);
            ids.all(|id| id < vocabulary.len())
        };
        if let Ok(tokens) = encode_prompt(&vocabulary, prompt, 16) {
            assert!((1..=16).contains(&tokens.len()));
            assert!(known(&tokens), "{tokens:?}");
            let again = vocabulary.encode(&vocabulary.decode(&tokens));
            assert_eq!(again.as_ref(), Ok(&tokens));
        }
        let _ = parse_stop(&vocabulary, prompt);
        if vocabulary.len() == 0 {
            return;
        }
        let prompted = vocabulary.encode(&vocabulary.prompt(&[0], 1)).unwrap();
        assert!(prompted.len() <= 1 && known(&prompted));
    });
}

fn text_task(tokens: TextTokens) -> TaskConfig {
    TaskConfig::Text(TextConfig {
        path: "a.txt".into(),
        tokens,
    })
}

#[test]
fn prompts_of_token_names() {
    let config = headlight_run::Config::parse(
        "task = { name = 'recall' }\nmodel = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64 }\n\
         train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }",
        "a.toml",
        &[],
    );
    prompts("prompts of token names", &config.unwrap().task);
}

#[test]
fn prompts_of_characters() {
    prompts("prompts of characters", &text_task(TextTokens::Characters));
}

#[test]
fn prompts_of_bytes() {
    prompts("prompts of bytes", &text_task(TextTokens::Bytes));
}

#[test]
fn prompts_of_words() {
    prompts("prompts of words", &text_task(TextTokens::Words));
}
