//! Any combination of parts is a model: it runs, learns, and is written for other tools or says why
//! not.

mod common;

use std::fs;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Device, Gradients, Int, Tensor},
};
use common::{assert_close, model, values};
use headlight_attention::{AttentionOptions, Biases, ConfigError, QkNorm, RotaryScaling};
use headlight_ops::cross_entropy;
use headlight_residual::{
    Activation, BlockOrder, BlockSite, Decoder, DecoderConfig, ExchangeError, FeedForwardKind,
    Initialization, NoProbe, NormKind, NormPlacement, ParameterPath, Positions, RotaryPositions,
    Site, from_huggingface, to_huggingface, to_transformer_lens, token_tensor, weights_from_bytes,
    weights_to_bytes,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use tempfile::TempDir;

const LAYERS: usize = 3;
const LENGTH: usize = 6;

fn activations() -> impl Strategy<Value = Activation> {
    select(Activation::ALL.to_vec())
}

fn feed_forwards() -> impl Strategy<Value = Option<(usize, FeedForwardKind)>> {
    let kind = prop_oneof![
        activations().prop_map(FeedForwardKind::Plain),
        activations().prop_map(FeedForwardKind::Gated),
    ];
    option::of((select(vec![5_usize, 12]), kind))
}

fn scalings() -> impl Strategy<Value = RotaryScaling> {
    select(vec![
        RotaryScaling::None,
        RotaryScaling::Linear { factor: 3.0 },
        RotaryScaling::Llama3 {
            factor: 8.0,
            low_frequency_factor: 1.0,
            high_frequency_factor: 4.0,
            original_n_ctx: 20,
        },
        // Its context is that of the model, so that it is exported.
        RotaryScaling::Dynamic {
            factor: 4.0,
            original_n_ctx: LENGTH,
        },
        RotaryScaling::Yarn {
            factor: 4.0,
            original_n_ctx: 3,
            fast_turns: 2.0,
            slow_turns: 0.1,
            whole_pairs: true,
            attention_factor: None,
        },
    ])
}

/// Positions with a factor for each pair, where no other scaling is.
fn with_factors(positions: Positions, d_head: usize, original_n_ctx: usize) -> Positions {
    match positions {
        Positions::Rotary(rotary) if rotary.scaling == RotaryScaling::None => {
            let pairs = rotary.rotated.unwrap_or(d_head) / 2;
            Positions::Rotary(RotaryPositions {
                scaling: RotaryScaling::LongRope {
                    short_factors: (0..pairs).map(|pair| 1.0 + pair as f64).collect(),
                    long_factors: (0..pairs).map(|pair| 2.0 + 3.0 * pair as f64).collect(),
                    original_n_ctx,
                    attention_factor: 1.25,
                },
                ..rotary
            })
        }
        positions => positions,
    }
}

fn positions() -> impl Strategy<Value = Positions> {
    let rotary = (
        select(vec![20.0, 10_000.0]),
        option::of(select(vec![2_usize, 4])),
        scalings(),
        option::of(Just(50.0)),
    );
    prop_oneof![
        Just(Positions::Learned),
        Just(Positions::Sinusoidal),
        Just(Positions::Alibi),
        Just(Positions::None),
        rotary.prop_map(|(base, rotated, scaling, base_in_window)| {
            Positions::Rotary(RotaryPositions {
                base,
                rotated,
                scaling,
                base_in_window,
            })
        }),
    ]
}

fn attention_parts() -> impl Strategy<Value = DecoderConfig> {
    let biases = [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()].prop_map(
        |[query, key, value, output]| Biases {
            query,
            key,
            value,
            output,
        },
    );
    let heads = (
        option::of(select(vec![1_usize, 2, 4])),
        option::of(Just(6_usize)),
    );
    let qk_norm = select(vec![QkNorm::None, QkNorm::EachHead, QkNorm::AllHeads]);
    let windows = (option::of(1..4_usize), vec(any::<bool>(), LAYERS));
    let options = (option::of(Just(0.4)), option::of(Just(2.0)));
    let positions = (positions(), option::of(select(vec![3, LENGTH])));
    (biases, heads, qk_norm, windows, options, positions).prop_map(
        |(attention_bias, (n_kv_heads, d_head), qk_norm, (window, full), options, positions)| {
            let positions = match positions {
                (positions, None) => positions,
                (positions, Some(original_n_ctx)) => {
                    with_factors(positions, d_head.unwrap_or(4), original_n_ctx)
                }
            };
            let full_layers = (0..LAYERS).filter(|&layer| window.is_some() && full[layer]);
            DecoderConfig {
                vocabulary: 7,
                n_ctx: LENGTH,
                d_model: 16,
                n_layers: LAYERS,
                n_heads: 4,
                n_kv_heads,
                d_head,
                attention_bias,
                qk_norm,
                positions,
                window,
                full_layers: full_layers.collect(),
                attention: AttentionOptions {
                    scale: options.0,
                    softcap: options.1,
                },
                initialization: Initialization::Normal,
                init_std: 0.3,
                ..DecoderConfig::default()
            }
        },
    )
}

fn decoders() -> impl Strategy<Value = DecoderConfig> {
    let norms = (
        select(vec![NormKind::LayerNorm, NormKind::RmsNorm, NormKind::None]),
        select(vec![
            NormPlacement::Pre,
            NormPlacement::Post,
            NormPlacement::Output,
            NormPlacement::PreAndOutput,
        ]),
    );
    let order = select(vec![BlockOrder::Sequential, BlockOrder::Parallel]);
    let ends = (any::<bool>(), option::of(Just(4.0)), option::of(Just(3.0)));
    (
        attention_parts(),
        norms,
        order,
        feed_forwards(),
        any::<bool>(),
        ends,
    )
        .prop_map(
            |(config, norms, block_order, feed_forward, feed_forward_bias, ends)| DecoderConfig {
                norm: norms.0,
                // Without norms large values would make all scores depend on rounding.
                init_std: if norms.0 == NormKind::None { 0.1 } else { 0.3 },
                norm_placement: norms.1,
                block_order,
                feed_forward,
                feed_forward_bias,
                tied_embedding: ends.0,
                embedding_scale: ends.1,
                logit_softcap: ends.2,
                ..config
            },
        )
}

fn texts() -> [[u32; LENGTH]; 2] {
    [[0, 3, 1, 6, 2, 5], [4, 4, 0, 1, 6, 6]]
}

fn tokens(device: &Device) -> Tensor<2, Int> {
    token_tensor(&texts(), device)
}

/// The logits of each row alone, cut into prefill and single tokens, in a batch of rows that stand
/// at different positions.
fn ragged(model: &Decoder) -> Tensor<3> {
    let device = Device::flex();
    let rounds = [[3, 1], [1, 2], [0, 3], [2, 0]];
    let mut caches = model.caches(LENGTH);
    let mut found = [Vec::new(), Vec::new()];
    let mut done = [0, 0];
    for counts in rounds {
        let longest = counts[0].max(counts[1]);
        let rows: Vec<Vec<u32>> = (0..2)
            .map(|row| {
                let mut tokens = texts()[row][done[row]..done[row] + counts[row]].to_vec();
                tokens.resize(longest, 6);
                tokens
            })
            .collect();
        let new = token_tensor(&rows, &device);
        let logits = model.forward_cached_rows(new, &counts, &mut caches);
        for row in 0..2 {
            found[row].push(logits.clone().slice([row..row + 1, 0..counts[row], 0..7]));
            done[row] += counts[row];
        }
    }
    Tensor::cat(found.map(|row| Tensor::cat(row, 1)).into(), 0)
}

/// The size of a gradient, and the paths of parameters that have none, or one that is not finite.
struct Seen<'a> {
    gradients: &'a Gradients,
    path: ParameterPath,
    missing: Vec<String>,
    squares: f32,
}

impl ModuleVisitor for Seen<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.gradients).map(values);
        match gradient {
            Some(gradient) if gradient.iter().all(|value| value.is_finite()) => {
                self.squares += gradient.iter().map(|value| value * value).sum::<f32>();
            }
            _ => self.missing.push(self.path.to_string()),
        }
    }
}

/// Moves all parameters against the gradient.
struct Step<'a> {
    gradients: &'a Gradients,
    rate: f32,
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let gradient = param.val().grad(self.gradients);
        param.map(|value| match gradient {
            Some(gradient) => {
                let moved = value.inner() - gradient.mul_scalar(self.rate);
                Tensor::from_inner(moved).require_grad()
            }
            None => value,
        })
    }
}

fn loss(model: &Decoder, device: &Device) -> Tensor<1> {
    let targets = texts().map(|[first, rest @ ..]| [rest.as_slice(), &[first]].concat());
    let weights = Tensor::ones([2, LENGTH], device).div_scalar(2.0 * LENGTH as f64);
    cross_entropy(
        model.forward(tokens(device)),
        token_tensor(&targets, device),
        weights,
    )
}

fn check_training(config: &DecoderConfig) {
    let device = Device::flex().autodiff();
    let fresh = config.try_init(1, &device).unwrap();
    let before = loss(&fresh, &device);
    let gradients = before.backward();
    let mut seen = Seen {
        gradients: &gradients,
        path: ParameterPath::default(),
        missing: Vec::new(),
        squares: 0.0,
    };
    fresh.visit(&mut seen);
    assert_eq!(seen.missing, Vec::<String>::new());
    // A step of one length for all models.
    let mut step = Step {
        gradients: &gradients,
        rate: 1e-3 / seen.squares.sqrt(),
    };
    let trained = fresh.map(&mut step);
    let losses = [before, loss(&trained, &device)];
    let [before, after] = losses.map(|loss| loss.into_scalar::<f32>());
    assert!(after < before, "{after} after {before}");
}

/// Embeddings and what all parts add are the stream, unless norms replace it.
fn check_sum(model: &Decoder) {
    if model.config().norm_placement == NormPlacement::Post {
        return;
    }
    let seen = model
        .activations(tokens(&Device::flex()), &model.sites())
        .unwrap();
    let mut sum = seen.tensor::<3>(Site::Embed);
    if let Some(positions) = seen.get::<3>(Site::PosEmbed) {
        sum = sum + positions;
    }
    for layer in 0..LAYERS {
        for site in [BlockSite::AttnOut, BlockSite::MlpOut] {
            if let Some(part) = seen.get::<3>(Site::Block(layer, site)) {
                sum = sum + part;
            }
        }
    }
    let last = Site::Block(LAYERS - 1, BlockSite::ResidPost);
    assert_close("stream", seen.tensor::<3>(last), sum);
}

fn check_exports(model: &Decoder, logits: &Tensor<3>) {
    match to_huggingface(model) {
        Ok(files) => {
            let folder = TempDir::new().unwrap();
            fs::write(folder.path().join("config.json"), files.config).unwrap();
            fs::write(folder.path().join("model.safetensors"), files.weights).unwrap();
            let back = from_huggingface(folder.path(), &Device::flex()).unwrap();
            let found = back.forward(tokens(&Device::flex()));
            assert_close("huggingface", found, logits.clone());
        }
        Err(ExchangeError::NoSuchFamily { parts, .. }) => assert!(!parts.is_empty()),
        Err(error) => panic!("{error}"),
    }
    match to_transformer_lens(model) {
        Ok(_) | Err(ExchangeError::NotInTransformerLens(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// The base of dynamic scaling grows with a power of `rotated/(rotated − 2)`.
fn turns_too_few(positions: &Positions) -> bool {
    let Positions::Rotary(rotary) = positions else {
        return false;
    };
    matches!(rotary.scaling, RotaryScaling::Dynamic { .. }) && rotary.rotated == Some(2)
}

fn check(config: &DecoderConfig) {
    let is_impossible =
        config.block_order == BlockOrder::Parallel && config.norm_placement == NormPlacement::Post;
    let too_few = turns_too_few(&config.positions);
    if is_impossible || too_few {
        let error = config.validate().unwrap_err();
        let is_expected = match error {
            ConfigError::DoNotCombine { .. } => is_impossible,
            ConfigError::TooLarge { .. } => too_few,
            _ => false,
        };
        assert!(is_expected, "{error}");
        return;
    }
    let model = model(config);
    let logits = model.forward(tokens(&Device::flex()));
    assert!(values(logits.clone()).iter().all(|logit| logit.is_finite()));
    if config.turns_alike(1, LENGTH) {
        assert_close("cached", ragged(&model), logits.clone());
    }
    let last = *model.stream_sites().last().unwrap();
    let seen = model.activations(tokens(&Device::flex()), &[last]).unwrap();
    let lens = model.unembed(seen.tensor(last), &mut NoProbe);
    assert_eq!(values(lens), values(logits.clone()));
    check_sum(&model);
    check_training(config);

    let counted: usize = config.costs().iter().map(|cost| cost.parameters).sum();
    assert_eq!(counted, model.num_params());
    let bytes = weights_to_bytes(&model).unwrap();
    let other = config.try_init(9, &Device::flex()).unwrap();
    let read = weights_from_bytes(other, &bytes).unwrap();
    assert_eq!(weights_to_bytes(&read).unwrap(), bytes);
    check_exports(&model, &logits);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_combination_of_parts_runs_learns_and_is_exported_or_says_why_not(config in decoders()) {
        check(&config);
    }
}
