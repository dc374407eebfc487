//! Files of tensors of many megabytes, and headers that describe more than there is.

use std::{fs, path::Path};

use burn::tensor::Device;
use headlight_residual::{from_huggingface, tensors_from_bytes};
use headlight_run::PatternFile;
use tempfile::TempDir;

use crate::harness::watch;

const BYTES: usize = 24 << 20;

/// A safetensors file: its header, and `bytes` zeros.
fn file(header: &str, bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.resize(file.len() + bytes, 0);
    file
}

/// Headers that fill `bytes`, with no tensor's values behind them.
fn headers(bytes: usize) -> Vec<Vec<u8>> {
    let entry =
        |name: usize, shape: &str| format!(r#""{name:x}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,0]}}"#);
    let many: Vec<String> = (0..bytes / 65).map(|name| entry(name, "0")).collect();
    let long_shape = entry(0, &format!("{}0", "0,".repeat(bytes / 2 - 50)));
    let metadata: Vec<String> = (0..bytes / 13).map(|name| format!(r#""{name:x}":"""#)).collect();
    let metadata = format!(r#""__metadata__":{{{}}}"#, metadata.join(","));
    [many.join(","), long_shape, metadata].iter().map(|entries| file(&format!("{{{entries}}}"), 0)).collect()
}

#[test]
fn headers_stay_within_bounds() {
    for bytes in [60 << 10, 500 << 10, BYTES] {
        for file in headers(bytes) {
            watch("header of patterns", file.len(), || drop(PatternFile::from_bytes(&file)));
            watch("header of tensors", file.len(), || drop(tensors_from_bytes(&file)));
        }
    }
}

/// The file is handed over as bytes: what is held beside them may be three times as much.
#[test]
fn tensors_stay_within_bounds() {
    for (dtype, size) in [("F32", 4), ("F16", 2), ("BF16", 2)] {
        let header = format!(r#"{{"a":{{"dtype":"{dtype}","shape":[{}],"data_offsets":[0,{BYTES}]}}}}"#, BYTES / size);
        watch(dtype, BYTES, || {
            let file = file(&header, BYTES);
            assert_eq!(tensors_from_bytes(&file).unwrap()["a"].num_elements(), BYTES / size);
        });
    }
}

#[test]
fn patterns_stay_within_bounds() {
    for (sequences, accepted) in [(1 << 16, true), ((1 << 16) + 1, false), (BYTES / 4, false)] {
        let patterns = PatternFile::quantise([0, sequences, 0, 1], &[], vec![vec![0]; sequences]).to_bytes().unwrap();
        watch("patterns of many sequences", patterns.len(), || {
            let file = patterns.clone();
            assert_eq!(PatternFile::from_bytes(&file).is_ok(), accepted);
        });
    }
    let length = 1 << 10;
    let patterns = file(
        &format!(
            r#"{{"pattern":{{"dtype":"U8","shape":[1,1,20,{length},{length}],"data_offsets":[0,{0}]}},"tokens":{{"dtype":"U32","shape":[1,{length}],"data_offsets":[{0},{1}]}}}}"#,
            20 * length * length,
            20 * length * length + 4 * length,
        ),
        20 * length * length + 4 * length,
    );
    watch("patterns", patterns.len(), || {
        let file = patterns.clone();
        PatternFile::from_bytes(&file).unwrap();
    });
}

fn folder(config: &str, index: &str, tensors: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let fixture = Path::new("../residual/tests/fixtures/gpt2");
    let or_shipped = |text: &str, name: &str| {
        if text.is_empty() { fs::read(fixture.join(name)).unwrap() } else { text.as_bytes().to_vec() }
    };
    fs::write(folder.path().join("config.json"), or_shipped(config, "config.json")).unwrap();
    fs::write(folder.path().join("model.safetensors"), tensors).unwrap();
    if !index.is_empty() {
        fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
    }
    folder
}

#[test]
fn json_of_folders_stays_within_bounds() {
    for bytes in [127 << 10, BYTES] {
        for value in ["0", "[]", "[0]", r#"{"":0}"#, &(r#"{"":"#.repeat(100) + "0" + &"}".repeat(100))] {
            let list = format!(r#"{{"vocab_size":[{}0]}}"#, format!("{value},").repeat(bytes / (value.len() + 1) - 20));
            for (config, index) in [(list.as_str(), ""), ("", list.as_str())] {
                let folder = folder(config, index, &[]);
                watch("JSON of folders", list.len(), || {
                    drop(from_huggingface(folder.path(), &Device::flex()).unwrap_err())
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
        let config = config.replace("\"vocab_size\": 13", &format!("\"vocab_size\": {vocabulary}"));
        let mut end = 0;
        let mut entries = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            let start = end;
            end += shape.iter().product::<usize>() * size;
            entries.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#));
        };
        add("wte.weight".to_owned(), &[vocabulary, 16]);
        add("wpe.weight".to_owned(), &[8, 16]);
        for layer in 0..2 {
            for (name, rows, columns) in
                [("attn.c_attn", 16, 48), ("attn.c_proj", 16, 16), ("mlp.c_fc", 16, 64), ("mlp.c_proj", 64, 16)]
            {
                add(format!("h.{layer}.{name}.weight"), &[rows, columns]);
                add(format!("h.{layer}.{name}.bias"), &[columns]);
            }
            for norm in ["ln_1", "ln_2"] {
                add(format!("h.{layer}.{norm}.weight"), &[16]);
                add(format!("h.{layer}.{norm}.bias"), &[16]);
            }
        }
        add("ln_f.weight".to_owned(), &[16]);
        add("ln_f.bias".to_owned(), &[16]);
        let tensors = file(&format!("{{{}}}", entries.join(",")), end);
        let folder = folder(&config, "", &tensors);
        watch(&format!("a model in {dtype}"), tensors.len(), || {
            drop(from_huggingface(folder.path(), &Device::flex()).unwrap())
        });
    }
}
