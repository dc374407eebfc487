//! Attention against PyTorch: values and gradients made by `scripts/fixtures/attention.py`.

mod common;

use burn::tensor::{DType, Device};
use common::{Fixture, assert_close, values};
use headlight_attention::{
    AttentionOptions, LoadError, Mask, MultiHeadAttention, MultiHeadAttentionConfig, Rotary,
    RotaryLayout, WeightFormat, attention,
};

fn check_sdpa(case: &str, bound: f64) {
    let mut fixture = Fixture::open("sdpa.safetensors");
    let device = Device::flex().autodiff();
    let at = |name: &str| format!("{case}.{name}");
    let mut leaf = |name: &str| fixture.tensor::<4>(&at(name), &device).require_grad();
    let (query, key, value) = (leaf("query"), leaf("key"), leaf("value"));

    let mut mask = if case.starts_with("causal") {
        Mask::causal()
    } else {
        Mask::none()
    };
    if fixture.has(&at("keep")) {
        mask = mask.and(Mask::from_torch_sdpa(fixture.flags::<4>(&at("keep"))));
    }
    let bias = fixture
        .has(&at("bias"))
        .then(|| fixture.tensor::<4>(&at("bias"), &device).require_grad());
    if let Some(bias) = &bias {
        mask = mask.and(Mask::bias(bias.clone()));
    }
    let mut options = AttentionOptions::default();
    if fixture.has(&at("scale")) {
        options = options.with_scale(fixture.numbers(&at("scale"))[0]);
    }

    let output = attention(query.clone(), key.clone(), value.clone(), &mask, &options);
    assert_close(
        &at("output"),
        &values(output.clone()),
        &fixture.numbers(&at("output")),
        bound,
    );
    let gradients = (output * fixture.tensor(&at("upstream"), &device))
        .sum()
        .backward();
    let named = [
        ("d_query", Some(query)),
        ("d_key", Some(key)),
        ("d_value", Some(value)),
        ("d_bias", bias),
    ];
    for (name, leaf) in named
        .into_iter()
        .filter_map(|(name, leaf)| Some((name, leaf?)))
    {
        let gradient = values(leaf.grad(&gradients).unwrap());
        assert_close(&at(name), &gradient, &fixture.numbers(&at(name)), bound);
    }
}

#[test]
fn scaled_dot_product_attention_in_every_mode() {
    let cases = [
        "full",
        "causal",
        "cross",
        "value_width",
        "scale",
        "keep_full",
        "keep_broadcast",
        "keep_padding",
        "bias",
        "bias_broadcast",
        "grouped",
        "multi_query",
        "length_one",
    ];
    for case in cases {
        check_sdpa(case, 1e-5);
        check_sdpa(&format!("{case}_f64"), 1e-12);
    }
}

fn check_multihead(
    case: &str,
    config: &MultiHeadAttentionConfig,
    mask: impl Fn(&mut Fixture) -> Mask,
) {
    let mut fixture = Fixture::open("multihead.safetensors");
    let device = Device::flex().autodiff();
    let prefix = format!("{case}.module.");
    let module = config.try_init(&device).unwrap();
    let module = module
        .load(&mut fixture.0, &prefix, &WeightFormat::TorchMultihead)
        .unwrap();

    let x = fixture
        .tensor::<3>(&format!("{case}.x"), &device)
        .require_grad();
    let mut input = |name: &str| {
        let name = format!("{case}.{name}");
        if fixture.has(&name) {
            fixture.tensor::<3>(&name, &device)
        } else {
            x.clone()
        }
    };
    let (key, value) = (input("key"), input("value"));
    let mask = mask(&mut fixture);
    let heads = module.project(x.clone(), key, value);
    let weights = module.weights(heads.clone(), &mask);
    let output = module.merge(module.attend(heads, &mask));
    let mut expect = |name: &str, found: Vec<f64>| {
        assert_close(
            &format!("{case}.{name}"),
            &found,
            &fixture.numbers(&format!("{case}.{name}")),
            1e-5,
        );
    };
    expect("weights", values(weights));
    expect("output", values(output.clone()));
    let gradients = (output * fixture.tensor(&format!("{case}.upstream"), &device))
        .sum()
        .backward();
    let d_x = values(x.grad(&gradients).unwrap());
    assert_close("d_x", &d_x, &fixture.numbers(&format!("{case}.d_x")), 1e-5);
}

#[test]
fn multihead_attention_with_packed_weights_and_both_masks() {
    check_multihead(
        "packed",
        &MultiHeadAttentionConfig::new(12, 3).with_bias(true),
        |fixture| {
            Mask::from_torch_multihead(fixture.flags::<2>("packed.attn_mask")).and(
                Mask::from_torch_key_padding(fixture.flags::<2>("packed.key_padding_mask")),
            )
        },
    );
}

#[test]
fn multihead_attention_without_bias() {
    check_multihead("no_bias", &MultiHeadAttentionConfig::new(8, 2), |_| {
        Mask::none()
    });
}

#[test]
fn multihead_attention_with_separate_weights_and_an_additive_mask() {
    let config = MultiHeadAttentionConfig::new(12, 3)
        .with_bias(true)
        .with_d_key_and_value_context((10, 14));
    check_multihead("separate", &config, |fixture| {
        Mask::bias(
            fixture
                .tensor::<2>("separate.attn_mask", &Device::flex().autodiff())
                .reshape([1, 1, 4, 6]),
        )
    });
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let load = |config: MultiHeadAttentionConfig, prefix: &str, format: &WeightFormat| {
        let mut fixture = Fixture::open("multihead.safetensors");
        let loaded = config
            .try_init(&Device::flex())
            .unwrap()
            .load(&mut fixture.0, prefix, format);
        loaded.map(|_: MultiHeadAttention| ()).unwrap_err()
    };
    let config = MultiHeadAttentionConfig::new;
    let torch = WeightFormat::TorchMultihead;
    let missing = |name: &str| LoadError::Missing(name.to_owned());
    assert_eq!(
        load(config(12, 3).with_bias(true), "nowhere.", &torch),
        missing("nowhere.q_proj_weight")
    );
    assert_eq!(
        load(config(8, 2).with_bias(true), "no_bias.module.", &torch),
        missing("no_bias.module.in_proj_bias")
    );
    let left_over = LoadError::Unexpected("packed.module.in_proj_bias".to_owned());
    assert_eq!(load(config(12, 3), "packed.module.", &torch), left_over);
    let projections = WeightFormat::torch_projections();
    assert_eq!(
        load(config(12, 3), "packed.module.", &projections),
        missing("packed.module.q_proj.weight")
    );
    let message = load(config(8, 2).with_bias(true), "packed.module.", &torch).to_string();
    assert_eq!(
        message,
        "tensor packed.module.in_proj_weight has shape [36, 12], the module needs [24, 8]"
    );
}

#[test]
fn case_27_rotary_equals_its_closed_form_in_both_layouts() {
    // TransformerLens 364
    let mut fixture = Fixture::open("rotary.safetensors");
    let positions: Vec<i64> = fixture.data("positions").iter::<i64>().collect();
    for (case, layout, base, rotated) in [
        ("interleaved", RotaryLayout::Interleaved, 10_000.0, 8),
        ("half", RotaryLayout::HalfSplit, 10_000.0, 8),
        ("partial", RotaryLayout::HalfSplit, 500.0, 4),
        ("partial_interleaved", RotaryLayout::Interleaved, 500.0, 4),
    ] {
        let x = fixture.tensor::<4>(&format!("{case}.x"), &Device::flex());
        assert_eq!(x.dtype(), DType::F64);
        let output = Rotary::new(layout, base, rotated).rotate(x, std::slice::from_ref(&positions));
        assert_close(
            case,
            &values(output),
            &fixture.numbers(&format!("{case}.output")),
            1e-12,
        );
    }
}
