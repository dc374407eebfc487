//! Weights of other libraries' attention.

use crate::{
    harness::{CHEAP, SLOW, fuzz},
    mutation::changed,
    tensor_files::tensor_file,
};
use burn::{store::SafetensorsStore, tensor::Device};
use headlight_attention::{LoadError, MultiHeadAttention, MultiHeadAttentionConfig, WeightFormat};
use proptest::{collection::vec, prelude::*, sample::select};

const D_MODEL: usize = 4;
const PREFIX: &str = "a.";
const FLOATS: [&str; 4] = ["F32", "F16", "BF16", "F64"];
const NO_FLOATS: [&str; 3] = ["I64", "U8", "BOOL"];

fn module(bias: bool) -> MultiHeadAttention {
    MultiHeadAttentionConfig::new(D_MODEL, 2)
        .with_bias(bias)
        .try_init(&Device::flex())
        .unwrap()
}

fn load(bias: bool, file: &[u8], format: &WeightFormat) -> Result<MultiHeadAttention, LoadError> {
    module(bias).load(
        &mut SafetensorsStore::from_bytes(Some(file.to_vec())),
        PREFIX,
        format,
    )
}

/// A format, and the names and shapes that it wants of a module with biases.
type Wanted = (WeightFormat, Vec<(&'static str, Vec<usize>)>);

fn formats() -> Vec<Wanted> {
    let linears = |names: [&'static str; 8]| {
        let of = |index| {
            if index < 4 {
                vec![D_MODEL, D_MODEL]
            } else {
                vec![D_MODEL]
            }
        };
        names
            .into_iter()
            .enumerate()
            .map(|(index, name)| (name, of(index)))
            .collect::<Vec<_>>()
    };
    let burn = linears([
        "a.query.weight",
        "a.key.weight",
        "a.value.weight",
        "a.output.weight",
        "a.query.bias",
        "a.key.bias",
        "a.value.bias",
        "a.output.bias",
    ]);
    let llama = linears([
        "a.q_proj.weight",
        "a.k_proj.weight",
        "a.v_proj.weight",
        "a.o_proj.weight",
        "a.q_proj.bias",
        "a.k_proj.bias",
        "a.v_proj.bias",
        "a.o_proj.bias",
    ]);
    let packed = vec![
        ("a.in_proj_weight", vec![3 * D_MODEL, D_MODEL]),
        ("a.out_proj.weight", vec![D_MODEL, D_MODEL]),
        ("a.in_proj_bias", vec![3 * D_MODEL]),
        ("a.out_proj.bias", vec![D_MODEL]),
    ];
    vec![
        (WeightFormat::Burn, burn),
        (WeightFormat::torch_projections(), llama),
        (WeightFormat::TorchMultihead, packed),
    ]
}

fn written(tensors: &[(&str, Vec<usize>)], dtypes: &[&str]) -> Vec<u8> {
    let tensors = tensors
        .iter()
        .zip(dtypes)
        .map(|((name, shape), dtype)| (*name, *dtype, &shape[..]));
    tensor_file(&tensors.collect::<Vec<_>>())
}

#[test]
fn files_of_attention_weights() {
    for (format, tensors) in formats() {
        let valid = written(&tensors, &["F32"; 8]);
        load(true, &valid, &format).unwrap();
        fuzz(
            &format!("attention weights, {format:?}"),
            SLOW * 4,
            changed(vec![valid]),
            |bytes| {
                for bias in [true, false] {
                    if let Err(error) = load(bias, bytes, &format) {
                        assert!(error.to_string().len() < 1000, "{error}");
                    }
                }
            },
        );
    }
}

/// Exactly the tensors that the module wants are taken, and a refusal names a tensor.
#[test]
fn names_and_shapes_of_attention_weights() {
    for (format, wanted) in formats() {
        let shape = select(vec![
            vec![],
            vec![D_MODEL],
            vec![D_MODEL, 1],
            vec![0, D_MODEL],
            vec![2, 2, D_MODEL],
        ]);
        let dtype = prop_oneof![8 => select(FLOATS.to_vec()), 1 => select(NO_FLOATS.to_vec())];
        let one = (
            proptest::option::weighted(0.05, shape),
            dtype,
            proptest::bool::weighted(0.95),
        );
        let inputs = vec(one, wanted.len()).prop_map({
            let wanted = wanted.clone();
            move |choices| {
                let mut kept = Vec::new();
                for ((name, right), (wrong, dtype, there)) in wanted.iter().zip(choices) {
                    kept.extend(
                        there.then(|| (*name, wrong.unwrap_or_else(|| right.clone()), dtype)),
                    );
                }
                let tensors: Vec<_> = kept
                    .iter()
                    .map(|(name, shape, dtype)| (*name, *dtype, &shape[..]))
                    .collect();
                tensor_file(&tensors)
            }
        });
        fuzz(
            &format!("names and shapes, {format:?}"),
            CHEAP / 16,
            inputs,
            |bytes| {
                let header = String::from_utf8_lossy(bytes);
                let right = wanted.iter().all(|(name, shape)| {
                    FLOATS.iter().any(|dtype| {
                        header.contains(&format!(
                            r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"#
                        ))
                    })
                });
                match load(true, bytes, &format) {
                    Ok(_) => assert!(right, "{header}"),
                    Err(error) => assert!(
                        !right && error.to_string().contains(PREFIX),
                        "{error}: {header}"
                    ),
                }
            },
        );
    }
}
