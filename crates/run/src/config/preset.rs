//! `model.preset`: known architectures by name.

use toml::Table;

use crate::{Error, config::parse::unknown_value};

/// Name, and the keys of `[model]` it stands for.
const PRESETS: [(&str, &str); 4] = [
    // Two layers of attention and nothing else, of the size in which induction heads were first
    // taken apart (Elhage et al. 2021).
    (
        "attn_only_2l",
        "n_layers = 2\nn_heads = 8\nd_model = 512\nn_ctx = 1024\nfeed_forward = \"none\"",
    ),
    // nanoGPT as it learns Shakespeare by characters.
    (
        "nano_gpt",
        "n_layers = 6\nn_heads = 6\nd_model = 384\nn_ctx = 256\nfeed_forward = \"gelu\"\nfeed_forward_bias = false\n\
         tied_embedding = true",
    ),
    // GPT-2's smallest (Radford et al. 2019).
    (
        "gpt2",
        "n_layers = 12\nn_heads = 12\nd_model = 768\nn_ctx = 1024\nfeed_forward = \"gelu_tanh\"\nattention_bias = true\n\
         tied_embedding = true",
    ),
    // Llama (Touvron et al. 2023), of a size that tells stories.
    (
        "llama",
        "n_layers = 6\nn_heads = 6\nd_model = 288\nn_ctx = 256\nfeed_forward = \"swiglu\"\nnorm = \"rms_norm\"\n\
         positions = \"rotary\"",
    ),
];

/// Every preset's name.
pub fn names() -> [&'static str; PRESETS.len()] {
    PRESETS.map(|(name, _)| name)
}

/// Puts the preset's keys where `[model]` has none of its own, and takes the preset's name out.
///
/// # Errors
/// If there is no such preset.
pub fn expand(model: &mut Table) -> Result<(), Error> {
    let Some(name) = model.remove("preset") else {
        return Ok(());
    };
    let Some((_, keys)) = PRESETS
        .iter()
        .find(|(known, _)| name.as_str() == Some(known))
    else {
        return Err(unknown_value("model.preset", &name, &names()));
    };
    for (key, value) in keys.parse::<Table>().into_iter().flatten() {
        model.entry(key).or_insert(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Config, FeedForwardKind};

    fn parse(model: &str) -> Result<Config, String> {
        let text = format!(
            "task = {{ name = \"repeat\" }}\ntrain = {{ steps = 10, batch_size = 8, learning_rate = 1e-3 }}\n[model]\n{model}"
        );
        Config::parse(&text, "a.toml", &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn every_preset_is_a_model_and_own_keys_override_it() {
        for (name, _) in super::PRESETS {
            let config = parse(&format!("preset = \"{name}\"\nn_layers = 3")).unwrap();
            assert_eq!(config.model.n_layers, 3, "{name}");
            // What is written down needs the preset no more.
            let resolved = config.to_toml().unwrap();
            assert!(!resolved.contains("preset"));
            assert_eq!(
                Config::parse(&resolved, "config.toml", &[]).unwrap(),
                config
            );
        }
        let gpt2 = parse("preset = \"gpt2\"\nfeed_forward = \"relu\"")
            .unwrap()
            .model;
        assert_eq!(
            (gpt2.feed_forward, gpt2.attention_bias, gpt2.d_ff()),
            (FeedForwardKind::Relu, true, 3072)
        );
    }

    #[test]
    fn an_unknown_preset_is_named() {
        let error = parse("preset = \"gpt3\"").unwrap_err();
        assert_eq!(
            error,
            "a.toml: model.preset = \"gpt3\": unknown value, did you mean gpt2?"
        );
        assert!(
            parse("preset = 2")
                .unwrap_err()
                .starts_with("a.toml: model.preset = 2: unknown value")
        );
    }
}
