//! A file of another library's weights is taken whole or refused: nothing is left out in silence.

mod common;

use burn::{
    module::Param,
    store::SafetensorsStore,
    tensor::{Device, Tensor},
};
use common::{random, values};
use headlight_attention::{
    LoadError, Mask, MultiHeadAttention, MultiHeadAttentionConfig, PositionConfig, PositionScheme,
    QkNorm, WeightFormat,
};

const PREFIX: &str = "layers.0.attention.";

/// A tensor of a file: name, shape, values.
type Stored = (String, Vec<usize>, Vec<f32>);

fn stored<const D: usize>(name: &str, tensor: Tensor<D>) -> Stored {
    let shape = tensor.dims().to_vec();
    let values = values(tensor).into_iter().map(|value| value as f32);
    (format!("{PREFIX}{name}"), shape, values.collect())
}

/// The tensors as a safetensors file: the header's length, the header, the values.
fn file(tensors: &[Stored]) -> SafetensorsStore {
    let mut entries = Vec::new();
    let mut bytes = Vec::new();
    for (name, shape, values) in tensors {
        let start = bytes.len();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let end = bytes.len();
        entries.push(format!(
            r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{start},{end}]}}"#
        ));
    }
    let header = format!("{{{}}}", entries.join(","));
    let length = (header.len() as u64).to_le_bytes();
    let whole = [&length[..], header.as_bytes(), &bytes].concat();
    SafetensorsStore::from_bytes(Some(whole))
}

/// A module with every kind of parameter.
fn config() -> MultiHeadAttentionConfig {
    MultiHeadAttentionConfig::new(6, 3)
        .with_n_kv_heads(1)
        .with_d_head(4)
        .with_bias(true)
        .with_qk_norm(QkNorm::EachHead)
        .with_position(PositionConfig::RelativeBias { max_distance: 2 })
}

/// One whose parameters are all without pattern.
fn module() -> MultiHeadAttention {
    let device = Device::flex();
    let mut module = config().init(&device);
    let linears = [
        &mut module.w_q,
        &mut module.w_k,
        &mut module.w_v,
        &mut module.w_o,
    ];
    for (salt, linear) in (1..).zip(linears) {
        let [input, output] = linear.weight.dims();
        linear.weight = Param::from_tensor(random([input, output], salt, &device));
        linear.bias = Some(Param::from_tensor(random([output], 10 + salt, &device)));
    }
    for (salt, norm) in (20..).zip([&mut module.q_norm, &mut module.k_norm]) {
        norm.as_mut().unwrap().gamma = Param::from_tensor(random([4], salt, &device));
    }
    if let Some(PositionScheme::Relative(relative)) = &mut module.position {
        relative.table = Param::from_tensor(random([3, 5], 30, &device));
    }
    module
}

fn formats() -> [WeightFormat; 3] {
    [
        WeightFormat::Burn,
        WeightFormat::torch_projections(),
        WeightFormat::TorchMultihead,
    ]
}

/// The module's parameters as the format has them.
fn written(module: &MultiHeadAttention, format: &WeightFormat) -> Vec<Stored> {
    let linears = [&module.w_q, &module.w_k, &module.w_v, &module.w_o];
    let weights = linears.map(|linear| linear.weight.val());
    let biases = linears.map(|linear| linear.bias.as_ref().unwrap().val());
    let mut tensors = match format {
        WeightFormat::Burn | WeightFormat::TorchLinears(_) => {
            let burn = ["query", "key", "value", "output"].map(str::to_owned);
            let (names, transposed) = match format {
                WeightFormat::TorchLinears(names) => (names, true),
                _ => (&burn, false),
            };
            let mut tensors = Vec::new();
            for ((name, weight), bias) in names.iter().zip(weights).zip(biases) {
                let weight = if transposed {
                    weight.transpose()
                } else {
                    weight
                };
                tensors.push(stored(&format!("{name}.weight"), weight));
                tensors.push(stored(&format!("{name}.bias"), bias));
            }
            tensors
        }
        WeightFormat::TorchMultihead => {
            let [w_q, w_k, w_v, w_o] = weights.map(Tensor::transpose);
            let [b_q, b_k, b_v, b_o] = biases;
            vec![
                stored("in_proj_weight", Tensor::cat(vec![w_q, w_k, w_v], 0)),
                stored("in_proj_bias", Tensor::cat(vec![b_q, b_k, b_v], 0)),
                stored("out_proj.weight", w_o),
                stored("out_proj.bias", b_o),
            ]
        }
    };
    let gain = if *format == WeightFormat::Burn {
        "gamma"
    } else {
        "weight"
    };
    for (name, norm) in [("q_norm", &module.q_norm), ("k_norm", &module.k_norm)] {
        let gamma = norm.as_ref().unwrap().gamma.val();
        tensors.push(stored(&format!("{name}.{gain}"), gamma));
    }
    let Some(PositionScheme::Relative(relative)) = &module.position else {
        panic!("{:?}", module.position);
    };
    tensors.push(stored("relative_bias.table", relative.table.val()));
    tensors
}

fn load(
    config: &MultiHeadAttentionConfig,
    tensors: &[Stored],
    format: &WeightFormat,
) -> Result<MultiHeadAttention, LoadError> {
    let module = config.init(&Device::flex());
    module.load(&mut file(tensors), PREFIX, format)
}

fn full(name: &str) -> String {
    format!("{PREFIX}{name}")
}

#[test]
fn every_parameter_is_taken_from_the_file() {
    let module = module();
    let x = random([2, 5, 6], 40, &Device::flex());
    let expected = values(module.forward(x.clone(), &Mask::causal()));
    for format in formats() {
        let loaded = load(&config(), &written(&module, &format), &format).unwrap();
        let found = values(loaded.forward(x.clone(), &Mask::causal()));
        assert_eq!(found, expected, "{format:?}");
    }
}

#[test]
fn each_tensor_that_is_missing_is_named() {
    for format in formats() {
        let tensors = written(&module(), &format);
        for left_out in 0..tensors.len() {
            let mut tensors = tensors.clone();
            let (name, ..) = tensors.remove(left_out);
            // Where the packed matrix is not there, the three matrices are looked for.
            let missing = name.replace("in_proj_weight", "q_proj_weight");
            let error = load(&config(), &tensors, &format).unwrap_err();
            assert_eq!(error, LoadError::Missing(missing), "{format:?}");
        }
    }
}

#[test]
fn each_tensor_that_has_no_place_is_named() {
    for format in formats() {
        let tensors = written(&module(), &format);
        for (name, shape) in [
            // nn.MultiheadAttention(add_bias_kv=True): one more key and value, which are learned.
            ("bias_k", vec![1, 1, 6]),
            ("bias_v", vec![1, 1, 6]),
            ("q_norm.bias", vec![4]),
            ("sub_layer_norm.weight", vec![12]),
            ("q_proj_weight", vec![12, 6]),
            ("rotary_emb.inv_freq", vec![2]),
        ] {
            let count = shape.iter().product();
            let stray = (full(name), shape, vec![0.5; count]);
            let error = load(&config(), &[&tensors[..], &[stray]].concat(), &format).unwrap_err();
            assert_eq!(error, LoadError::Unexpected(full(name)), "{format:?}");
        }
        // Another module's tensor, outside the prefix.
        let other = ("layers.0.norm.weight".to_owned(), vec![6], vec![1.0; 6]);
        load(&config(), &[&tensors[..], &[other]].concat(), &format).unwrap();
    }
}

#[test]
fn parameters_that_the_module_lacks_are_named() {
    for format in formats() {
        let tensors = written(&module(), &format);
        let refused = |config: MultiHeadAttentionConfig| {
            let error = load(&config, &tensors, &format).unwrap_err().to_string();
            let name = error.strip_prefix("there is a tensor ");
            let name =
                name.and_then(|rest| rest.strip_suffix(", which the module has no place for"));
            name.unwrap_or_else(|| panic!("{error}")).to_owned()
        };
        let norm = refused(config().with_qk_norm(QkNorm::None));
        assert!(norm.starts_with(&full("k_norm.")), "{norm}");
        let table = refused(config().with_position(PositionConfig::Alibi));
        assert_eq!(table, full("relative_bias.table"));
        let bias = refused(config().with_bias(false));
        assert!(bias.ends_with("bias"), "{bias}");
    }
}

#[test]
fn a_gain_over_all_heads_is_refused_with_both_shapes() {
    let format = WeightFormat::torch_projections();
    let mut tensors = written(&module(), &format);
    let name = full("q_norm.weight");
    tensors.retain(|(found, ..)| *found != name);
    tensors.push((name, vec![12], vec![1.0; 12])); // as in OLMo 2
    let error = load(&config(), &tensors, &format).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor layers.0.attention.q_norm.weight has shape [12], the module needs [4]"
    );
}

#[test]
fn a_part_of_another_module_is_moved_away_from_under_the_prefix() {
    let format = WeightFormat::torch_projections();
    let mut tensors = written(&module(), &format);
    tensors.push((full("output.LayerNorm.weight"), vec![6], vec![1.0; 6]));
    let load = |mut file: SafetensorsStore| {
        config()
            .init(&Device::flex())
            .load(&mut file, PREFIX, &format)
    };
    let error = load(file(&tensors)).unwrap_err();
    assert_eq!(
        error,
        LoadError::Unexpected(full("output.LayerNorm.weight"))
    );
    let moved =
        file(&tensors).with_key_remapping(r"attention\.output\.LayerNorm", "attention_norm");
    load(moved).unwrap();
}
