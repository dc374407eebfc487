//! Models that `transformers` wrote are read as what they are, and come back as they were.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{architectures, assert_close, config, gpt2, llama, model, tokens, values};
use headlight_attention::{AttentionOptions, Biases, QkNorm, RotaryScaling};
use headlight_residual::{
    AttentionSite, Decoder, DecoderConfig, NoProbe, Positions, Site, from_huggingface,
    huggingface_config, to_huggingface, to_transformer_lens, weights_to_bytes,
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use tempfile::TempDir;

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn read(bytes: &[u8]) -> Tensors {
    let floats = |view: TensorView<'_>| match view.dtype() {
        Dtype::I32 => view
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|&value| i32::from_le_bytes(value) as f32)
            .collect(),
        Dtype::F32 => view
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|&value| f32::from_le_bytes(value))
            .collect(),
        dtype => panic!("{dtype:?}"),
    };
    let file = SafeTensors::deserialize(bytes).unwrap();
    file.iter()
        .map(|(name, view)| (name.to_owned(), (view.shape().to_vec(), floats(view))))
        .collect()
}

fn write(folder: &Path, tensors: &Tensors) {
    let bytes: Vec<Vec<u8>> = tensors
        .values()
        .map(|(_, values)| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, (shape, _)), bytes)| {
            (
                name,
                TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
            )
        });
    fs::write(
        folder.join("model.safetensors"),
        safetensors::serialize(views, None).unwrap(),
    )
    .unwrap();
}

fn tensor<const D: usize>(tensors: &Tensors, name: &str) -> Tensor<D> {
    let (shape, values) = tensors
        .get(name)
        .unwrap_or_else(|| panic!("no {name}"))
        .clone();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex())
}

fn largest_difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    assert_eq!(a.dims(), b.dims());
    (a - b).abs().max().into_scalar()
}

const FIXTURES: [&str; 21] = [
    "gpt2",
    "gpt2_variant",
    "llama",
    "llama_variant",
    "llama3",
    "gpt_neox",
    "gpt_neox_variant",
    "mistral",
    "qwen2",
    "qwen2_variant",
    "qwen3",
    "phi3",
    "phi3_variant",
    "yarn",
    "yarn_variant",
    "longrope",
    "longrope_variant",
    "dynamic",
    "olmo2",
    "gemma2",
    "gemma3",
];
/// Of these, the ones with angles for longer contexts.
const LONG: std::ops::Range<usize> = 13..18;

#[test]
fn models_written_by_transformers_give_the_same_logits_and_patterns() {
    for name in FIXTURES {
        let model = from_huggingface(&fixture(name), &Device::flex()).unwrap();
        assert_computes_as_expected(name, &model, "");
    }
}

#[test]
fn models_written_by_transformers_compute_the_same_beyond_their_original_context() {
    for name in &FIXTURES[LONG] {
        let model = from_huggingface(&fixture(name), &Device::flex()).unwrap();
        assert_computes_as_expected(name, &model, "long.");
    }
}

/// The numbers of a fixture under the names that begin with `prefix`.
fn assert_computes_as_expected(name: &str, model: &Decoder, prefix: &str) {
    let file = read(&fs::read(fixture(name).join("expected.safetensors")).unwrap());
    let expected = |key: &str| format!("{prefix}{key}");
    let tokens: Tensor<2, Int> = tensor::<2>(&file, &expected("tokens")).int();
    let (logits, seen) = model
        .logits_and_activations(tokens, &model.pattern_sites(), &mut NoProbe)
        .unwrap();
    let difference = largest_difference(logits, tensor(&file, &expected("logits")));
    assert!(difference <= 5e-5, "{name}: logits differ by {difference}");
    for layer in 0..model.blocks.len() {
        let pattern = seen.tensor::<4>(Site::Attention(layer, AttentionSite::Pattern));
        let theirs = tensor(&file, &expected(&format!("pattern.{layer}")));
        let difference = largest_difference(pattern, theirs);
        assert!(
            difference <= 1e-5,
            "{name}: patterns of layer {layer} differ by {difference}"
        );
    }
}

/// The spellings of older versions of transformers.
#[test]
fn a_scaling_of_angles_is_the_same_in_each_spelling() {
    let scaling = |name: &str, key: &str, value: &str| {
        let (folder, _) = copy_of(name);
        write_config(folder.path(), name, key, value);
        match huggingface_config(folder.path()).unwrap().positions {
            Positions::Rotary(rotary) => rotary.scaling,
            positions => panic!("{positions:?}"),
        }
    };
    // The fixture's context is 8, so the factor is 8/2 where the file has none.
    let of_yarn = |keys: &str| {
        let value = format!(r#"{{"original_max_position_embeddings": 2, {keys}}}"#);
        scaling("llama3", "rope_parameters", &value)
    };
    let plain = of_yarn(r#""rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0"#);
    let yarn = RotaryScaling::Yarn {
        factor: 4.0,
        original_n_ctx: 2,
        fast_turns: 32.0,
        slow_turns: 1.0,
        whole_pairs: true,
        attention_factor: None,
    };
    assert_eq!(plain, yarn);
    assert_eq!(
        of_yarn(r#""type": "yarn", "factor": null, "finetuned": true"#),
        yarn
    );
    let scaled = of_yarn(r#""type": "yarn", "mscale": 2.0, "mscale_all_dim": 1.0"#);
    let ratio = (0.2 * 4f64.ln() + 1.0) / (0.1 * 4f64.ln() + 1.0);
    assert!((scaled.attention_factor() - ratio).abs() < 1e-12);

    let lists = r#""short_factor": [1.0, 1.0], "long_factor": [2.0, 3.0]"#;
    let of_phi3 = |kind: &str| {
        let value = format!(r#"{{"type": "{kind}", {lists}}}"#);
        scaling("phi3", "rope_parameters", &value)
    };
    // Phi-3's original context is 4096 where the file does not say, so this one is not longer.
    let long = RotaryScaling::LongRope {
        short_factors: vec![1.0, 1.0],
        long_factors: vec![2.0, 3.0],
        original_n_ctx: 4096,
        attention_factor: 1.0,
    };
    for kind in ["longrope", "su", "yarn"] {
        assert_eq!(of_phi3(kind), long, "{kind}");
    }
}

/// Writes an export as a folder and reads it back.
fn there_and_back(model: &Decoder) -> (TempDir, Decoder) {
    let folder = TempDir::new().unwrap();
    let files = to_huggingface(model).unwrap();
    fs::write(folder.path().join("config.json"), files.config).unwrap();
    fs::write(folder.path().join("model.safetensors"), files.weights).unwrap();
    let back = from_huggingface(folder.path(), &Device::flex()).unwrap();
    (folder, back)
}

#[test]
fn a_round_trip_changes_no_bit() {
    for name in FIXTURES {
        let model = from_huggingface(&fixture(name), &Device::flex()).unwrap();
        let (folder, back) = there_and_back(&model);
        assert_eq!(back.config(), model.config(), "{name}");
        assert!(
            weights_to_bytes(&back).unwrap() == weights_to_bytes(&model).unwrap(),
            "{name}"
        );
        if name == "gpt2" {
            let written = read(&fs::read(folder.path().join("model.safetensors")).unwrap());
            assert!(
                written == read(&fs::read(fixture(name).join("model.safetensors")).unwrap()),
                "{name}"
            );
        }
    }
    for own in [
        gpt2(),
        llama(),
        DecoderConfig {
            tied_embedding: false,
            ..gpt2()
        },
    ] {
        let model = model(&own);
        let (_, back) = there_and_back(&model);
        assert_eq!(
            values(back.forward(tokens())),
            values(model.forward(tokens()))
        );
    }
    // Without biases it comes back with biases of 0.
    let plain = model(&DecoderConfig {
        attention_bias: Biases::NONE,
        feed_forward_bias: false,
        ..gpt2()
    });
    let (_, back) = there_and_back(&plain);
    assert_close("no biases", back.forward(tokens()), plain.forward(tokens()));
}

#[test]
fn what_is_of_no_family_is_told_why() {
    let error = |config: DecoderConfig| to_huggingface(&model(&config)).unwrap_err().to_string();
    let said = |nearest: &str, parts: &str| {
        format!(
            "the model is of no family of transformers; the nearest is {nearest}, which has other: \
             {parts}"
        )
    };
    for (config, nearest, parts) in [
        (
            DecoderConfig {
                n_kv_heads: Some(2),
                ..gpt2()
            },
            "gpt2",
            "heads that share keys and values",
        ),
        (
            DecoderConfig {
                d_head: Some(5),
                window: Some(3),
                ..gpt2()
            },
            "gpt2",
            "width of heads, window",
        ),
        (
            DecoderConfig {
                positions: Positions::Alibi,
                ..gpt2()
            },
            "gpt2",
            "positions",
        ),
        (
            DecoderConfig {
                attention: AttentionOptions::default().with_softcap(3.0),
                ..llama()
            },
            "llama",
            "softcap of the scores",
        ),
        (
            DecoderConfig {
                qk_norm: QkNorm::AllHeads,
                ..llama()
            },
            "llama",
            "QK-norm",
        ),
    ] {
        assert_eq!(error(config), said(nearest, parts));
    }
    let folded = model(&gpt2()).fold_norms().unwrap();
    let error = to_huggingface(&folded).unwrap_err().to_string();
    assert_eq!(error, said("gpt2", "biases of the unembedding"));
}

#[test]
fn parts_that_several_families_share_are_written_as_the_family_that_has_them_all() {
    let family = |config: DecoderConfig| {
        let files = to_huggingface(&model(&config)).unwrap();
        let keys: serde_json::Value = serde_json::from_str(&files.config).unwrap();
        keys["model_type"].as_str().unwrap().to_owned()
    };
    let windowed = DecoderConfig {
        window: Some(3),
        ..llama()
    };
    assert_eq!(family(windowed.clone()), "mistral");
    let alternating = DecoderConfig {
        full_layers: vec![0, 2],
        attention_bias: Biases::QUERY_KEY_VALUE,
        ..windowed
    };
    assert_eq!(family(alternating), "qwen2");
    // Biases that a family lacks too are better than zeros.
    let partly_biased = DecoderConfig {
        attention_bias: Biases::QUERY_KEY_VALUE,
        ..llama()
    };
    assert_eq!(family(partly_biased), "qwen2");
    let queries_only = DecoderConfig {
        attention_bias: Biases {
            query: true,
            ..Biases::NONE
        },
        ..llama()
    };
    assert_eq!(family(queries_only), "llama");
}

/// A copy of a fixture of one file, to be damaged.
fn copy_of(name: &str) -> (TempDir, Tensors) {
    let folder = TempDir::new().unwrap();
    fs::copy(
        fixture(name).join("config.json"),
        folder.path().join("config.json"),
    )
    .unwrap();
    (
        folder,
        read(&fs::read(fixture(name).join("model.safetensors")).unwrap()),
    )
}

fn refusal(folder: &Path) -> String {
    from_huggingface(folder, &Device::flex())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_tensor_that_is_missing_left_over_or_of_the_wrong_shape_is_named() {
    let (folder, tensors) = copy_of("gpt2");
    for name in tensors.keys() {
        let mut damaged = tensors.clone();
        damaged.remove(name);
        write(folder.path(), &damaged);
        assert_eq!(refusal(folder.path()), format!("there is no tensor {name}"));

        let mut damaged = tensors.clone();
        damaged.insert(name.clone(), (vec![3, 1], vec![0.0; 3]));
        write(folder.path(), &damaged);
        assert!(refusal(folder.path()).starts_with(&format!(
            "tensor {name} has shape [3, 1], the model needs ["
        )));
    }
    let mut damaged = tensors.clone();
    damaged.insert(
        "transformer.h.2.ln_1.weight".to_owned(),
        (vec![16], vec![0.0; 16]),
    );
    write(folder.path(), &damaged);
    assert_eq!(
        refusal(folder.path()),
        "there is a tensor transformer.h.2.ln_1.weight, which the model has no place for"
    );
    // As first published: without `transformer.`, and with the masks of each layer.
    let mut old: Tensors = tensors
        .iter()
        .map(|(name, data)| (name.replace("transformer.", ""), data.clone()))
        .collect();
    let n_ctx = tensors["transformer.wpe.weight"].0[0];
    let square = vec![1, 1, n_ctx, n_ctx];
    for layer in 0..2 {
        let mask = (square.clone(), vec![1.0; n_ctx * n_ctx]);
        old.insert(format!("h.{layer}.attn.bias"), mask);
        old.insert(format!("h.{layer}.attn.masked_bias"), (vec![], vec![-1e4]));
    }
    write(folder.path(), &old);
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    let whole = from_huggingface(&fixture("gpt2"), &Device::flex()).unwrap();
    assert!(weights_to_bytes(&model).unwrap() == weights_to_bytes(&whole).unwrap());
}

#[test]
fn a_buffer_is_left_out_only_under_its_name_and_in_its_shape() {
    let (folder, tensors) = copy_of("gpt2");
    let n_ctx = tensors["transformer.wpe.weight"].0[0];
    let refused_with = |name: &str, shape: &[usize]| {
        let mut more = tensors.clone();
        let numbers = vec![1.0; shape.iter().product()];
        more.insert(name.to_owned(), (shape.to_vec(), numbers));
        write(folder.path(), &more);
        refusal(folder.path())
    };
    let mask = "transformer.h.1.attn.bias";
    assert_eq!(
        refused_with(mask, &[48]),
        format!("tensor {mask} has shape [48], the model needs [1, 1, {n_ctx}, {n_ctx}]")
    );
    let fill = "transformer.h.0.attn.masked_bias";
    assert_eq!(
        refused_with(fill, &[1]),
        format!("tensor {fill} has shape [1], the model needs []")
    );
    // A third layer, a layer of another spelling, another place, another family's buffer.
    for name in [
        "transformer.h.2.attn.bias",
        "transformer.h.01.attn.bias",
        "transformer.h.1.mlp.attn.bias",
        "transformer.attn.bias",
        "h.0.self_attn.rotary_emb.inv_freq",
    ] {
        assert_eq!(
            refused_with(name, &[1, 1, n_ctx, n_ctx]),
            format!("there is a tensor {name}, which the model has no place for")
        );
    }
}

#[test]
fn old_angles_in_the_shards_of_a_llama_are_left_out() {
    let folder = TempDir::new().unwrap();
    for entry in fs::read_dir(fixture("llama")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let whole = from_huggingface(folder.path(), &Device::flex()).unwrap();
    // A fourth shard, with the two angles of each head in both layers.
    let names = [0, 1].map(|layer| format!("model.layers.{layer}.self_attn.rotary_emb.inv_freq"));
    let index = folder.path().join("model.safetensors.index.json");
    let mut list: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&index).unwrap()).unwrap();
    for name in &names {
        list["weight_map"][name] = "angles.safetensors".into();
    }
    fs::write(&index, list.to_string()).unwrap();
    let write_angles = |count: usize| {
        let angles = TempDir::new().unwrap();
        let tensors = names
            .clone()
            .map(|name| (name, (vec![count], vec![1.0; count])));
        write(angles.path(), &tensors.into());
        let written = angles.path().join("model.safetensors");
        fs::copy(written, folder.path().join("angles.safetensors")).unwrap();
    };
    write_angles(2);
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    assert!(weights_to_bytes(&model).unwrap() == weights_to_bytes(&whole).unwrap());
    write_angles(3);
    assert_eq!(
        refusal(folder.path()),
        format!("tensor {} has shape [3], the model needs [2]", names[0])
    );
}

/// Writes `config.json` of a fixture with another value of one key.
fn write_config(folder: &Path, name: &str, key: &str, value: &str) {
    let text = fs::read_to_string(fixture(name).join("config.json")).unwrap();
    let mut config: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).unwrap();
    config.insert(key.to_owned(), serde_json::from_str(value).unwrap());
    let text = serde_json::to_string(&config).unwrap();
    fs::write(folder.join("config.json"), text).unwrap();
}

/// What is said of a fixture's configuration with another value of one key.
fn refusal_with(name: &str, key: &str, value: &str) -> String {
    let folder = TempDir::new().unwrap();
    write_config(folder.path(), name, key, value);
    refusal(folder.path())
}

#[test]
fn a_key_that_may_change_the_model_is_refused_with_its_value() {
    let unknown = "is no key that is known here; it may change what the model computes";
    for (name, key, value, reason) in [
        ("llama", "sliding_window", "4", unknown),
        ("llama", "logit_scale", "0.5", unknown),
        ("llama", "quantization_config", r#"{"bits":4}"#, unknown),
        ("llama", "n_positions", "8", unknown),
        ("gpt2", "rope_theta", "100.0", unknown),
        ("gpt2", "n_ctx", "4", "must be n_positions, 8"),
        ("gpt2", "is_encoder_decoder", "true", "is not supported"),
        ("gpt2", "pruned_heads", r#"{"0":[1]}"#, "is not supported"),
        ("llama", "rope_interleaved", "true", "is not supported"),
        ("llama", "partial_rotary_factor", "0.5", "must be 1"),
        ("llama", "rope_scaling", "2.0", "must be an object"),
    ] {
        let found = refusal_with(name, key, value);
        assert_eq!(found, format!("config.json: {key} = {value}: {reason}"));
    }
    assert_eq!(
        refusal_with("llama", "rope_theta", "500.0"),
        "config.json: rope_parameters.rope_theta = 10000.0: must be what it is elsewhere in the \
         file, 500"
    );
    let nested = refusal_with(
        "llama",
        "rope_scaling",
        r#"{"type": "default", "factor": 2.0}"#,
    );
    assert_eq!(
        nested,
        format!("config.json: rope_scaling.factor = 2.0: {unknown}")
    );
    // However long the value is, the refusal is one short line.
    let long = refusal_with("gpt2", "auto_map", &format!("[{}0]", "0,".repeat(1000)));
    assert!(
        long.contains("auto_map = [0,0,") && long.len() < 250,
        "{long}"
    );
}

#[test]
fn a_key_that_does_not_change_the_model_may_have_any_value() {
    let weights = |model: &Decoder| weights_to_bytes(model).unwrap();
    for name in ["gpt2", "llama_variant"] {
        let whole = from_huggingface(&fixture(name), &Device::flex()).unwrap();
        for (key, value) in [
            ("architectures", "null"),
            ("attn_pdrop", "0.5"),
            ("bos_token_id", "7"),
            ("dtype", r#""bfloat16""#),
            ("id2label", r#"{"0": "yes"}"#),
            ("is_encoder_decoder", "false"),
            ("pruned_heads", "{}"),
            ("quantization_config", "null"),
            (
                "task_specific_params",
                r#"{"text-generation": {"max_length": 50}}"#,
            ),
        ] {
            let folder = TempDir::new().unwrap();
            write_config(folder.path(), name, key, value);
            let file = "model.safetensors";
            fs::copy(fixture(name).join(file), folder.path().join(file)).unwrap();
            let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
            assert_eq!(model.config(), whole.config(), "{key}");
            assert!(weights(&model) == weights(&whole), "{key}");
        }
    }
}

/// The keys of the configuration that was first published with GPT-2.
#[test]
fn a_configuration_as_first_published_is_read() {
    let (folder, tensors) = copy_of("gpt2");
    write(folder.path(), &tensors);
    let config = r#"{
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 12, "embd_pdrop": 0.1, "eos_token_id": 12, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 8, "n_embd": 16, "n_head": 4,
        "n_layer": 2, "n_positions": 8, "resid_pdrop": 0.1, "summary_activation": null,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
        "summary_use_proj": true, "vocab_size": 13,
        "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}
    }"#;
    fs::write(folder.path().join("config.json"), config).unwrap();
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    let whole = from_huggingface(&fixture("gpt2"), &Device::flex()).unwrap();
    assert_eq!(model.config(), whole.config());
}

#[test]
fn a_tied_head_in_the_file_must_equal_the_embedding() {
    let (folder, mut tensors) = copy_of("gpt2");
    let whole = from_huggingface(&fixture("gpt2"), &Device::flex()).unwrap();
    let embedding = tensors["transformer.wte.weight"].clone();
    tensors.insert("lm_head.weight".to_owned(), embedding);
    write(folder.path(), &tensors);
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    assert!(weights_to_bytes(&model).unwrap() == weights_to_bytes(&whole).unwrap());

    // Zeros of both signs are one number.
    for (name, zero) in [("transformer.wte.weight", 0.0), ("lm_head.weight", -0.0)] {
        tensors.get_mut(name).unwrap().1[3] = zero;
    }
    write(folder.path(), &tensors);
    assert!(from_huggingface(folder.path(), &Device::flex()).is_ok());

    // Another shape, or one other number.
    let mut wider = tensors.clone();
    let (shape, numbers) = wider.get_mut("lm_head.weight").unwrap();
    shape[0] += 1;
    numbers.extend(vec![0.0; shape[1]]);
    write(folder.path(), &wider);
    assert!(refusal(folder.path()).contains("lm_head.weight differs from"));
    tensors.get_mut("lm_head.weight").unwrap().1[207] += 0.5;
    write(folder.path(), &tensors);
    assert_eq!(
        refusal(folder.path()),
        "config.json: tie_word_embeddings = true: lm_head.weight differs from \
         transformer.wte.weight; with false both are read"
    );
    write_config(folder.path(), "gpt2", "tie_word_embeddings", "false");
    let untied = from_huggingface(folder.path(), &Device::flex()).unwrap();
    let head = values(untied.unembedding().transpose());
    assert_eq!(head, tensors["lm_head.weight"].1);
}

#[test]
fn an_untied_model_without_a_head_is_refused() {
    let (folder, tensors) = copy_of("gpt2");
    write(folder.path(), &tensors);
    write_config(folder.path(), "gpt2", "tie_word_embeddings", "false");
    assert_eq!(refusal(folder.path()), "there is no tensor lm_head.weight");
}

#[test]
fn a_refusal_names_the_tensor_as_the_file_does() {
    let (folder, tensors) = copy_of("gpt2");
    let mut classifier = tensors.clone();
    classifier.insert("score.weight".to_owned(), (vec![2, 16], vec![0.0; 32]));
    write(folder.path(), &classifier);
    let left_over = "there is a tensor score.weight, which the model has no place for";
    assert_eq!(refusal(folder.path()), left_over);

    let mut bare: Tensors = tensors
        .into_iter()
        .map(|(name, data)| (name.replace("transformer.", ""), data))
        .collect();
    let mut damaged = bare.clone();
    damaged.insert("ln_f.bias".to_owned(), (vec![3], vec![0.0; 3]));
    write(folder.path(), &damaged);
    assert_eq!(
        refusal(folder.path()),
        "tensor ln_f.bias has shape [3], the model needs [16]"
    );
    bare.remove("h.1.mlp.c_fc.weight");
    write(folder.path(), &bare);
    assert_eq!(
        refusal(folder.path()),
        "there is no tensor h.1.mlp.c_fc.weight"
    );
}

#[test]
fn a_file_of_the_model_below_the_head_is_read() {
    let whole = from_huggingface(&fixture("llama_variant"), &Device::flex()).unwrap();
    let (folder, _) = there_and_back(&whole);
    let tensors = read(&fs::read(folder.path().join("model.safetensors")).unwrap());
    let below: Tensors = tensors
        .into_iter()
        .map(|(name, data)| (name.strip_prefix("model.").unwrap().to_owned(), data))
        .collect();
    write(folder.path(), &below);
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    assert!(weights_to_bytes(&model).unwrap() == weights_to_bytes(&whole).unwrap());
}

#[test]
fn a_single_file_wins_over_an_older_index() {
    let folder = TempDir::new().unwrap();
    for entry in fs::read_dir(fixture("llama")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let old = from_huggingface(folder.path(), &Device::flex()).unwrap();
    let scaled = |data: Vec<f32>| data.into_iter().map(|value| 2.0 * value).collect();
    let mut newer = read(&to_huggingface(&old).unwrap().weights);
    let norm = newer.get_mut("model.norm.weight").unwrap();
    norm.1 = scaled(std::mem::take(&mut norm.1));
    write(folder.path(), &newer);
    let model = from_huggingface(folder.path(), &Device::flex()).unwrap();
    assert_close(
        "the final norm scales the logits",
        model.forward(tokens()),
        old.forward(tokens()) * 2.0,
    );
    // The shards may be gone, but a single file that cannot be read is not passed over.
    fs::remove_file(folder.path().join("model-00001-of-00003.safetensors")).unwrap();
    from_huggingface(folder.path(), &Device::flex()).unwrap();
    fs::write(folder.path().join("model.safetensors"), "no tensors").unwrap();
    assert!(refusal(folder.path()).contains("model.safetensors: "));
}

#[test]
fn a_configuration_that_this_model_cannot_have_is_named() {
    for (name, key, value, expected) in [
        (
            "llama",
            "model_type",
            "\"bert\"",
            "config.json: model_type = \"bert\": must be one of gpt2, gpt_neox, llama, mistral, qwen2, qwen3, \
             phi3, olmo2, gemma2, gemma3_text",
        ),
        (
            "llama",
            "hidden_act",
            "\"tanh\"",
            "config.json: hidden_act = \"tanh\": must be one of relu, gelu, gelu_new, gelu_pytorch_tanh, \
             gelu_fast, silu, swish",
        ),
        (
            "llama",
            "hidden_size",
            "-1",
            "config.json: hidden_size = -1: must be a whole number from 1 to 1048576",
        ),
        (
            "llama",
            "hidden_size",
            "null",
            "config.json: hidden_size = null: is missing",
        ),
        (
            "llama",
            "rms_norm_eps",
            "\"no\"",
            "config.json: rms_norm_eps = \"no\": must be a number above 0",
        ),
        (
            "llama",
            "num_key_value_heads",
            "3",
            "config.json: n_heads 4 is not divisible by n_kv_heads 3",
        ),
        (
            "llama",
            "rope_parameters",
            "{\"rope_type\": \"proportional\"}",
            "config.json: rope_parameters.rope_type = \"proportional\": must be one of default, linear, dynamic, \
             llama3, yarn, longrope",
        ),
        (
            "llama",
            "rope_parameters",
            "{\"rope_type\": \"longrope\", \"short_factor\": [1.0], \"long_factor\": [1.0, 2.0]}",
            "config.json: short_factors has 1 entries, there are 2 rotary pairs",
        ),
        (
            "llama",
            "rope_parameters",
            "{\"rope_type\": \"longrope\", \"short_factor\": [1.0, 0.0], \"long_factor\": [1.0, 2.0]}",
            "config.json: rope_parameters.short_factor = [1.0,0.0]: must be a list of numbers above 0",
        ),
        (
            "llama",
            "rope_parameters",
            "{\"rope_type\": \"yarn\", \"factor\": 2.0, \"beta_fast\": 0.5}",
            "config.json: fast_turns − slow_turns must be a positive finite number, not -0.5",
        ),
        (
            "phi3",
            "rope_parameters",
            "{\"rope_type\": \"linear\", \"factor\": 2.0}",
            "config.json: rope_scaling = \"other\": must be default or longrope",
        ),
        (
            "gpt2",
            "scale_attn_by_inverse_layer_idx",
            "true",
            "config.json: scale_attn_by_inverse_layer_idx = true: is not supported",
        ),
        (
            "gpt2",
            "n_embd",
            "1048576",
            " parameters, more than 1073741824",
        ),
    ] {
        let found = refusal_with(name, key, value);
        assert!(found.ends_with(expected), "{found}");
    }
    let empty = TempDir::new().unwrap();
    assert!(refusal(empty.path()).contains("config.json"));
    fs::write(empty.path().join("config.json"), "[]").unwrap();
    assert!(refusal(empty.path()).contains("config.json"));
}

/// It would never end.
#[test]
#[cfg(unix)]
fn a_device_is_not_read() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("config.json")).unwrap();
    assert!(refusal(folder.path()).ends_with("config.json: is not a file"));
}

#[test]
fn a_shard_that_is_missing_or_elsewhere_is_named() {
    let folder = TempDir::new().unwrap();
    for entry in fs::read_dir(fixture("llama")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    from_huggingface(folder.path(), &Device::flex()).unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(
        &index,
        text.replace("model-00002-of-00003", "../model-00002-of-00003"),
    )
    .unwrap();
    assert!(refusal(folder.path()).contains("is not the name of a file"));
    fs::write(
        &index,
        text.replace(
            "\"lm_head.weight\": \"model-00003",
            "\"lm_head.weight\": \"model-00001",
        ),
    )
    .unwrap();
    assert!(refusal(folder.path()).contains("lm_head.weight"));
    fs::write(&index, &text).unwrap();
    fs::remove_file(folder.path().join("model-00002-of-00003.safetensors")).unwrap();
    assert!(refusal(folder.path()).contains("model-00002-of-00003.safetensors"));
}

#[test]
fn transformer_lens_weights_are_those_of_each_head() {
    for (name, config) in architectures() {
        let model = model(&config);
        let files = match (name, to_transformer_lens(&model)) {
            ("olmo 2", Err(error)) => {
                let said = "TransformerLens has no norms only after the parts";
                assert_eq!(error.to_string(), said);
                continue;
            }
            ("gemma", Err(error)) => {
                let said = "TransformerLens has no second base of rotation";
                assert_eq!(error.to_string(), said);
                continue;
            }
            ("parallel, normed outputs, llama 3" | "yarn", Err(error)) => {
                let said = "TransformerLens has no scaling of rotation by the original context";
                assert_eq!(error.to_string(), said);
                continue;
            }
            (_, files) => files.unwrap(),
        };
        let weights = read(&files.weights);
        let seen = model.activations(tokens(), &model.sites()).unwrap();
        for layer in 0..config.n_layers {
            let at = |what: &str| format!("blocks.{layer}.attn.{what}");
            let d_model = config.d_model;
            // Every head writes z·W_O[head]; z is [batch, head, pos, d_head].
            let z = seen
                .get::<4>(Site::Attention(layer, AttentionSite::Z))
                .unwrap()
                .swap_dims(1, 2);
            let results = z.matmul(tensor::<3>(&weights, &at("W_O")).unsqueeze());
            let found = seen
                .get::<4>(Site::Attention(layer, AttentionSite::Result))
                .unwrap()
                .swap_dims(1, 2);
            assert_close(name, results, found);
            // Every key is x·W_K[head] + b_K[head] of what the block reads.
            let shared = if config.n_kv_heads() == 4 { "" } else { "_" };
            let w_k = tensor::<3>(&weights, &at(&format!("{shared}W_K")));
            assert_eq!(
                w_k.dims(),
                [config.n_kv_heads(), d_model, config.d_head()],
                "{name}"
            );
            let k = model.blocks[layer].attn.project(
                Tensor::ones([1, 1, d_model], &Device::flex()),
                Tensor::ones([1, 1, d_model], &Device::flex()),
                Tensor::ones([1, 1, d_model], &Device::flex()),
            );
            let b_k = tensor::<2>(&weights, &at(&format!("{shared}b_K")));
            assert_close(
                name,
                w_k.sum_dim(1).squeeze_dim::<2>(1) + b_k,
                k.k.squeeze_dim::<3>(2).squeeze_dim(0),
            );
        }
        let unembedding = tensor::<2>(&weights, "unembed.W_U");
        assert_close(name, unembedding, model.unembedding());
        assert_eq!(
            model.vocabulary(),
            tensor::<1>(&weights, "unembed.b_U").dims()[0]
        );
    }
    let sinusoidal = model(&DecoderConfig {
        positions: Positions::Sinusoidal,
        ..config(None)
    });
    let weights = read(&to_transformer_lens(&sinusoidal).unwrap().weights);
    assert_eq!(
        values(tensor::<2>(&weights, "pos_embed.W_pos"))[..2],
        [0.0, 1.0]
    );
}
