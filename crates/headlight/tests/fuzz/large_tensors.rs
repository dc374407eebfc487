//! Files of tensors of many megabytes, and headers that describe more than there is.

use std::{fs, path::Path};

use crate::{
    harness::watch,
    tensor_files::{file, tensor_file},
};
use burn::{store::SafetensorsStore, tensor::Device};
use headlight_attention::{MultiHeadAttentionConfig, WeightFormat};
use headlight_residual::{from_huggingface, tensors_from_bytes};
use headlight_run::PatternFile;
use tempfile::TempDir;

const BYTES: usize = 24 << 20;

/// Headers that fill `bytes`, with no tensor's values behind them.
fn headers(bytes: usize) -> Vec<Vec<u8>> {
    let entry = |name: usize, shape: &str| {
        format!(r#""{name:x}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,0]}}"#)
    };
    let many: Vec<String> = (0..bytes / 65).map(|name| entry(name, "0")).collect();
    let long_shape = entry(0, &format!("{}0", "0,".repeat(bytes / 2 - 50)));
    let metadata: Vec<String> = (0..bytes / 13)
        .map(|name| format!(r#""{name:x}":"""#))
        .collect();
    let metadata = format!(r#""__metadata__":{{{}}}"#, metadata.join(","));
    [many.join(","), long_shape, metadata]
        .iter()
        .map(|entries| file(&format!("{{{entries}}}"), 0))
        .collect()
}

#[test]
fn headers_stay_within_bounds() {
    for bytes in [60 << 10, 500 << 10, BYTES] {
        for file in headers(bytes) {
            watch("header of patterns", file.len(), || {
                drop(PatternFile::from_bytes(&file));
            });
            watch("header of tensors", file.len(), || {
                drop(tensors_from_bytes(&file));
            });
        }
    }
}

/// The file is handed over as bytes: what is held beside them may be three times as much.
#[test]
fn tensors_stay_within_bounds() {
    for (dtype, size) in [("F32", 4), ("F16", 2), ("BF16", 2)] {
        let tensors = tensor_file(&[("a", dtype, &[BYTES / size])]);
        watch(dtype, tensors.len(), || {
            let file = tensors.clone();
            assert_eq!(
                tensors_from_bytes(&file).unwrap()["a"].num_elements(),
                BYTES / size
            );
        });
    }
}

#[test]
fn patterns_stay_within_bounds() {
    for (sequences, accepted) in [(1 << 16, true), ((1 << 16) + 1, false), (BYTES / 4, false)] {
        let patterns = PatternFile::quantise([0, sequences, 0, 1], &[], vec![vec![0]; sequences])
            .to_bytes()
            .unwrap();
        watch("patterns of many sequences", patterns.len(), || {
            let file = patterns.clone();
            assert_eq!(PatternFile::from_bytes(&file).is_ok(), accepted);
        });
    }
    let length = 1 << 10;
    let patterns = tensor_file(&[
        ("pattern", "U8", &[1, 1, 20, length, length]),
        ("tokens", "U32", &[1, length]),
    ]);
    watch("patterns", patterns.len(), || {
        let file = patterns.clone();
        PatternFile::from_bytes(&file).unwrap();
    });
}

/// Beside the module that takes them.
#[test]
fn attention_weights_stay_within_bounds() {
    let width = 1500;
    let attention = MultiHeadAttentionConfig::new(width, 4)
        .try_init(&Device::flex())
        .unwrap();
    for dtype in ["F32", "F16", "F64"] {
        let square = [width, width];
        let tensors = [
            "q_proj.weight",
            "k_proj.weight",
            "v_proj.weight",
            "o_proj.weight",
        ];
        let tensors = tensor_file(&tensors.map(|name| (name, dtype, &square[..])));
        let attention = attention.clone();
        watch(
            &format!("attention weights in {dtype}"),
            tensors.len(),
            || {
                let mut file = SafetensorsStore::from_bytes(Some(tensors.clone()));
                attention
                    .load(&mut file, "", &WeightFormat::torch_projections())
                    .unwrap();
            },
        );
    }
}

fn folder(config: &str, index: &str, tensors: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let fixture = Path::new("../residual/tests/fixtures/gpt2");
    let or_shipped = |text: &str, name: &str| {
        if text.is_empty() {
            fs::read(fixture.join(name)).unwrap()
        } else {
            text.as_bytes().to_vec()
        }
    };
    fs::write(
        folder.path().join("config.json"),
        or_shipped(config, "config.json"),
    )
    .unwrap();
    // A file of all tensors would be read instead of the index.
    let (name, bytes) = if index.is_empty() {
        ("model.safetensors", tensors)
    } else {
        ("model.safetensors.index.json", index.as_bytes())
    };
    fs::write(folder.path().join(name), bytes).unwrap();
    folder
}

#[test]
fn json_of_folders_stays_within_bounds() {
    for bytes in [127 << 10, BYTES] {
        for value in [
            "0",
            "[]",
            "[0]",
            r#"{"":0}"#,
            &(r#"{"":"#.repeat(100) + "0" + &"}".repeat(100)),
        ] {
            let list = format!(
                r#"{{"vocab_size":[{}0]}}"#,
                format!("{value},").repeat(bytes / (value.len() + 1) - 20)
            );
            for (config, index) in [(list.as_str(), ""), ("", list.as_str())] {
                let folder = folder(config, index, &[]);
                watch("JSON of folders", list.len(), || {
                    from_huggingface(folder.path(), &Device::flex()).unwrap_err();
                });
            }
        }
    }
}

/// A model whose embedding is all but the whole file, in each type of number.
#[test]
fn models_stay_within_bounds() {
    for (dtype, size) in [("F32", 4), ("F16", 2)] {
        let vocabulary = BYTES / 16 / size;
        let config = fs::read_to_string("../residual/tests/fixtures/gpt2/config.json").unwrap();
        let config = config.replace(
            "\"vocab_size\": 13",
            &format!("\"vocab_size\": {vocabulary}"),
        );
        let mut parameters = vec![
            ("wte.weight".to_owned(), vec![vocabulary, 16]),
            ("wpe.weight".to_owned(), vec![8, 16]),
            ("ln_f.weight".to_owned(), vec![16]),
            ("ln_f.bias".to_owned(), vec![16]),
        ];
        for layer in 0..2 {
            for (name, rows, columns) in [
                ("attn.c_attn", 16, 48),
                ("attn.c_proj", 16, 16),
                ("mlp.c_fc", 16, 64),
                ("mlp.c_proj", 64, 16),
            ] {
                parameters.push((format!("h.{layer}.{name}.weight"), vec![rows, columns]));
                parameters.push((format!("h.{layer}.{name}.bias"), vec![columns]));
            }
            for name in ["ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"] {
                parameters.push((format!("h.{layer}.{name}"), vec![16]));
            }
        }
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, shape)| (&name[..], dtype, &shape[..]))
            .collect();
        let tensors = tensor_file(&parameters);
        let folder = folder(&config, "", &tensors);
        watch(&format!("a model in {dtype}"), tensors.len(), || {
            from_huggingface(folder.path(), &Device::flex()).unwrap();
        });
    }
}
