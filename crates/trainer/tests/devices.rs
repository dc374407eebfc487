//! Flex and wgpu compute the same. Run by `scripts/test-devices`.
#![cfg(feature = "wgpu")]

use burn::{
    module::Module,
    tensor::{Device, Distribution, Int, Tensor, TensorData},
};
use headlight_attention::{
    AttentionOptions, KvCache, Mask, MultiHeadAttention, MultiHeadAttentionConfig, PositionConfig,
    QkNorm, attention,
};
use headlight_run::{Config, Summary};
use headlight_trainer::Setup;
use tempfile::TempDir;

fn wgpu() -> Device {
    headlight_watch::device::open("wgpu").unwrap()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Numbers drawn on Flex, put on `device`.
fn random<const D: usize>(dims: [usize; D], scale: f64, device: &Device) -> Tensor<D> {
    let flex = Device::flex();
    flex.seed(dims.iter().sum::<usize>() as u64);
    let drawn = Tensor::<D>::random(dims, Distribution::Normal(0.0, scale), &flex).into_data();
    Tensor::from_data(drawn, device)
}

#[track_caller]
fn assert_close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let size = expected
        .iter()
        .fold(1f32, |size, value| size.max(value.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-5 * size, "{what}: {a} is not {b}");
    }
}

#[test]
fn attention_and_its_gradients() {
    let run = |device: &Device| {
        let device = device.clone().autodiff();
        let leaf = |dims| random(dims, 1.0, &device).require_grad();
        let (q, k, v) = (leaf([2, 4, 5, 3]), leaf([2, 2, 7, 3]), leaf([2, 2, 7, 6]));
        let bias = leaf([1, 4, 5, 7]);
        let mask = Mask::causal()
            .and(&Mask::lengths(&[6, 0]))
            .and(&Mask::bias(bias.clone()));
        let output = attention(
            q.clone(),
            k.clone(),
            v.clone(),
            &mask,
            &AttentionOptions::default().with_softcap(2.0),
        );
        let gradients = output.clone().square().sum().backward();
        [
            output,
            q.grad(&gradients).unwrap(),
            k.grad(&gradients).unwrap(),
            v.grad(&gradients).unwrap(),
        ]
        .into_iter()
        .chain(bias.grad(&gradients))
        .map(values)
        .collect::<Vec<_>>()
    };
    for (part, (found, expected)) in run(&wgpu()).iter().zip(&run(&Device::flex())).enumerate() {
        assert_close(&format!("part {part}"), found, expected);
    }
}

#[test]
fn the_module_and_its_cache() {
    for position in [
        PositionConfig::rotary(),
        PositionConfig::Alibi,
        PositionConfig::RelativeBias { max_distance: 3 },
    ] {
        let config = MultiHeadAttentionConfig::new(12, 6)
            .with_n_kv_heads(2)
            .with_d_head(4)
            .with_qk_norm(QkNorm::EachHead);
        let module = config
            .with_bias(true)
            .with_position(position)
            .try_init(&Device::flex())
            .unwrap();
        let run = |module: &MultiHeadAttention, device: &Device| {
            let x = random([2, 9, 12], 1.0, device);
            let whole = values(module.forward(x.clone(), &Mask::causal()));
            let mut cache = KvCache::rolling(3);
            let chunks = [4, 1, 4].into_iter().scan(0, |from, count| {
                *from += count;
                Some(x.clone().narrow(1, *from - count, count))
            });
            let cached = chunks
                .map(|chunk| values(module.forward_cached(chunk, &Mask::causal(), &mut cache)));
            [vec![whole], cached.collect()].concat()
        };
        let expected = run(&module, &Device::flex());
        let found = run(&module.clone().fork(&wgpu()), &wgpu());
        for (found, expected) in found.iter().zip(&expected) {
            assert_close("output", found, expected);
        }
    }
}

#[test]
fn integers_and_flags_arrive_as_they_were() {
    let data = TensorData::new(vec![3_i32, 0, 65_000], [3]);
    let tensor = Tensor::<1, Int>::from_data(data, &wgpu());
    assert_eq!(
        tensor.into_data().iter::<i32>().collect::<Vec<_>>(),
        [3, 0, 65_000]
    );
}

#[test]
fn a_short_training_run_ends_where_flex_does() {
    let text = r#"
        task = { name = "repeat", vocabulary = 12, prefix = [0, 2], block = [3, 5] }
        model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 16 }
        train = { steps = 20, batch_size = 8, learning_rate = 1e-3, warmup = 5 }
        log = { every = 10, patterns_every = 20 }
    "#;
    let train = |device: &str| -> Summary {
        let config = Config::parse(text, "test", &[]).unwrap();
        let directory = TempDir::new().unwrap();
        let setup = Setup::prepare(config, device).unwrap();
        let run = setup.create(&directory.path().join("run"), false).unwrap();
        setup.run(&run).unwrap()
    };
    let (there, here) = (train("wgpu"), train("flex"));
    assert!(
        (there.loss - here.loss).abs() < 1e-3,
        "{} against {}",
        there.loss,
        here.loss
    );
}
