//! What the tests of models share: one small model of every architecture.
#![allow(dead_code, reason = "each test file uses its part")]

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Device, Int, Tensor, TensorData},
};
use headlight_attention::{AttentionOptions, Biases, QkNorm, RotaryScaling};
use headlight_residual::{
    Activation, BlockOrder, Decoder, DecoderConfig, FeedForwardKind, Initialization, NormKind,
    NormPlacement, Positions, RotaryPositions,
};

pub const LAYERS: usize = 3;

pub fn plain(activation: Activation) -> (usize, FeedForwardKind) {
    (20, FeedForwardKind::Plain(activation))
}

pub fn config(feed_forward: Option<(usize, FeedForwardKind)>) -> DecoderConfig {
    DecoderConfig {
        vocabulary: 7,
        n_ctx: 6,
        d_model: 24,
        n_layers: LAYERS,
        n_heads: 4,
        feed_forward,
        initialization: Initialization::Normal,
        // Large enough that no activation is negligible.
        init_std: 0.3,
        ..DecoderConfig::default()
    }
}

pub fn gpt2() -> DecoderConfig {
    DecoderConfig {
        attention_bias: Biases::ALL,
        tied_embedding: true,
        ..config(Some(plain(Activation::GeluTanh)))
    }
}

pub fn llama() -> DecoderConfig {
    DecoderConfig {
        norm: NormKind::RmsNorm,
        positions: Positions::rotary(10_000.0),
        n_kv_heads: Some(2),
        feed_forward_bias: false,
        ..config(Some((20, FeedForwardKind::Gated(Activation::Silu))))
    }
}

/// A GPT-NeoX: both parts of a block read the stream before it, and a part of each head rotates.
pub fn neox() -> DecoderConfig {
    DecoderConfig {
        block_order: BlockOrder::Parallel,
        attention_bias: Biases::ALL,
        positions: Positions::Rotary(RotaryPositions {
            rotated: Some(2),
            ..RotaryPositions::default()
        }),
        ..config(Some(plain(Activation::Gelu)))
    }
}

/// An `OLMo` 2: norms after the parts, and over all queries and all keys.
pub fn olmo2() -> DecoderConfig {
    DecoderConfig {
        qk_norm: QkNorm::AllHeads,
        norm_placement: NormPlacement::Output,
        ..llama()
    }
}

/// A Gemma with what 2 and 3 have.
pub fn gemma() -> DecoderConfig {
    DecoderConfig {
        qk_norm: QkNorm::EachHead,
        norm_placement: NormPlacement::PreAndOutput,
        feed_forward: Some((20, FeedForwardKind::Gated(Activation::GeluTanh))),
        positions: Positions::Rotary(RotaryPositions {
            base: 1000.0,
            scaling: RotaryScaling::Linear { factor: 4.0 },
            base_in_window: Some(50.0),
            ..RotaryPositions::default()
        }),
        window: Some(2),
        full_layers: vec![1],
        embedding_scale: Some(24f64.sqrt()),
        tied_embedding: true,
        attention: AttentionOptions {
            scale: Some(0.3),
            softcap: Some(2.0),
        },
        logit_softcap: Some(3.0),
        ..llama()
    }
}

/// Name and configuration of every architecture.
pub fn architectures() -> Vec<(&'static str, DecoderConfig)> {
    let relu = || config(Some(plain(Activation::Relu)));
    vec![
        ("attention only", config(None)),
        ("relu", relu()),
        ("gelu", config(Some(plain(Activation::Gelu)))),
        ("gpt2", gpt2()),
        ("llama", llama()),
        (
            "no norm",
            DecoderConfig {
                norm: NormKind::None,
                init_std: 0.1,
                ..relu()
            },
        ),
        (
            "post-norm",
            DecoderConfig {
                norm_placement: NormPlacement::Post,
                positions: Positions::Sinusoidal,
                ..relu()
            },
        ),
        (
            "post-norm, attention only",
            DecoderConfig {
                norm_placement: NormPlacement::Post,
                ..config(None)
            },
        ),
        (
            "alibi",
            DecoderConfig {
                positions: Positions::Alibi,
                feed_forward_bias: false,
                ..relu()
            },
        ),
        (
            "no positions",
            DecoderConfig {
                positions: Positions::None,
                n_kv_heads: Some(1),
                ..config(None)
            },
        ),
        (
            "window",
            DecoderConfig {
                window: Some(3),
                ..llama()
            },
        ),
        ("gpt-neox", neox()),
        ("olmo 2", olmo2()),
        ("gemma", gemma()),
        (
            "qwen 3",
            DecoderConfig {
                qk_norm: QkNorm::EachHead,
                attention_bias: Biases::QUERY_KEY_VALUE,
                ..llama()
            },
        ),
        (
            "scaled embeddings beside learned positions",
            DecoderConfig {
                embedding_scale: Some(1.5),
                ..gpt2()
            },
        ),
        (
            "parallel, normed outputs, llama 3",
            DecoderConfig {
                block_order: BlockOrder::Parallel,
                norm: NormKind::LayerNorm,
                norm_placement: NormPlacement::PreAndOutput,
                positions: Positions::Rotary(RotaryPositions {
                    base: 30.0,
                    scaling: RotaryScaling::Llama3 {
                        factor: 8.0,
                        low_frequency_factor: 1.0,
                        high_frequency_factor: 4.0,
                        original_n_ctx: 32,
                    },
                    ..RotaryPositions::default()
                }),
                ..llama()
            },
        ),
        (
            "yarn",
            DecoderConfig {
                positions: Positions::Rotary(RotaryPositions {
                    base: 30.0,
                    scaling: RotaryScaling::Yarn {
                        factor: 4.0,
                        original_n_ctx: 4,
                        fast_turns: 0.4,
                        slow_turns: 0.05,
                        whole_pairs: false,
                        attention_factor: None,
                    },
                    ..RotaryPositions::default()
                }),
                ..llama()
            },
        ),
        (
            "learned window",
            DecoderConfig {
                window: Some(2),
                d_head: Some(5),
                ..gpt2()
            },
        ),
    ]
}

pub fn model(config: &DecoderConfig) -> Decoder {
    let model = config.try_init(3, &Device::flex()).unwrap();
    // Gains and biases start at 1 and 0, where much that is wrong does not show.
    model.map(&mut Shake(0))
}

pub fn models() -> Vec<(&'static str, Decoder)> {
    architectures()
        .iter()
        .map(|(name, config)| (*name, model(config)))
        .collect()
}

/// Adds a little to every vector of parameters.
struct Shake(usize);

impl ModuleMapper for Shake {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D > 1 {
            return param;
        }
        self.0 += 1;
        let salt = self.0;
        param.map(|vector| {
            let shape = vector.dims();
            let shifts: Vec<f32> = (0..shape[0])
                .map(|i| 0.4 * ((i * 7 + salt * 3) as f32 * 1.7).sin())
                .collect();
            let device = vector.device();
            vector + Tensor::from_data(TensorData::new(shifts, shape), &device)
        })
    }
}

pub fn tokens() -> Tensor<2, Int> {
    Tensor::from_ints([[0, 1, 2, 3, 4, 5], [6, 6, 5, 1, 0, 2]], &Device::flex())
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Equal up to `1e-5·max(1, ‖b‖∞)`.
#[track_caller]
pub fn assert_close<const D: usize>(name: &str, a: Tensor<D>, b: Tensor<D>) {
    assert_eq!(a.dims(), b.dims(), "{name}");
    let (a, b) = (values(a), values(b));
    let size = b.iter().fold(1f32, |size, value| size.max(value.abs()));
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * size, "{name}: {a} is not {b}");
    }
}
