//! Attention against the same thing written as loops in f64: values and gradients, over many
//! shapes.

mod common;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use common::{Naive, NaiveInput, Sizes, assert_close, naive, numbers, tensor, values};
use headlight_attention::{AttentionOptions, Mask, Positions, attention, attention_weights};
use proptest::prelude::*;

/// What a case is masked with.
#[derive(Debug, Clone)]
enum Masking {
    None,
    Causal,
    Window(usize),
    Lengths(Vec<usize>),
    Keep { dims: [usize; 4], keep: Vec<bool> },
    CausalAndKeep { dims: [usize; 4], keep: Vec<bool> },
}

impl Masking {
    fn mask(&self) -> Mask {
        let array = |dims: [usize; 4], keep: &[bool]| {
            Mask::allowed(Tensor::<4, Bool>::from_data(
                TensorData::new(keep.to_vec(), dims),
                &Device::flex(),
            ))
        };
        match self {
            Self::None => Mask::none(),
            Self::Causal => Mask::causal(),
            Self::Window(width) => Mask::window(*width),
            Self::Lengths(lengths) => Mask::lengths(lengths),
            Self::Keep { dims, keep } => array(*dims, keep),
            Self::CausalAndKeep { dims, keep } => Mask::causal().and(array(*dims, keep)),
        }
    }

    /// The definition, independent of the crate: queries are aligned with the last keys.
    fn allows(&self, sizes: Sizes, [b, h, q, k]: [usize; 4]) -> bool {
        let distance = (q + sizes.keys) as i64 - sizes.queries as i64 - k as i64;
        let kept = |dims: &[usize; 4], keep: &[bool]| {
            let at = [b, h, q, k]
                .into_iter()
                .zip(dims)
                .fold(0, |at, (i, &n)| at * n + if n == 1 { 0 } else { i });
            keep[at]
        };
        match self {
            Self::None => true,
            Self::Causal => distance >= 0,
            Self::Window(width) => distance >= 0 && distance < *width as i64,
            Self::Lengths(lengths) => k < lengths[b],
            Self::Keep { dims, keep } => kept(dims, keep),
            Self::CausalAndKeep { dims, keep } => distance >= 0 && kept(dims, keep),
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    sizes: Sizes,
    masking: Masking,
    with_bias: bool,
    softcap: Option<f64>,
    scale: Option<f64>,
    salt: u64,
}

fn check(case: &Case, dtype: DType, bound: f64) {
    let Case {
        sizes,
        masking,
        softcap,
        scale,
        salt,
        ..
    } = case;
    let count = |dims: [usize; 4]| dims.iter().product::<usize>();
    // Rounded to f32 first, so that both start from the same numbers.
    let draw = |dims, which: u64| -> Vec<f64> {
        numbers(count(dims), salt * 8 + which)
            .iter()
            .map(|&x| f64::from(x as f32))
            .collect()
    };
    let (query, key, value) = (
        draw(sizes.query(), 0),
        draw(sizes.key(), 1),
        draw(sizes.value(), 2),
    );
    let (upstream, bias) = (draw(sizes.output(), 3), draw(sizes.scores(), 4));
    let options = AttentionOptions {
        scale: *scale,
        softcap: *softcap,
    };
    let expected: Naive = naive(&NaiveInput {
        sizes: *sizes,
        query: &query,
        key: &key,
        value: &value,
        upstream: &upstream,
        bias: case.with_bias.then_some(&bias),
        allowed: &|b, h, q, k| masking.allows(*sizes, [b, h, q, k]),
        scale: scale.unwrap_or(1.0 / (sizes.d_head as f64).sqrt()),
        softcap: *softcap,
    });

    let device = Device::flex().autodiff();
    let leaf = |values: &[f64], dims| tensor(values, dims, dtype, &device).require_grad();
    let (q, k, v) = (
        leaf(&query, sizes.query()),
        leaf(&key, sizes.key()),
        leaf(&value, sizes.value()),
    );
    let b = leaf(&bias, sizes.scores());
    let mask = if case.with_bias {
        masking.mask().and(Mask::bias(b.clone()))
    } else {
        masking.mask()
    };
    let weights = attention_weights(q.clone(), k.clone(), &mask, &options);
    assert_close("weights", &values(weights), &expected.weights, bound);
    // Without gradients another kernel makes them.
    let (inner_q, inner_k) = (q.clone().inner(), k.clone().inner());
    let inner_mask = if case.with_bias {
        masking.mask().and(Mask::bias(b.clone().inner()))
    } else {
        masking.mask()
    };
    let weights = attention_weights(inner_q, inner_k, &inner_mask, &options);
    assert_close(
        "weights without gradients",
        &values(weights),
        &expected.weights,
        bound,
    );
    let output = attention(q.clone(), k.clone(), v.clone(), &mask, &options);
    assert_eq!(output.dtype(), dtype);
    assert_close("output", &values(output.clone()), &expected.output, bound);

    if count(sizes.output()) == 0 || sizes.keys == 0 {
        return;
    }
    let gradients = (output * tensor(&upstream, sizes.output(), dtype, &device))
        .sum()
        .backward();
    let gradient = |leaf: &Tensor<4>| values(leaf.grad(&gradients).expect("a gradient"));
    assert_close("d_query", &gradient(&q), &expected.d_query, bound);
    assert_close("d_key", &gradient(&k), &expected.d_key, bound);
    assert_close("d_value", &gradient(&v), &expected.d_value, bound);
    if case.with_bias {
        assert_close("d_bias", &gradient(&b), &expected.d_bias, bound);
    }
}

fn sizes() -> impl Strategy<Value = Sizes> {
    (
        1..=3_usize,
        1..=3_usize,
        1..=2_usize,
        0..=6_usize,
        0..=6_usize,
        1..=5_usize,
        1..=5_usize,
    )
        .prop_map(
            |(batch, kv_heads, group, queries, keys, d_head, d_value)| Sizes {
                batch,
                heads: kv_heads * group,
                kv_heads,
                queries,
                keys,
                d_head,
                d_value,
            },
        )
}

fn masking(sizes: Sizes) -> impl Strategy<Value = Masking> {
    let dims = [any::<bool>(); 4].prop_map(move |full| {
        let mut dims = sizes.scores();
        for (size, full) in dims.iter_mut().zip(full) {
            if !full && *size > 0 {
                *size = 1;
            }
        }
        dims
    });
    let array = dims.prop_flat_map(|dims| {
        (
            Just(dims),
            proptest::collection::vec(any::<bool>(), dims.iter().product::<usize>()),
        )
    });
    prop_oneof![
        Just(Masking::None),
        Just(Masking::Causal),
        (0..=7_usize).prop_map(Masking::Window),
        proptest::collection::vec(0..=7_usize, sizes.batch).prop_map(Masking::Lengths),
        array
            .clone()
            .prop_map(|(dims, keep)| Masking::Keep { dims, keep }),
        array.prop_map(|(dims, keep)| Masking::CausalAndKeep { dims, keep }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    sizes().prop_flat_map(|sizes| {
        let softcap = proptest::option::of(0.5..5.0);
        let scale = proptest::option::of(0.1..2.0);
        (masking(sizes), any::<bool>(), softcap, scale, 0..1000_u64).prop_map(
            move |(masking, with_bias, softcap, scale, salt)| Case {
                sizes,
                masking,
                with_bias,
                softcap,
                scale,
                salt,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f32_equals_the_loop(case in case()) {
        check(&case, DType::F32, 1e-5);
    }

    #[test]
    fn f64_equals_the_loop(case in case()) {
        check(&case, DType::F64, 1e-12);
    }
}

#[test]
fn odd_sizes_equal_the_loop() {
    for (keys, d_head) in [(1, 1), (7, 3), (63, 16), (65, 64), (130, 80), (1000, 3)] {
        let sizes = Sizes {
            batch: 2,
            heads: 4,
            kv_heads: 2,
            queries: keys,
            keys,
            d_head,
            d_value: d_head,
        };
        for masking in [Masking::Causal, Masking::Window(90), Masking::None] {
            for softcap in [None, Some(3.0)] {
                let masking = masking.clone();
                let case = Case {
                    sizes,
                    masking,
                    with_bias: keys < 200,
                    softcap,
                    scale: None,
                    salt: 5,
                };
                check(&case, DType::F32, 1e-5);
            }
        }
    }
}

/// Half precision carries 11 or 8 bits: inputs and output are rounded to them, what lies between is
/// f32.
#[test]
fn half_precision_loses_only_the_rounding_of_its_inputs_and_output() {
    let sizes = Sizes {
        batch: 2,
        heads: 2,
        kv_heads: 1,
        queries: 5,
        keys: 5,
        d_head: 8,
        d_value: 8,
    };
    for (dtype, epsilon) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
        let rounded = |dims: [usize; 4], salt| {
            values(tensor(
                &numbers(dims.iter().product(), salt),
                dims,
                dtype,
                &Device::flex(),
            ))
        };
        let (query, key, value) = (
            rounded(sizes.query(), 1),
            rounded(sizes.key(), 2),
            rounded(sizes.value(), 3),
        );
        let upstream = vec![0.0; sizes.output().iter().product()];
        let expected = naive(&NaiveInput {
            sizes,
            query: &query,
            key: &key,
            value: &value,
            upstream: &upstream,
            bias: None,
            allowed: &|_, _, q, k| k <= q,
            scale: 1.0 / 8f64.sqrt(),
            softcap: None,
        });
        let device = Device::flex();
        let half = |values: &[f64], dims| tensor(values, dims, dtype, &device);
        let (q, k, v) = (
            half(&query, sizes.query()),
            half(&key, sizes.key()),
            half(&value, sizes.value()),
        );
        let weights = attention_weights(
            q.clone(),
            k.clone(),
            &Mask::causal(),
            &AttentionOptions::default(),
        );
        assert_eq!(weights.dtype(), DType::F32);
        assert_close("weights", &values(weights), &expected.weights, 1e-6);
        let output = attention(q, k, v, &Mask::causal(), &AttentionOptions::default());
        assert_eq!(output.dtype(), dtype);
        assert_close("output", &values(output), &expected.output, epsilon);
    }
}

#[test]
fn a_changed_token_changes_no_bit_before_it() {
    let device = Device::flex();
    let (length, at) = (9, 5);
    let dims = [2, 3, length, 4];
    let x = common::random(dims, 7, &device);
    let changed = x.clone().slice_assign(
        [0..2, 0..3, at..at + 1, 0..4],
        common::random([2, 3, 1, 4], 8, &device),
    );
    for mask in [Mask::causal(), Mask::window(4)] {
        let run = |x: &Tensor<4>| {
            attention(
                x.clone(),
                x.clone(),
                x.clone(),
                &mask,
                &AttentionOptions::default(),
            )
        };
        let part = |x: &Tensor<4>, from, count| values(run(x).narrow(2, from, count));
        assert_eq!(part(&x, 0, at), part(&changed, 0, at));
        assert_ne!(part(&x, at, 1), part(&changed, at, 1));
    }
}

#[test]
fn nan_that_is_seen_shows_and_nan_that_is_not_does_not() {
    let device = Device::flex().autodiff();
    let column = |numbers: &[f64]| {
        tensor(numbers, [1, 1, numbers.len(), 1], DType::F32, &device).require_grad()
    };
    let nan = f64::NAN;
    let options = AttentionOptions::default();
    for (query, key, mask, is_nan) in [
        ([nan, 1.0], [1.0, 1.0], Mask::none(), [true, false]),
        ([1.0, 1.0], [nan, 1.0], Mask::causal(), [true, true]),
        ([1.0, 1.0], [nan, 1.0], Mask::lengths(&[1]), [true, true]),
        ([1.0, 1.0], [1.0, nan], Mask::lengths(&[1]), [false, false]),
    ] {
        let (q, k, v) = (column(&query), column(&key), column(&[1.0, 3.0]));
        let output = attention(q.clone(), k.clone(), v, &mask, &options);
        let found: Vec<bool> = values(output.clone()).iter().map(|z| z.is_nan()).collect();
        assert_eq!(found, is_nan, "{query:?} {key:?} {mask}");
        for (q, k) in [(q.clone(), k.clone()), (q.clone().inner(), k.inner())] {
            let weights = values(attention_weights(q, k, &mask, &options));
            assert_eq!(
                [weights[0].is_nan(), weights[2].is_nan()],
                is_nan,
                "{query:?} {key:?} {mask}"
            );
        }
        let gradient = values(q.grad(&output.sum().backward()).unwrap());
        assert_eq!(
            gradient.iter().map(|d| d.is_nan()).collect::<Vec<_>>(),
            is_nan,
            "{query:?} {key:?} {mask}"
        );
    }
}

#[test]
fn queries_in_any_order_see_what_their_positions_say() {
    // The second query sees further back than the first, up to the same end: f32 by the kernel, f64
    // composed.
    let positions = Positions::new(vec![vec![12, 9, 11]], vec![(0..14).map(Some).collect()]);
    let mask = Mask::window(5).and(Mask::lengths(&[10])).at(positions);
    let run = |dtype| {
        let draw = |rows: usize, salt| {
            tensor(
                &numbers(rows * 2, salt),
                [1, 1, rows, 2],
                dtype,
                &Device::flex(),
            )
        };
        values(attention(
            draw(3, 1),
            draw(14, 2),
            draw(14, 3),
            &mask,
            &AttentionOptions::default(),
        ))
    };
    assert_close("kernel", &run(DType::F32), &run(DType::F64), 1e-5);
}

#[test]
fn padding_a_batch_changes_no_row() {
    let device = Device::flex();
    let x = common::random([1, 2, 4, 3], 1, &device);
    let padded = Tensor::cat(
        vec![x.clone(), Tensor::full([1, 2, 3, 3], f32::NAN, &device)],
        2,
    );
    let alone = attention(
        x.clone(),
        x.clone(),
        x,
        &Mask::lengths(&[4]),
        &AttentionOptions::default(),
    );
    let query = padded.clone().narrow(2, 0, 4);
    let together = attention(
        query,
        padded.clone(),
        padded,
        &Mask::lengths(&[4]),
        &AttentionOptions::default(),
    );
    assert_close("padded", &values(together), &values(alone), 1e-6);
}

/// f32 on Flex runs the kernel, f64 the composed equation: beyond one tile, with a softcap, a
/// broadcast bias and dropout.
#[test]
fn the_kernel_agrees_with_the_composed_equation() {
    common::for_large_and_small_cases(|case, run| {
        let kernel = run(&Device::flex(), DType::F32);
        let composed = run(&Device::flex(), DType::F64);
        assert_close(case, &kernel, &composed, 1e-5);
    });
}

/// On Burn's earlier backend every operation is composed.
#[test]
#[cfg(feature = "ndarray")]
#[expect(
    deprecated,
    reason = "Burn's earlier backend is compared for as long as it ships"
)]
fn flex_and_ndarray_agree() {
    common::for_large_and_small_cases(|case, run| {
        let flex = run(&Device::flex(), DType::F32);
        let ndarray = run(&Device::ndarray(), DType::F32);
        assert_close(case, &flex, &ndarray, 1e-5);
    });
}
