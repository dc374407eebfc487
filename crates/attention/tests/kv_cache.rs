//! Any split of a sequence into chunks gives the numbers of one pass.

mod common;

use burn::tensor::{Device, Tensor};
use common::{assert_close, random, values};
use headlight_attention::{
    KvCache, Mask, MultiHeadAttention, MultiHeadAttentionConfig, PositionConfig, QkNorm,
    RotaryLayout, RotaryScaling,
};
use proptest::prelude::*;

const D_MODEL: usize = 12;

fn module(position: PositionConfig) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(D_MODEL, 6)
        .with_n_kv_heads(2)
        .with_d_head(4)
        .with_d_value(3);
    let config = config
        .with_bias(true)
        .with_qk_norm(QkNorm::EachHead)
        .with_position(position);
    let mut module = config.try_init(&Device::flex()).unwrap();
    if let Some(headlight_attention::PositionScheme::Relative(relative)) = &mut module.position {
        let dims = relative.table.dims();
        relative.table = burn::module::Param::from_tensor(random(dims, 99, &Device::flex()));
    }
    module
}

fn schemes() -> [PositionConfig; 5] {
    [
        PositionConfig::None,
        PositionConfig::rotary(),
        PositionConfig::Rotary {
            layout: RotaryLayout::Interleaved,
            base: 100.0,
            rotated: Some(2),
            scaling: RotaryScaling::Linear { factor: 3.0 },
        },
        PositionConfig::Alibi,
        PositionConfig::RelativeBias { max_distance: 4 },
    ]
}

fn in_chunks(
    module: &MultiHeadAttention,
    x: &Tensor<3>,
    mask: &Mask,
    cache: &mut KvCache,
    chunks: &[usize],
) -> Vec<f64> {
    let mut from = 0;
    let outputs = chunks
        .iter()
        .map(|&count| {
            from += count;
            module.forward_cached(x.clone().narrow(1, from - count, count), mask, cache)
        })
        .collect();
    values(Tensor::cat(outputs, 1))
}

/// Splits `length` where the bits of `cuts` say so.
fn chunks(length: usize, cuts: u64) -> Vec<usize> {
    let mut chunks = vec![0];
    for token in 0..length {
        if token > 0 && cuts >> (token % 64) & 1 == 1 {
            chunks.push(0);
        }
        *chunks.last_mut().unwrap() += 1;
    }
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_full_cache_in_any_chunks_equals_one_pass(length in 1..14_usize, cuts in any::<u64>(), batch in 1..3_usize, spare in 0..3_usize) {
        for position in schemes() {
            let module = module(position);
            let x = random([batch, length, D_MODEL], cuts, &Device::flex());
            for mask in [Mask::causal(), Mask::window(3)] {
                let whole = values(module.forward(x.clone(), &mask));
                let mut cache = KvCache::with_capacity(length + spare);
                let chunked = in_chunks(&module, &x, &mask, &mut cache, &chunks(length, cuts));
                assert_close("chunked", &chunked, &whole, 1e-5);
                prop_assert_eq!(cache.lengths(), vec![length; batch]);
            }
        }
    }

    #[test]
    fn a_rolling_cache_in_any_chunks_equals_one_windowed_pass(length in 1..40_usize, cuts in any::<u64>(), window in 1..6_usize) {
        for position in schemes() {
            let module = module(position);
            let x = random([2, length, D_MODEL], cuts, &Device::flex());
            let whole = values(module.forward(x.clone(), &Mask::window(window)));
            let mut cache = KvCache::rolling(window);
            let chunked = in_chunks(&module, &x, &Mask::causal(), &mut cache, &chunks(length, cuts));
            assert_close("chunked", &chunked, &whole, 1e-5);
            prop_assert_eq!(cache.slots(), 2 * window);
        }
    }
}

/// `count` tokens of one row, perhaps none.
fn some_tokens(x: &Tensor<3>, row: usize, from: usize, count: usize) -> Tensor<3> {
    let [_, _, width] = x.dims();
    x.clone()
        .slice([row..row + 1, from..from + count, 0..width])
}

/// Feeds rows of different length in rounds: in each, row `b` gets the next `rounds[round][b]` of
/// its own tokens and padding that is anything but 0. Gives back each row's outputs.
fn in_rounds(
    module: &MultiHeadAttention,
    x: &Tensor<3>,
    cache: &mut KvCache,
    rounds: &[Vec<usize>],
) -> Vec<Vec<f64>> {
    let [batch, _, width] = x.dims();
    let mut outputs = vec![Vec::new(); batch];
    let mut done = vec![0; batch];
    for counts in rounds {
        let longest = *counts.iter().max().unwrap();
        let rows = (0..batch).map(|row| {
            let own = some_tokens(x, row, done[row], counts[row]);
            let padding = Tensor::full([1, longest - counts[row], width], 9.0, &x.device());
            Tensor::cat(vec![own, padding], 1)
        });
        let rows = Tensor::cat(rows.collect(), 0);
        let y = module.forward_cached_rows(rows, counts, &Mask::causal(), cache);
        for row in 0..batch {
            outputs[row].extend(values(some_tokens(&y, row, 0, counts[row])));
            done[row] += counts[row];
        }
        assert_eq!(cache.lengths(), done);
    }
    outputs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_that_get_different_numbers_of_tokens_each_get_what_they_get_alone(
        rounds in prop::collection::vec(prop::collection::vec(0..5_usize, 3), 1..6),
        window in 1..5_usize,
        salt in any::<u64>(),
    ) {
        let lengths: Vec<usize> = (0..3).map(|row| rounds.iter().map(|counts| counts[row]).sum()).collect();
        let longest = *lengths.iter().max().unwrap();
        let x = random([3, longest, D_MODEL], salt, &Device::flex());
        for position in schemes() {
            let module = module(position);
            for (mut cache, mask) in [
                (KvCache::with_capacity(longest), Mask::causal()),
                (KvCache::rolling(window), Mask::window(window)),
            ] {
                let found = in_rounds(&module, &x, &mut cache, &rounds);
                for (row, &length) in lengths.iter().enumerate() {
                    let alone = some_tokens(&x, row, 0, length);
                    let expected = values(module.forward(alone, &mask));
                    assert_close("ragged", &found[row], &expected, 1e-5);
                }
            }
        }
    }
}

#[test]
fn rows_that_are_kept_go_on_and_the_others_are_gone() {
    for position in schemes() {
        let module = module(position);
        let x = random([3, 6, D_MODEL], 4, &Device::flex());
        for mut cache in [KvCache::with_capacity(6), KvCache::rolling(20)] {
            let counts = [2, 5, 3];
            let first = x.clone().narrow(1, 0, 5);
            let _ = module.forward_cached_rows(first, &counts, &Mask::causal(), &mut cache);
            cache.keep_rows(&[2, 0]);
            assert_eq!(cache.lengths(), [3, 2]);
            let next = |row: usize| x.clone().narrow(0, row, 1).narrow(1, counts[row], 1);
            let y = Tensor::cat(vec![next(2), next(0)], 0);
            let y = module.forward_cached(y, &Mask::causal(), &mut cache);
            for (at, row) in [(0, 2), (1, 0)] {
                let alone = x.clone().narrow(0, row, 1).narrow(1, 0, counts[row] + 1);
                let alone = module.forward(alone, &Mask::causal());
                let expected = values(alone.narrow(1, counts[row], 1));
                assert_close("kept", &values(y.clone().narrow(0, at, 1)), &expected, 1e-5);
            }
        }
    }
}

#[test]
fn rows_of_different_lengths_go_on_where_each_ended() {
    let lengths = [2, 5, 3];
    for position in schemes() {
        let module = module(position);
        let x = random([3, 9, D_MODEL], 4, &Device::flex());
        let row = |row: usize, from: usize, count: usize| {
            x.clone().narrow(0, row, 1).narrow(1, from, count)
        };
        for mut cache in [KvCache::with_capacity(9), KvCache::rolling(20)] {
            // A padded prompt; what stands after a row's length must not matter.
            let _ = module.forward_cached(x.clone().narrow(1, 0, 5), &Mask::causal(), &mut cache);
            cache.truncate(&lengths);
            assert_eq!(cache.lengths(), lengths);
            // Then two tokens more for each row, from where it ended.
            let next = |step: usize| {
                Tensor::cat((0..3).map(|r| row(r, lengths[r] + step, 1)).collect(), 0)
            };
            let first = module.forward_cached(next(0), &Mask::causal(), &mut cache);
            let second = module.forward_cached(next(1), &Mask::causal(), &mut cache);
            for r in 0..3 {
                let alone = module.forward(row(r, 0, lengths[r] + 2), &Mask::causal());
                let expected = |step: usize| values(alone.clone().narrow(1, lengths[r] + step, 1));
                assert_close(
                    "first",
                    &values(first.clone().narrow(0, r, 1)),
                    &expected(0),
                    1e-5,
                );
                assert_close(
                    "second",
                    &values(second.clone().narrow(0, r, 1)),
                    &expected(1),
                    1e-5,
                );
            }
        }
    }
}

#[test]
fn what_was_truncated_may_have_been_nan() {
    let module = module(PositionConfig::None);
    let x = random([2, 4, D_MODEL], 4, &Device::flex());
    let poisoned = x.clone().slice_assign(
        [0..1, 2..4, 0..D_MODEL],
        Tensor::full([1, 2, D_MODEL], f32::NAN, &Device::flex()),
    );
    let run = |prompt: Tensor<3>| {
        let mut cache = KvCache::with_capacity(6);
        let _ = module.forward_cached(prompt, &Mask::causal(), &mut cache);
        cache.truncate(&[2, 4]);
        values(module.forward_cached(x.clone().narrow(1, 0, 1), &Mask::causal(), &mut cache))
    };
    assert_eq!(run(poisoned), run(x.clone()));
}

#[test]
fn nothing_in_gives_nothing_out() {
    let module = module(PositionConfig::rotary());
    let mut cache = KvCache::with_capacity(3);
    let nothing = Tensor::<3>::zeros([2, 0, D_MODEL], &Device::flex());
    assert_eq!(
        module
            .forward_cached(nothing.clone(), &Mask::causal(), &mut cache)
            .dims(),
        [2, 0, D_MODEL]
    );
    assert_eq!(
        module.forward(nothing, &Mask::causal()).dims(),
        [2, 0, D_MODEL]
    );
    assert_eq!(cache.lengths(), [0, 0]);
}

/// W_Q = 0 and W_V = W_O = 1: the output is the mean of the inputs that a token may attend to.
fn mean_of_the_seen() -> MultiHeadAttention {
    let device = Device::flex();
    let mut module = MultiHeadAttentionConfig::new(1, 1)
        .try_init(&device)
        .unwrap();
    let weight =
        |value: f32| burn::module::Param::from_tensor(Tensor::<2>::full([1, 1], value, &device));
    module.w_q.weight = weight(0.0);
    (module.w_k.weight, module.w_v.weight, module.w_o.weight) =
        (weight(1.0), weight(1.0), weight(1.0));
    module
}

fn feed(cache: &mut KvCache, tokens: &[f32]) -> Vec<f64> {
    let x = Tensor::<1>::from_floats(tokens, &Device::flex()).reshape([1, tokens.len(), 1]);
    values(mean_of_the_seen().forward_cached(x, &Mask::causal(), cache))
}

#[test]
fn case_05_empty_slots_are_not_seen() {
    // flax 5591, x-transformers 187
    let mut cache = KvCache::with_capacity(4);
    assert_eq!(feed(&mut cache, &[1.0]), [1.0]);
    assert_eq!(feed(&mut cache, &[3.0]), [2.0]);
}

#[test]
fn case_06_prefill_is_causal_and_history_is_kept() {
    // TinyLLM 18, executorch 21749
    let mut cache = KvCache::with_capacity(4);
    assert_eq!(feed(&mut cache, &[1.0, 3.0]), [1.0, 2.0]);
    assert_eq!(feed(&mut cache, &[5.0, 7.0]), [3.0, 4.0]);
}

#[test]
#[should_panic(expected = "a cache of capacity 2 has 1 tokens and got 2 more")]
fn a_full_cache_says_so() {
    let mut cache = KvCache::with_capacity(2);
    let _ = feed(&mut cache, &[1.0]);
    let _ = feed(&mut cache, &[1.0, 1.0]);
}

#[test]
#[should_panic(expected = "a rolling cache takes masks about positions only")]
fn a_rolling_cache_takes_no_written_out_mask() {
    let x = random([1, 2, D_MODEL], 1, &Device::flex());
    let keep = Tensor::<2, burn::tensor::Bool>::from_bool([[true, true]], &Device::flex());
    let _ = module(PositionConfig::None).forward_cached(
        x,
        &Mask::key_padding(keep),
        &mut KvCache::rolling(2),
    );
}

#[test]
fn a_rolling_buffer_does_not_grow() {
    // A chunk as long as the sequence passes through the same slots as single tokens.
    let module = module(PositionConfig::None);
    let x = random([1, 64, D_MODEL], 5, &Device::flex());
    let mut cache = KvCache::rolling(4);
    let whole = values(module.forward_cached(x.clone(), &Mask::causal(), &mut cache));
    assert_eq!((cache.slots(), cache.lengths()), (8, &[64][..]));
    assert_close(
        "prefill",
        &whole,
        &values(module.forward(x, &Mask::window(4))),
        1e-5,
    );
}
