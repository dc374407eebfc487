//! GGUF files are read as the package `gguf` and `transformers` read them, and hostile ones are
//! refused. `scripts/fixtures/gguf_files.py` wrote the files.

mod common;

use std::{fs, path::PathBuf};

use burn::tensor::{Device, Int, Tensor, TensorData};
use headlight_residual::{AttentionSite, ExchangeError, Gguf, Site};
use safetensors::{Dtype, SafeTensors};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf");
    folder.join(name)
}

/// A tensor of a safetensors file, in f32.
fn expected(file: &str, name: &str) -> (Vec<usize>, Vec<f32>) {
    let bytes = fs::read(fixture(file)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let view = file.tensor(name).unwrap();
    let (numbers, _) = view.data().as_chunks();
    let values = match view.dtype() {
        Dtype::F32 => numbers
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect(),
        Dtype::I32 => numbers
            .iter()
            .map(|&bytes| i32::from_le_bytes(bytes) as f32)
            .collect(),
        dtype => panic!("{dtype:?}"),
    };
    (view.shape().to_vec(), values)
}

fn tensor<const D: usize>(file: &str, name: &str) -> Tensor<D> {
    let (shape, values) = expected(file, name);
    Tensor::from_data(TensorData::new(values, shape), &Device::flex())
}

fn largest_difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    assert_eq!(a.dims(), b.dims());
    (a - b).abs().max().into_scalar()
}

#[test]
fn every_block_has_the_bits_of_the_python_package() {
    let file = Gguf::open(&fixture("blocks.gguf")).unwrap();
    let names: Vec<&str> = file.tensors().collect();
    assert_eq!(
        names,
        [
            "IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1",
            "Q5_K", "Q6_K", "Q8_0"
        ]
    );
    for name in names {
        let stored = file.tensor(name).unwrap();
        let (shape, values) = expected("blocks.safetensors", name);
        assert_eq!(stored.shape().to_vec(), shape, "{name}");
        let bits = |value: f32| value.to_bits();
        let stored: Vec<u32> = stored.iter::<f32>().map(bits).collect();
        let values: Vec<u32> = values.into_iter().map(bits).collect();
        assert!(stored == values, "{name}");
    }
}

/// Logits and patterns of a file, beside those of transformers.
fn assert_computes_as_transformers(name: &str) {
    let expected = format!("{name}.safetensors");
    let file = Gguf::open(&fixture(&format!("{name}.gguf"))).unwrap();
    let model = file.model(&Device::flex()).unwrap();
    let tokens: Tensor<2, Int> = tensor::<2>(&expected, "tokens").int();
    let seen = model
        .activations(tokens.clone(), &model.pattern_sites())
        .unwrap();
    let difference = largest_difference(model.forward(tokens), tensor(&expected, "logits"));
    assert!(difference <= 5e-5, "{name}: logits differ by {difference}");
    for layer in 0..model.config().n_layers {
        let pattern = seen.tensor::<4>(Site::Attention(layer, AttentionSite::Pattern));
        let theirs = tensor(&expected, &format!("pattern.{layer}"));
        let difference = largest_difference(pattern, theirs);
        assert!(
            difference <= 1e-5,
            "{name}: patterns of layer {layer} differ by {difference}"
        );
    }
}

#[test]
fn a_llama_of_many_types_computes_as_transformers() {
    assert_computes_as_transformers("llama");
}

/// The converter of llama.cpp wrote these files (`scripts/fixtures/gguf_converted.py`).
#[test]
fn every_architecture_computes_as_transformers_from_the_file_of_the_converter() {
    for name in [
        "llama",
        "llama3",
        "llama_yarn",
        "qwen2",
        "qwen2_yarn",
        "qwen3",
        "phi3",
        "phi3_longrope",
        "olmo2",
        "gemma2",
        "gemma3",
        "gpt2",
        "gptneox",
    ] {
        assert_computes_as_transformers(&format!("converted/{name}"));
    }
}

#[test]
fn the_tokenizer_cuts_text_as_the_package_tokenizers() {
    let file = Gguf::open(&fixture("llama.gguf")).unwrap();
    let json = file.tokenizer().unwrap().unwrap();
    let tokenizer: tokenizers::Tokenizer = json.parse().unwrap();
    let bytes = |values: Vec<f32>| values.into_iter().map(|byte| byte as u8).collect();
    let text = String::from_utf8(bytes(expected("llama.safetensors", "text").1)).unwrap();
    let ids = expected("llama.safetensors", "ids").1;
    let cut = tokenizer.encode(text.as_str(), false).unwrap();
    let cut: Vec<f32> = cut.get_ids().iter().map(|&id| id as f32).collect();
    assert_eq!(cut, ids);
    let back: Vec<u32> = ids.iter().map(|&id| id as u32).collect();
    assert_eq!(tokenizer.decode(&back, false).unwrap(), text);
}

/// The converter of llama.cpp wrote the files, and `SentencePiece` the ids
/// (`scripts/fixtures/gguf_sentencepiece.py`).
#[test]
fn the_tokenizer_cuts_text_as_sentencepiece() {
    for (name, has_control_token) in [("llama", true), ("gemma2", false)] {
        let file = Gguf::open(&fixture(&format!("sentencepiece/{name}.gguf"))).unwrap();
        let json = file.tokenizer().unwrap().unwrap();
        let mut tokenizer: tokenizers::Tokenizer = json.parse().unwrap();
        let with_first = tokenizer.encode("a", true).unwrap();
        assert_eq!(with_first.get_ids()[0], 1, "{name}");
        let control = tokenizer.encode("<|end|>", false).unwrap();
        assert_eq!(control.get_ids() == [420], has_control_token, "{name}");

        // SentencePiece reads the names of control tokens as text.
        tokenizer.set_encode_special_tokens(true);
        let cases = fs::read(fixture(&format!("sentencepiece/{name}.json"))).unwrap();
        let cases: Vec<serde_json::Value> = serde_json::from_slice(&cases).unwrap();
        assert!(cases.len() > 15);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
            let cut = tokenizer.encode(text, false).unwrap();
            assert_eq!(cut.get_ids(), ids, "{name}: {text:?}");
            // The sign of a space comes back as a space.
            let back = tokenizer.decode(&ids, false).unwrap();
            assert_eq!(back, text.replace('▁', " "), "{name}");
        }
    }
}

#[test]
fn a_tokenizer_of_sentencepiece_that_does_not_say_all_is_named() {
    let message = |old: &[u8], new: &[u8]| {
        let error = changed_in("sentencepiece/llama.gguf", old, new).to_string();
        error.split_once("model.gguf: ").unwrap().1.to_owned()
    };
    let score = |key: f32| key.to_le_bytes().to_vec();
    let of = |scores: &[f32]| {
        scores
            .iter()
            .flat_map(|&number| score(number))
            .collect::<Vec<u8>>()
    };
    let ordered: Vec<f32> = (1..=100).map(|rank| -(rank as f32)).collect();
    let unordered = message(&of(&ordered), &of(&[-1000.0; 100]));
    let (_, reason) = unordered.split_once(": ").unwrap();
    assert!(
        reason.starts_with("gives 9") && reason.ends_with(" one score: it does not order them"),
        "{reason}"
    );
    assert_eq!(
        message(&of(&[-1.0, -2.0, -3.0]), &of(&[-1.0, f32::NAN, -3.0])),
        "tokenizer.ggml.scores = a list of 423: has a number that is not finite"
    );
    let types = |numbers: [i32; 3]| numbers.map(i32::to_le_bytes).concat();
    assert_eq!(
        message(&types([2, 3, 3]), &types([2, 3, 9])),
        "tokenizer.ggml.token_type = a list of 423: has the unknown type 9"
    );
    assert_eq!(
        message(b"tokenizer.ggml.scores", b"tokenizer.ggml.scares"),
        "tokenizer.ggml.scores = nothing: is missing"
    );
    assert_eq!(
        message(
            b"\x05\0\0\0\0\0\0\0llama\x12",
            b"\x05\0\0\0\0\0\0\0bloom\x12"
        ),
        "tokenizer.ggml.model = \"bloom\": is not supported; gpt2 (byte-level BPE) and llama (SentencePiece) are"
    );
}

/// All ways to cut a piece are tried, so a long one would never end.
#[test]
fn a_piece_that_is_too_long_is_refused() {
    let piece = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let (old, new) = (piece("he"), piece(&"h".repeat(600)));
    let mut bytes = fs::read(fixture("sentencepiece/llama.gguf")).unwrap();
    let at = bytes.windows(old.len()).position(|window| window == old);
    let at = at.unwrap();
    bytes.splice(at..at + old.len(), new);
    let error = opened(&bytes).unwrap_err().to_string();
    let expected = "tokenizer.ggml.tokens = a list of 423: has a piece of 600 bytes, more than 512";
    assert!(error.ends_with(expected), "{error}");
}

/// The file with `new` in place of `old`, which is as long.
fn changed(old: &[u8], new: &[u8]) -> ExchangeError {
    changed_in("llama.gguf", old, new)
}

fn changed_in(name: &str, old: &[u8], new: &[u8]) -> ExchangeError {
    assert_eq!(old.len(), new.len());
    let mut bytes = fs::read(fixture(name)).unwrap();
    let at = bytes
        .windows(old.len())
        .position(|window| window == old)
        .unwrap();
    bytes[at..at + old.len()].copy_from_slice(new);
    opened(&bytes).unwrap_err()
}

fn opened(bytes: &[u8]) -> Result<(), ExchangeError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    let file = Gguf::open(&path)?;
    file.tokenizer()?;
    file.model(&Device::flex()).map(|_| ())
}

/// A key of the header with the type and the value that follow it.
fn entry(key: &str, kind: u32, value: u32) -> Vec<u8> {
    let mut bytes = (key.len() as u64).to_le_bytes().to_vec();
    bytes.extend(key.as_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes
}

#[test]
fn what_is_not_supported_is_named() {
    let message = |old: &[u8], new: &[u8]| {
        let error = changed(old, new).to_string();
        error
            .split_once("model.gguf: ")
            .map_or(error.clone(), |(_, reason)| reason.to_owned())
    };
    let cases = [
        (message(b"GGUF", b"GGML"), "is no GGUF file"),
        (
            message(b"GGUF\x03\0\0\0", b"GGUF\x01\0\0\0"),
            "is GGUF of version 1; versions 2 and 3 are read",
        ),
        (
            message(b"GGUF\x03\0\0\0", b"GGUF\0\0\0\x03"),
            "is a GGUF file of a big-endian machine, which is not supported",
        ),
        (
            message(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma"),
            "general.architecture = \"gemma\": is not supported; these are: llama, qwen2, qwen3, phi3, olmo2, gemma2, gemma3, gpt2, gptneox",
        ),
        (
            message(b"llama.rope.freq_base", b"llama.rope.freq_bass"),
            "llama.rope.freq_bass = 500: is no key that is known here; it may change what the model computes",
        ),
        (
            message(
                &entry("llama.attention.head_count", 4, 4),
                &entry("llama.attention.head_count", 4, 5),
            ),
            "llama.rope.dimension_count = 8: must be at most the width of a head, 6",
        ),
        (
            message(b"\x06\0\0\0\0\0\0\0smollm", b"\x06\0\0\0\0\0\0\0smallm"),
            "tokenizer.ggml.pre = \"smallm\": is not supported; gpt-2, smollm, llama-bpe and qwen2 are",
        ),
        (
            message(b"blk.1.ffn_up.weight", b"blk.1.ffn_op.weight"),
            "there is no tensor blk.1.ffn_up.weight",
        ),
        (
            message(b"token_embd.weight", b"token_embt.weight"),
            "there is no tensor token_embd.weight",
        ),
        (
            message(
                &entry("llama.block_count", 4, 2),
                &entry("llama.block_count", 4, 1),
            ),
            "there is a tensor blk.1.attn_k.weight, which the model has no place for",
        ),
        (
            message(
                &entry("llama.feed_forward_length", 4, 64),
                &entry("llama.feed_forward_length", 4, 32),
            ),
            "tensor blk.0.ffn_gate.weight has shape [64, 32], the model needs [32, 32]",
        ),
        (
            message(
                &entry("llama.block_count", 4, 2),
                &entry("llama.block_count", 4, 100),
            ),
            "describes 100 layers, there are 20 tensors",
        ),
        (
            message(
                &entry("llama.context_length", 4, 16),
                &entry("llama.context_length", 4, 0),
            ),
            "llama.context_length = 0: must be a whole number from 1 to 1048576",
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(message, expected);
    }
}

#[test]
fn a_tensor_of_another_type_or_place_is_named() {
    let mut place = b"blk.0.attn_v.weight".to_vec();
    place.extend(2_u32.to_le_bytes());
    place.extend(32_u64.to_le_bytes());
    place.extend(16_u64.to_le_bytes());
    let with_type = |kind: u32| [place.clone(), kind.to_le_bytes().to_vec()].concat();
    let cases = [
        (
            16,
            "tensor blk.0.attn_v.weight has type IQ2_XXS, which is not supported",
        ),
        (
            99,
            "tensor blk.0.attn_v.weight has type number 99, which is not supported",
        ),
        (
            14,
            "tensor blk.0.attn_v.weight has rows of 32 numbers, which are no whole blocks of 256",
        ),
    ];
    for (kind, expected) in cases {
        let error = changed(&with_type(1), &with_type(kind)).to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    for name in ["llama.gguf", "sentencepiece/gemma2.gguf"] {
        let bytes = fs::read(fixture(name)).unwrap();
        for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
            let error = opened(&bytes[..length]).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
