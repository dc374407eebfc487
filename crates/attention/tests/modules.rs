//! The parts of the multi-head module: positions, norms, dropout, weights of Burn's own modules.

mod common;

use burn::{
    module::Param,
    nn::attention::{CrossAttentionConfig, MhaInput, MultiHeadAttentionConfig as BurnConfig},
    store::{ModuleSnapshot, SafetensorsStore},
    tensor::{Bool, Device, Tensor},
};
use common::{NaiveInput, Sizes, assert_close, naive, numbers, random, values};
use headlight_attention::{
    Alibi, AttentionOptions, Dropout, DropoutKey, Heads, Mask, MultiHeadAttention,
    MultiHeadAttentionConfig, PositionConfig, PositionScheme, QkNorm, RelativeBias, RotaryLayout,
    RotaryScaling, WeightFormat, attention, attention_with_dropout,
};

fn flex() -> Device {
    Device::flex()
}

fn init(config: &MultiHeadAttentionConfig) -> MultiHeadAttention {
    config.try_init(&flex()).unwrap()
}

fn two_equal_keys() -> (Tensor<4>, Tensor<4>, Tensor<4>) {
    let zeros = |keys| Tensor::<4>::zeros([4, 8, keys, 1], &flex());
    (zeros(8), zeros(2), Tensor::ones([4, 8, 2, 1], &flex()))
}

#[test]
fn case_07_dropout_does_not_lose_the_causal_mask() {
    // keras 23038
    for step in 0..20 {
        let dropout = Dropout::new(
            0.5,
            DropoutKey {
                step,
                ..DropoutKey::default()
            },
        );
        let first_row = |v1: f32| {
            let zeros = Tensor::<4>::zeros([1, 1, 2, 1], &flex());
            let v = Tensor::<4>::from_floats([[[[1.0], [v1]]]], &flex());
            values(attention_with_dropout(
                zeros.clone(),
                zeros,
                v,
                &Mask::causal(),
                &AttentionOptions::default(),
                &dropout,
            ))[0]
        };
        // The only weight of row 0 is 1, and once dropped out 0 or 2; the second value never
        // counts.
        assert!([0.0, 2.0].contains(&first_row(3.0)));
        assert_eq!(first_row(3.0), first_row(-1e30));
    }
}

#[test]
fn case_18_dropout_acts_only_in_a_call_that_is_given_it() {
    // pytorch 124464, nanoGPT 240
    let module = init(&MultiHeadAttentionConfig::new(8, 2));
    let x = random([2, 5, 8], 1, &flex());
    let evaluate = || values(module.forward(x.clone(), &Mask::causal()));
    let train = |step| {
        let key = DropoutKey {
            step,
            ..DropoutKey::default()
        };
        values(module.forward_with_dropout(x.clone(), &Mask::causal(), &Dropout::new(0.5, key)))
    };
    let (first, second, one, two, third) = (evaluate(), evaluate(), train(1), train(2), evaluate());
    assert!(first == second && second == third);
    assert!(one != two && one != first);
    assert_eq!(one, train(1), "the same key drops the same weights");
}

#[test]
fn case_19_dropout_comes_after_softmax() {
    // burn-nn up to 0.22.0-pre. Two equal keys: each weight is ½, and once dropped out 0 or 1; with
    // values 1 the output is a sum of two of these.
    let (q, k, v) = two_equal_keys();
    let (options, dropout) = (
        AttentionOptions::default(),
        Dropout::new(0.5, DropoutKey::default()),
    );
    let output = values(attention_with_dropout(
        q,
        k,
        v,
        &Mask::none(),
        &options,
        &dropout,
    ));
    let count = |value: f64| output.iter().filter(|&&found| found == value).count();
    assert_eq!(count(0.0) + count(1.0) + count(2.0), 256);
    // Of 512 weights half fall; 6 standard deviations are 68.
    let kept = output.iter().sum::<f64>();
    assert!((kept - 256.0).abs() < 68.0, "{kept}");
}

#[test]
fn case_20_the_inspected_weight_is_before_dropout() {
    // pytorch 42929, fairseq 351. One token of which every weight is 1: whatever the call drops,
    // the weights that are handed out are 1.
    let module = init(&MultiHeadAttentionConfig::new(4, 1));
    let x = random([1, 1, 4], 1, &flex());
    let dropout = Dropout::new(0.9, DropoutKey::default());
    let heads = module.project(x.clone(), x.clone(), x);
    let dropped = module.attend_with_dropout(heads.clone(), &Mask::causal(), &dropout);
    assert_ne!(values(dropped), values(heads.v.clone()));
    assert_eq!(values(module.weights(heads, &Mask::causal())), [1.0]);
}

#[test]
fn a_part_of_a_batch_drops_what_the_whole_batch_would() {
    let (q, k, v) = two_equal_keys();
    let run = |from: usize, count: usize| {
        let rows = |tensor: &Tensor<4>| tensor.clone().narrow(0, from, count);
        let key = DropoutKey {
            seed: 3,
            step: 1,
            site: 2,
            first_row: from as u64,
        };
        values(attention_with_dropout(
            rows(&q),
            rows(&k),
            rows(&v),
            &Mask::none(),
            &AttentionOptions::default(),
            &Dropout::new(0.3, key),
        ))
    };
    assert_eq!(run(0, 4), [run(0, 2), run(2, 2)].concat());
    assert_ne!(run(0, 1), run(1, 1));
}

#[test]
fn dropped_weights_carry_no_gradient_and_kept_ones_the_scaled_one() {
    let device = flex().autodiff();
    let v = Tensor::<4>::ones([1, 1, 6, 1], &device).require_grad();
    let zeros = |n| Tensor::<4>::zeros([1, 1, n, 1], &device);
    let (options, dropout) = (
        AttentionOptions::default(),
        Dropout::new(0.5, DropoutKey::default()),
    );
    let (q, k) = (zeros(1), zeros(6));
    let output = attention_with_dropout(q, k, v.clone(), &Mask::none(), &options, &dropout);
    let kept = (values(output.clone())[0] * 3.0).round();
    let gradient = values(v.grad(&output.sum().backward()).unwrap());
    // Each weight is 1/6; kept ones are doubled.
    assert_eq!(
        gradient
            .iter()
            .filter(|g| (**g - 1.0 / 3.0).abs() < 1e-6)
            .count() as f64,
        kept
    );
    assert!(
        gradient
            .iter()
            .all(|g| *g == 0.0 || (*g - 1.0 / 3.0).abs() < 1e-6),
        "{gradient:?}"
    );
}

#[test]
fn case_28_relative_schemes_equal_the_loop_at_every_length() {
    // TransformerLens 1681: hidden by short tests
    let n_heads = 3;
    let table = numbers(n_heads * 11, 77);
    let mut relative = RelativeBias::new(n_heads, 5, &flex());
    relative.table = Param::from_tensor(random([n_heads, 11], 77, &flex()));
    let slopes = Alibi::new(n_heads).slopes();
    for length in [4, 9, 33, 130] {
        let sizes = Sizes {
            batch: 2,
            heads: n_heads,
            kv_heads: 3,
            queries: length,
            keys: length,
            d_head: 4,
            d_value: 4,
        };
        let draw = |salt| numbers(sizes.query().iter().product(), salt);
        let (q, k, v) = (draw(1), draw(2), draw(3));
        let upstream = vec![0.0; q.len()];
        let expected =
            |bias: &dyn Fn(usize, i64) -> f64,
             allowed: &dyn Fn(usize, usize, usize, usize) -> bool| {
                let mut biases = Vec::new();
                for _ in 0..2 {
                    for head in 0..n_heads {
                        for query in 0..length as i64 {
                            biases.extend((0..length as i64).map(|key| bias(head, query - key)));
                        }
                    }
                }
                naive(&NaiveInput {
                    sizes,
                    query: &q,
                    key: &k,
                    value: &v,
                    upstream: &upstream,
                    bias: Some(&biases),
                    allowed,
                    scale: 0.5,
                    softcap: None,
                })
                .output
            };
        let run = |scheme: Option<PositionScheme>, mask: &Mask| {
            let mut module = init(&MultiHeadAttentionConfig::new(12, n_heads));
            module.position = scheme;
            let heads = [1, 2, 3].map(|salt| random(sizes.query(), salt, &flex()));
            let [q, k, v] = heads;
            values(module.attend(Heads { q, k, v }, mask))
        };
        let causal = |_: usize, _: usize, q: usize, k: usize| k <= q;
        assert_close(
            "ALiBi",
            &run(
                Some(PositionScheme::Alibi(Alibi::new(n_heads))),
                &Mask::causal(),
            ),
            &expected(
                &|head, distance| -slopes[head] * distance.abs() as f64,
                &causal,
            ),
            1e-5,
        );
        assert_close(
            "relative bias",
            &run(
                Some(PositionScheme::Relative(relative.clone())),
                &Mask::causal(),
            ),
            &expected(
                &|head, distance| table[head * 11 + (distance.clamp(-5, 5) + 5) as usize],
                &causal,
            ),
            1e-5,
        );
        assert_close(
            "window",
            &run(None, &Mask::window(6)),
            &expected(&|_, _| 0.0, &|_, _, q, k| k <= q && q - k < 6),
            1e-5,
        );
    }
}

#[test]
fn a_rotary_score_depends_on_the_distance_alone() {
    let scheme = PositionConfig::rotary();
    let mut module = init(&MultiHeadAttentionConfig::new(8, 1).with_position(scheme));
    let (q, k) = (
        random([1, 1, 1, 8], 1, &flex()),
        random([1, 1, 1, 8], 2, &flex()),
    );
    let score = |module: &MultiHeadAttention, at_q: i64, at_k: i64| {
        let Some(scheme) = &module.position else {
            unreachable!()
        };
        let (q, k) = (
            scheme.rotate(q.clone(), &[vec![at_q]]),
            scheme.rotate(k.clone(), &[vec![at_k]]),
        );
        values(q.matmul(k.transpose()))[0]
    };
    let near = score(&module, 3, 1);
    assert!((near - score(&module, 103, 101)).abs() < 1e-4);
    assert!((near - score(&module, 4, 1)).abs() > 1e-3);
    module.position = None;
    assert!(module.position.is_none());
}

#[test]
fn the_table_of_a_relative_bias_gets_its_gradient() {
    let device = flex().autodiff();
    let config = MultiHeadAttentionConfig::new(4, 1)
        .with_position(PositionConfig::RelativeBias { max_distance: 2 });
    let module = config.try_init(&device).unwrap();
    let x = random([1, 4, 4], 3, &device);
    let loss =
        |module: &MultiHeadAttention| module.forward(x.clone(), &Mask::causal()).square().sum();
    let Some(PositionScheme::Relative(relative)) = &module.position else {
        unreachable!()
    };
    let gradient = values(
        relative
            .table
            .val()
            .grad(&loss(&module).backward())
            .unwrap(),
    );
    for entry in 0..5 {
        let nudged = |by: f32| {
            let mut module = module.clone();
            let Some(PositionScheme::Relative(relative)) = &mut module.position else {
                unreachable!()
            };
            let mut table = [0.0; 5];
            table[entry] = by;
            relative.table = Param::from_tensor(Tensor::from_floats([table], &device));
            values(loss(&module))[0]
        };
        let difference = (nudged(1e-2) - nudged(-1e-2)) / 2e-2;
        assert!(
            (gradient[entry] - difference).abs() < 1e-3,
            "{entry}: {} {difference}",
            gradient[entry]
        );
    }
    assert_eq!(gradient[..2], [0.0, 0.0], "the future is masked");
}

#[test]
fn qk_norm_makes_scores_blind_to_the_size_of_the_input() {
    let x = random([2, 5, 8], 1, &flex());
    for qk_norm in [QkNorm::EachHead, QkNorm::AllHeads] {
        let module = init(&MultiHeadAttentionConfig::new(8, 2).with_qk_norm(qk_norm));
        let weights = |x: Tensor<3>| values(module.forward_with_weights(x, &Mask::causal()).1);
        assert_close(
            "weights",
            &weights(x.clone().mul_scalar(50.0)),
            &weights(x.clone()),
            1e-4,
        );
        let heads = module.project(x.clone(), x.clone(), x.clone());
        let (Heads { q, .. }, _) = module.with_positions(heads, &Mask::causal());
        let squares = q.square().mean_dim(3); // [batch, heads, seq, 1]
        let squares = match qk_norm {
            QkNorm::AllHeads => squares.mean_dim(1),
            _ => squares,
        };
        assert!(values(squares).iter().all(|mean| (mean - 1.0).abs() < 1e-3));
    }
}

/// One operation where nothing comes between projections and attention: the same bits as the two
/// doors, and the same gradients up to the order of sums.
#[test]
fn self_attention_is_projections_and_attention_one_after_the_other() {
    let device = flex().autodiff();
    let plain = MultiHeadAttentionConfig::new(24, 4);
    let softcapped = AttentionOptions {
        softcap: Some(2.0),
        ..AttentionOptions::default()
    };
    let configs = [
        plain.clone(),
        plain.clone().with_bias(false),
        plain.clone().with_n_kv_heads(2).with_options(softcapped),
        plain.clone().with_position(PositionConfig::Alibi),
        plain.with_qk_norm(QkNorm::EachHead),
    ];
    let key = DropoutKey::default();
    let dropouts = [None, Some(Dropout::new(0.3, key))];
    for config in &configs {
        let module = config.try_init(&device).unwrap();
        // Fewer sequences than threads, and more.
        for batch in [1, 9] {
            for (dropout, mask) in dropouts.iter().zip([Mask::causal(), Mask::window(3)]) {
                let x = random([batch, 7, 24], 1, &device).require_grad();
                let heads = module.project(x.clone(), x.clone(), x.clone());
                let parts = match dropout {
                    Some(dropout) => module.attend_with_dropout(heads, &mask, dropout),
                    None => module.attend(heads, &mask),
                };
                let whole = module.attend_to_self(x.clone(), &mask, dropout.as_ref());
                assert_eq!(values(whole.clone()), values(parts.clone()));
                let upstream = random([batch, 4, 7, 6], 2, &device);
                let found = (whole * upstream.clone()).sum().backward();
                let expected = (parts * upstream).sum().backward();
                let of_x = |gradients| values(x.grad(gradients).unwrap());
                assert_close("d_x", &of_x(&found), &of_x(&expected), 1e-5);
                for projection in [&module.w_q, &module.w_k, &module.w_v] {
                    let of_weight =
                        |gradients| values(projection.weight.val().grad(gradients).unwrap());
                    assert_close("d_weight", &of_weight(&found), &of_weight(&expected), 1e-5);
                    if let Some(bias) = &projection.bias {
                        let of_bias = |gradients| values(bias.val().grad(gradients).unwrap());
                        assert_close("d_bias", &of_bias(&found), &of_bias(&expected), 1e-5);
                    }
                }
            }
        }
    }
}

#[test]
fn heads_permuted_give_results_permuted_and_their_sum_is_the_output() {
    let module = init(&MultiHeadAttentionConfig::new(6, 3).with_bias(true));
    let x = random([2, 4, 6], 9, &flex());
    let heads = module.project(x.clone(), x.clone(), x.clone());
    let z = module.attend(heads.clone(), &Mask::causal());
    let Some(bias) = &module.w_o.bias else {
        unreachable!()
    };
    let sum = module.results(z.clone()).sum_dim(1).squeeze_dim::<3>(1) + bias.val().unsqueeze();
    assert_close(
        "sum",
        &values(sum),
        &values(module.forward(x, &Mask::causal())),
        1e-5,
    );
    let flip = |tensor: Tensor<4>| tensor.flip([1]);
    let flipped = module.attend(
        Heads {
            q: flip(heads.q),
            k: flip(heads.k),
            v: flip(heads.v),
        },
        &Mask::causal(),
    );
    assert_eq!(values(flipped), values(flip(z)));
}

#[test]
fn weights_of_burns_multi_head_attention() {
    let theirs = BurnConfig::new(12, 3).with_dropout(0.0).init(&flex());
    let ours = load_from(
        &theirs,
        &MultiHeadAttentionConfig::new(12, 3).with_bias(true),
    );
    let x = random([2, 5, 12], 1, &flex());
    let padding =
        Tensor::<2, Bool>::from_bool([[false; 5], [false, false, false, true, true]], &flex());
    let future = Mask::causal();
    let burn_future = Tensor::<2, Bool>::tril_mask([5, 5], 0, &flex())
        .unsqueeze::<3>()
        .expand([2, 5, 5]);
    let input = MhaInput::self_attn(x.clone())
        .mask_pad(padding.clone())
        .mask_attn(burn_future.clone());
    let expected = theirs.forward(input);
    let mask = future.and(Mask::from_burn_pad(padding.clone()));
    let (output, weights) = ours.forward_with_weights(x.clone(), &mask);
    assert_close("output", &values(output), &values(expected.context), 1e-5);
    assert_close("weights", &values(weights), &values(expected.weights), 1e-5);
    let converted = Mask::from_burn_attn(burn_future).and(Mask::from_burn_pad(padding));
    assert_eq!(
        values(ours.forward(x.clone(), &converted)),
        values(ours.forward(x, &mask))
    );
}

#[test]
fn weights_of_burns_cross_attention() {
    let theirs = CrossAttentionConfig::new(12, 10, 4, 2, 5)
        .with_dropout(0.0)
        .init(&flex());
    let config = MultiHeadAttentionConfig::new(12, 4)
        .with_n_kv_heads(2)
        .with_d_head(5)
        .with_d_context(10);
    let ours = load_from(&theirs, &config.with_bias(true));
    let (x, context) = (
        random([2, 3, 12], 1, &flex()),
        random([2, 6, 10], 2, &flex()),
    );
    let expected = theirs.forward(x.clone(), context.clone(), None);
    assert_close(
        "output",
        &values(ours.cross(x, context, &Mask::none())),
        &values(expected),
        1e-5,
    );
}

fn load_from<M: ModuleSnapshot>(
    theirs: &M,
    config: &MultiHeadAttentionConfig,
) -> MultiHeadAttention {
    let mut saved = SafetensorsStore::from_bytes(None);
    theirs.save_into(&mut saved).unwrap();
    let mut saved = SafetensorsStore::from_bytes(Some(saved.get_bytes().unwrap()));
    init(config)
        .load(&mut saved, "", &WeightFormat::Burn)
        .unwrap()
}

#[test]
fn configurations_that_cannot_be_right_name_both_numbers() {
    let message = |config: MultiHeadAttentionConfig| config.validate().unwrap_err().to_string();
    let config = || MultiHeadAttentionConfig::new(12, 4);
    assert_eq!(
        message(config().with_n_kv_heads(3)),
        "n_heads 4 is not divisible by n_kv_heads 3"
    );
    assert_eq!(
        message(config().with_d_head(0)),
        "d_head must be at least 1"
    );
    let rotary = |rotated| PositionConfig::Rotary {
        layout: RotaryLayout::default(),
        base: 1e4,
        rotated,
        scaling: RotaryScaling::None,
    };
    assert_eq!(
        message(config().with_position(rotary(Some(4)))),
        "rotary components 4 is more than d_head 3"
    );
    assert_eq!(
        message(config().with_position(rotary(None))),
        "rotary components 3 is not divisible by the size of a pair, 2"
    );
    let options = AttentionOptions::default().with_softcap(0.0);
    assert_eq!(
        message(config().with_options(options)),
        "softcap must be a positive finite number, not 0"
    );
}

#[test]
#[should_panic(
    expected = "query [1, 2, 3, 4] [batch, heads, queries, d_head] and key [1, 2, 3, 5]"
)]
fn a_shape_that_cannot_be_right_panics_with_both_shapes() {
    let zeros = |width| Tensor::<4>::zeros([1, 2, 3, width], &flex());
    let _ = attention(
        zeros(4),
        zeros(5),
        zeros(5),
        &Mask::none(),
        &AttentionOptions::default(),
    );
}

#[test]
#[should_panic(
    expected = "Mask::allowed of shape [1, 1, 2, 2] does not fit scores of shape [1, 2, 3, 3]"
)]
fn a_mask_for_another_shape_panics_with_both_shapes() {
    let zeros = Tensor::<4>::zeros([1, 2, 3, 4], &flex());
    let keep = Tensor::<2, Bool>::from_bool([[true, true], [true, true]], &flex());
    let _ = attention(
        zeros.clone(),
        zeros.clone(),
        zeros,
        &Mask::allowed(keep),
        &AttentionOptions::default(),
    );
}
