//! Files of tensors: patterns, weights, Hugging Face folders.

use std::{fs, path::Path};

use crate::{
    harness::{CHEAP, SLOW, fuzz},
    mutation::changed,
};
use burn::tensor::Device;
use headlight_residual::{DecoderConfig, from_huggingface, weights_from_bytes, weights_to_bytes};
use headlight_run::PatternFile;
use tempfile::TempDir;

#[test]
fn patterns() {
    let small = PatternFile::quantise(
        [1, 2, 1, 2],
        &[1.0, 0.0, 0.5, 0.5].repeat(2),
        vec![vec![1, 2], vec![3, 4]],
    );
    let empty = PatternFile::quantise([0, 0, 3, 2], &[], Vec::new());
    let valid = vec![small.to_bytes().unwrap(), empty.to_bytes().unwrap()];
    fuzz("patterns", CHEAP / 2, changed(valid), |bytes| {
        if let Ok(patterns) = PatternFile::from_bytes(bytes) {
            assert_eq!(
                PatternFile::from_bytes(&patterns.to_bytes().unwrap()).unwrap(),
                patterns
            );
        }
    });
}

#[test]
fn weights() {
    let config = DecoderConfig {
        vocabulary: 3,
        n_ctx: 2,
        d_model: 4,
        n_layers: 1,
        n_heads: 2,
        ..DecoderConfig::default()
    };
    let model = config.try_init(0, &Device::flex()).unwrap();
    let valid = weights_to_bytes(&model).unwrap();
    fuzz("weights", SLOW * 4, changed(vec![valid]), |bytes| {
        if let Ok(model) = weights_from_bytes(model.clone(), bytes) {
            weights_from_bytes(model.clone(), &weights_to_bytes(&model).unwrap()).unwrap();
        }
    });
}

/// One file of a folder changes, the others are as they should be.
fn folders(name: &str, architecture: &str, changing: &str) {
    let folder = TempDir::new().unwrap();
    let fixture = Path::new("../residual/tests/fixtures").join(architecture);
    for entry in fs::read_dir(&fixture).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    from_huggingface(folder.path(), &Device::flex()).unwrap();
    fuzz(
        name,
        SLOW,
        changed(vec![fs::read(fixture.join(changing)).unwrap()]),
        |bytes| {
            fs::write(folder.path().join(changing), bytes).unwrap();
            let _ = from_huggingface(folder.path(), &Device::flex());
        },
    );
}

#[test]
fn configurations_of_gpt2() {
    folders("configurations of GPT-2", "gpt2", "config.json");
}

#[test]
fn configurations_of_llama() {
    folders("configurations of Llama", "llama_variant", "config.json");
}

#[test]
fn tensors_of_gpt2() {
    folders("tensors of GPT-2", "gpt2", "model.safetensors");
}

#[test]
fn lists_of_shards() {
    folders("lists of shards", "llama", "model.safetensors.index.json");
}
