//! What the tests of attention share: short ways to make tensors, and attention as a naive loop in
//! f64.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;

use burn::{
    store::{ModuleStore, SafetensorsStore},
    tensor::{Bool, DType, Device, Tensor, TensorData},
};
use headlight_attention::{AttentionOptions, Dropout, DropoutKey, Mask, attention_with_dropout};

/// Small numbers without pattern, the same for the same `salt`.
pub fn numbers(count: usize, salt: u64) -> Vec<f64> {
    let mix = |i: u64| {
        let mut x =
            (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) as f64 / u64::MAX as f64 * 4.0 - 2.0
    };
    (0..count as u64).map(mix).collect()
}

pub fn tensor<const D: usize>(
    values: &[f64],
    dims: [usize; D],
    dtype: DType,
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), dims), (device, dtype))
}

pub fn random<const D: usize>(dims: [usize; D], salt: u64, device: &Device) -> Tensor<D> {
    tensor(
        &numbers(dims.iter().product(), salt),
        dims,
        DType::F32,
        device,
    )
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Equal up to `bound · max(1, ‖expected‖∞)`.
#[track_caller]
pub fn assert_close(what: &str, found: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected
        .iter()
        .fold(1f64, |size, value| size.max(value.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= bound * size, "{what}[{i}] is {a}, not {b}");
    }
}

/// A safetensors file of `tests/fixtures`.
pub struct Fixture(pub SafetensorsStore);

impl Fixture {
    pub fn open(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Self(SafetensorsStore::from_file(folder.join(name)))
    }

    pub fn has(&mut self, name: &str) -> bool {
        self.0.get_tensor(name).unwrap().is_some()
    }

    pub fn data(&mut self, name: &str) -> TensorData {
        let stored = self
            .0
            .get_tensor(name)
            .unwrap()
            .unwrap_or_else(|| panic!("no tensor {name}"));
        TensorData::from_bytes(
            stored.to_bytes().unwrap(),
            stored.shape.clone(),
            stored.dtype,
        )
    }

    pub fn numbers(&mut self, name: &str) -> Vec<f64> {
        self.data(name).iter::<f64>().collect()
    }

    pub fn tensor<const D: usize>(&mut self, name: &str, device: &Device) -> Tensor<D> {
        let data = self.data(name);
        let dims: [usize; D] = data.shape().to_vec().try_into().unwrap();
        tensor(
            &data.iter::<f64>().collect::<Vec<_>>(),
            dims,
            data.dtype(),
            device,
        )
    }

    pub fn flags<const D: usize>(&mut self, name: &str) -> Tensor<D, Bool> {
        let data = self.data(name);
        let dims: [usize; D] = data.shape().to_vec().try_into().unwrap();
        let flags: Vec<bool> = data.iter::<u8>().map(|flag| flag != 0).collect();
        Tensor::from_data(TensorData::new(flags, dims), &Device::flex())
    }
}

/// Sizes of one attention.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub d_head: usize,
    pub d_value: usize,
}

impl Sizes {
    pub fn query(self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.d_head]
    }

    pub fn key(self) -> [usize; 4] {
        [self.batch, self.kv_heads, self.keys, self.d_head]
    }

    pub fn value(self) -> [usize; 4] {
        [self.batch, self.kv_heads, self.keys, self.d_value]
    }

    pub fn output(self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.d_value]
    }

    pub fn scores(self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.keys]
    }
}

/// Attention written as loops over numbers, forward and backward.
pub struct Naive {
    pub weights: Vec<f64>,
    pub output: Vec<f64>,
    pub d_query: Vec<f64>,
    pub d_key: Vec<f64>,
    pub d_value: Vec<f64>,
    pub d_bias: Vec<f64>,
}

pub struct NaiveInput<'a> {
    pub sizes: Sizes,
    pub query: &'a [f64],
    pub key: &'a [f64],
    pub value: &'a [f64],
    pub upstream: &'a [f64],
    /// `[batch, heads, queries, keys]`
    pub bias: Option<&'a [f64]>,
    pub allowed: &'a dyn Fn(usize, usize, usize, usize) -> bool,
    pub scale: f64,
    pub softcap: Option<f64>,
}

pub fn naive(input: &NaiveInput) -> Naive {
    let Sizes {
        batch,
        heads,
        kv_heads,
        queries,
        keys,
        d_head,
        d_value,
    } = input.sizes;
    let zeros = |dims: [usize; 4]| vec![0.0; dims.iter().product()];
    let mut result = Naive {
        weights: zeros(input.sizes.scores()),
        output: zeros(input.sizes.output()),
        d_query: zeros(input.sizes.query()),
        d_key: zeros(input.sizes.key()),
        d_value: zeros(input.sizes.value()),
        d_bias: zeros(input.sizes.scores()),
    };
    for b in 0..batch {
        for h in 0..heads {
            let kv = b * kv_heads + h / (heads / kv_heads);
            for q in 0..queries {
                let row = (b * heads + h) * queries + q;
                let query = &input.query[row * d_head..][..d_head];
                let upstream = &input.upstream[row * d_value..][..d_value];
                let raw: Vec<f64> = (0..keys)
                    .map(|k| {
                        let key = &input.key[(kv * keys + k) * d_head..][..d_head];
                        query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() * input.scale
                    })
                    .collect();
                let score = |k: usize| {
                    let capped = input
                        .softcap
                        .map_or(raw[k], |cap| cap * (raw[k] / cap).tanh());
                    capped + input.bias.map_or(0.0, |bias| bias[row * keys + k])
                };
                let seen: Vec<usize> = (0..keys).filter(|&k| (input.allowed)(b, h, q, k)).collect();
                let max = seen
                    .iter()
                    .map(|&k| score(k))
                    .fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = seen.iter().map(|&k| (score(k) - max).exp()).sum();
                for &k in &seen {
                    result.weights[row * keys + k] = (score(k) - max).exp() / sum;
                }
                let value = |k: usize| &input.value[(kv * keys + k) * d_value..][..d_value];
                let d_weight = |k: usize| {
                    upstream
                        .iter()
                        .zip(value(k))
                        .map(|(a, b)| a * b)
                        .sum::<f64>()
                };
                let weight = |k: usize, result: &Naive| result.weights[row * keys + k];
                let mean: f64 = seen.iter().map(|&k| weight(k, &result) * d_weight(k)).sum();
                for &k in &seen {
                    let a = weight(k, &result);
                    for i in 0..d_value {
                        result.output[row * d_value + i] += a * value(k)[i];
                        result.d_value[(kv * keys + k) * d_value + i] += a * upstream[i];
                    }
                    let d_score = a * (d_weight(k) - mean);
                    result.d_bias[row * keys + k] = d_score;
                    let slope = input
                        .softcap
                        .map_or(1.0, |cap| 1.0 - (raw[k] / cap).tanh().powi(2));
                    for i in 0..d_head {
                        let factor = d_score * slope * input.scale;
                        result.d_query[row * d_head + i] +=
                            factor * input.key[(kv * keys + k) * d_head + i];
                        result.d_key[(kv * keys + k) * d_head + i] += factor * query[i];
                    }
                }
            }
        }
    }
    result
}

/// Values and gradients of attention with everything switched on (grouped queries, a causal mask,
/// lengths, a broadcast bias, a softcap, with and without dropout), in sizes of one tile and of
/// several. `check` gets a name and a way to compute them on a device.
pub fn for_large_and_small_cases(check: impl Fn(&str, &dyn Fn(&Device, DType) -> Vec<f64>)) {
    let small = Sizes {
        batch: 2,
        heads: 4,
        kv_heads: 2,
        queries: 5,
        keys: 7,
        d_head: 3,
        d_value: 6,
    };
    let large = Sizes {
        batch: 1,
        queries: 150,
        keys: 300,
        ..small
    };
    let key = DropoutKey {
        seed: 3,
        step: 9,
        site: 1,
        first_row: 4,
    };
    for sizes in [small, large] {
        let biases = [
            sizes.scores(),
            [1, 4, 1, sizes.keys],
            [sizes.batch, 1, sizes.queries, 1],
        ];
        for bias in biases {
            for probability in [0.0, 0.3] {
                let dropout = Dropout::new(probability, key);
                let name = format!("{sizes:?}, bias {bias:?}, dropout {probability}");
                check(&name, &|device, dtype| {
                    values_and_gradients(sizes, bias, &dropout, device, dtype)
                });
            }
        }
    }
}

fn values_and_gradients(
    sizes: Sizes,
    bias_dims: [usize; 4],
    dropout: &Dropout,
    device: &Device,
    dtype: DType,
) -> Vec<f64> {
    let device = device.clone().autodiff();
    let draw = |dims: [usize; 4], salt| {
        // Rounded to f32 first, so that every dtype starts from the same numbers.
        let numbers = numbers(dims.iter().product(), salt);
        let rounded: Vec<f64> = numbers.iter().map(|&x| f64::from(x as f32)).collect();
        tensor(&rounded, dims, dtype, &device)
    };
    let q = draw(sizes.query(), 1).require_grad();
    let k = draw(sizes.key(), 2).require_grad();
    let v = draw(sizes.value(), 3).require_grad();
    let bias = draw(bias_dims, 4).require_grad();
    let lengths = vec![sizes.keys - 1; sizes.batch];
    let mask = Mask::causal()
        .and(Mask::lengths(&lengths))
        .and(Mask::bias(bias.clone()));
    let options = AttentionOptions::default().with_softcap(2.0);

    let (query, key, value) = (q.clone(), k.clone(), v.clone());
    let output = attention_with_dropout(query, key, value, &mask, &options, dropout);
    let gradients = (output.clone() * draw(sizes.output(), 5)).sum().backward();
    let mut all = values(output);
    for leaf in [q, k, v, bias] {
        all.extend(values(leaf.grad(&gradients).unwrap()));
    }
    all
}
