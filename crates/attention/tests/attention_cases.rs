//! Public attention bugs as small tests: what `PyTorch`, Burn, JAX, Keras, candle and others once
//! got wrong, cut down to the smallest input that shows it. Each test names the reports it comes
//! from.

use burn::tensor::{Bool, Device, FloatDType, Tensor};
use headlight_attention::{
    AttentionOptions, Mask, MultiHeadAttentionConfig, attention, attention_weights,
};

fn device() -> Device {
    Device::flex()
}

/// `[1, 1, n, 1]`
fn column(values: &[f32], device: &Device) -> Tensor<4> {
    Tensor::<1>::from_floats(values, device).reshape([1, 1, values.len(), 1])
}

fn keep(flags: &[bool]) -> Mask {
    Mask::key_padding(Tensor::<1, Bool>::from_bool(flags, &device()).reshape([1, flags.len()]))
}

fn keep_pairs<const K: usize>(rows: &[[bool; K]]) -> Mask {
    let flags: Vec<bool> = rows.concat();
    Mask::allowed(
        Tensor::<1, Bool>::from_bool(flags.as_slice(), &device()).reshape([rows.len(), K]),
    )
}

fn unscaled() -> AttentionOptions {
    AttentionOptions::default().with_scale(1.0)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// One head, `d_head` 1, scale 1.
fn attend(q: &[f32], k: &[f32], v: &[f32], mask: &Mask) -> Vec<f32> {
    let device = device();
    values(attention(
        column(q, &device),
        column(k, &device),
        column(v, &device),
        mask,
        &unscaled(),
    ))
}

fn weigh(q: &[f32], k: &[f32], mask: &Mask) -> Vec<f32> {
    let device = device();
    values(attention_weights(
        column(q, &device),
        column(k, &device),
        mask,
        &unscaled(),
    ))
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= 1e-5 * b.abs().max(1.0),
            "{found:?} is not {expected:?}"
        );
    }
}

#[test]
fn case_01_a_query_that_may_attend_to_nothing_gives_zero() {
    // pytorch 41508, burn 4697, mlx 2608, rten 1321
    let mask = keep(&[false, false]);
    assert_eq!(attend(&[0.0], &[0.0, 0.0], &[1.0, 3.0], &mask), [0.0]);
    assert_eq!(weigh(&[0.0], &[0.0, 0.0], &mask), [0.0, 0.0]);
}

#[test]
fn case_02_gradients_beside_an_empty_row_are_finite_and_right() {
    // pytorch 42323
    let device = device().autodiff();
    let q = column(&[0.0, 0.0], &device).require_grad();
    let k = column(&[0.0, 1.0], &device).require_grad();
    let v = column(&[1.0, 3.0], &device).require_grad();
    let mask = keep_pairs(&[[false, false], [true, true]]);
    let output = attention(q.clone(), k.clone(), v.clone(), &mask, &unscaled());
    let gradients = output.slice([0..1, 0..1, 1..2, 0..1]).sum().backward();
    assert_close(&values(v.grad(&gradients).unwrap()), &[0.5, 0.5]);
    assert_close(&values(q.grad(&gradients).unwrap()), &[0.0, 0.5]);
    assert_close(&values(k.grad(&gradients).unwrap()), &[0.0, 0.0]);
}

#[test]
fn case_03_true_means_may_attend() {
    // LLMs-from-scratch 1061, TransformerEngine 614, x-transformers 164
    assert_eq!(
        attend(
            &[0.0],
            &[0.0; 3],
            &[1.0, 2.0, 4.0],
            &keep(&[true, false, false])
        ),
        [1.0]
    );
}

#[test]
fn case_04_the_last_query_of_a_causal_mask_sees_every_key() {
    // pytorch 108108, 144858; flash-attention 282
    assert_close(
        &attend(&[0.0], &[0.0; 3], &[1.0, 2.0, 6.0], &Mask::causal()),
        &[3.0],
    );
}

#[test]
fn case_07_asking_for_weights_does_not_lose_the_causal_mask() {
    // keras 23038
    let mask = Mask::causal();
    assert_eq!(weigh(&[0.0, 0.0], &[0.0, 0.0], &mask), [1.0, 0.0, 0.5, 0.5]);
    let first_row = |v1: f32| attend(&[0.0, 0.0], &[0.0, 0.0], &[1.0, v1], &mask)[0];
    assert_eq!(first_row(3.0), 1.0);
    assert_eq!(first_row(-1e30), 1.0);
}

#[test]
fn case_08_two_masks_hold_together() {
    // keras 23040, minimind 497
    let mask = Mask::causal().and(keep_pairs(&[[true, true], [false, true]]));
    assert_eq!(
        attend(&[0.0, 0.0], &[0.0, 0.0], &[1.0, 3.0], &mask),
        [1.0, 3.0]
    );
}

#[test]
fn case_09_a_window_needs_no_other_mask() {
    // jax 32300
    assert_eq!(
        attend(&[0.0; 3], &[0.0; 3], &[1.0, 2.0, 4.0], &Mask::window(1)),
        [1.0, 2.0, 4.0]
    );
}

#[test]
fn case_10_a_length_hides_the_padding() {
    // jax 23349
    assert_eq!(
        attend(&[0.0], &[0.0, 0.0], &[1.0, 100.0], &Mask::lengths(&[1])),
        [1.0]
    );
}

#[test]
fn case_11_query_heads_of_a_group_lie_next_to_each_other() {
    // onnx 7274
    let device = device();
    let q = Tensor::<4>::zeros([1, 4, 1, 1], &device);
    let k = Tensor::<4>::zeros([1, 2, 1, 1], &device);
    let v = Tensor::<1>::from_floats([1.0, 2.0], &device).reshape([1, 2, 1, 1]);
    assert_eq!(
        values(attention(q, k, v, &Mask::none(), &unscaled())),
        [1.0, 1.0, 2.0, 2.0]
    );
}

#[test]
fn case_12_a_mask_of_one_row_and_head_holds_for_all() {
    // burn 4778, 4772
    let device = device();
    let q = Tensor::<1>::from_floats(
        (0..12)
            .map(|i| i as f32 / 7.0)
            .collect::<Vec<_>>()
            .as_slice(),
        &device,
    )
    .reshape([2, 3, 2, 1]);
    let small = Tensor::<1, Bool>::from_bool([true, false, true, true].as_slice(), &device)
        .reshape([1, 1, 2, 2]);
    let large = small.clone().expand([2, 3, 2, 2]);
    let run = |mask: Mask| {
        values(attention(
            q.clone(),
            q.clone(),
            q.clone(),
            &mask,
            &unscaled(),
        ))
    };
    assert_eq!(run(Mask::allowed(small)), run(Mask::allowed(large)));
}

#[test]
fn case_13_equal_sequences_in_a_batch_give_equal_outputs() {
    // candle 3582, 3879
    let device = device();
    let one = Tensor::<1>::from_floats([0.3, -1.0, 2.0, 0.5, 1.5, -0.7].as_slice(), &device)
        .reshape([1, 1, 3, 2]);
    let two = one.clone().repeat_dim(0, 2);
    let output = values(attention(
        two.clone(),
        two.clone(),
        two,
        &Mask::causal(),
        &unscaled(),
    ));
    assert_eq!(output[..6], output[6..]);
}

#[test]
fn case_14_no_score_is_low_enough_to_lose_to_a_masked_one() {
    // llm.c, burn-nn (finite fill −1e4)
    assert_eq!(
        attend(&[200.0], &[-200.0, 0.0], &[1.0, 3.0], &keep(&[true, false])),
        [1.0]
    );
}

#[test]
fn case_15_a_mask_is_never_added() {
    // pytorch 103963, NeMo 40: a 0/1 float taken for a mask. Here only Bool tensors make a mask.
    assert_eq!(
        attend(&[0.0], &[0.0, 0.0], &[1.0, 3.0], &keep(&[true, false])),
        [1.0]
    );
}

#[test]
fn case_16_half_precision_does_not_overflow() {
    // pytorch 60939
    let device = device();
    let half = |values: &[f32]| column(values, &device).cast(FloatDType::F16);
    let output = attention(
        half(&[300.0]),
        half(&[300.0, -300.0]),
        half(&[1.0, 3.0]),
        &Mask::none(),
        &unscaled(),
    );
    assert_eq!(output.dtype(), burn::tensor::DType::F16);
    assert_eq!(values(output), [1.0]);
}

#[test]
fn case_17_a_mask_that_allows_all_changes_nothing() {
    // onnx 8068, memory-compressed-attention 2
    assert_eq!(
        attend(&[0.0], &[0.0, 0.0], &[1.0, 3.0], &keep(&[true, true])),
        [2.0]
    );
}

#[test]
fn case_21_the_scale_is_the_width_of_a_head() {
    // ng-video-lecture 6, ViT 1: d_model 4 in 4 heads, projected q = 1, k = [1, 0], v = [1, 0]
    let device = device();
    let repeat = |values: &[f32]| column(values, &device).repeat_dim(1, 4);
    let q = repeat(&[1.0]);
    let (k, v) = (repeat(&[1.0, 0.0]), repeat(&[1.0, 0.0]));
    let output = attention(q, k, v, &Mask::none(), &AttentionOptions::default());
    assert_close(&values(output), &[0.731_06; 4]);
}

#[test]
fn case_22_widths_that_do_not_divide_are_refused() {
    // burn-nn, Equinox
    let message = |d_model, n_heads| {
        MultiHeadAttentionConfig::new(d_model, n_heads)
            .try_init(&device())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(message(5, 2), "d_model 5 is not divisible by n_heads 2");
    assert_eq!(message(2, 4), "d_model 2 is not divisible by n_heads 4");
}

#[test]
fn case_23_a_masked_head_is_the_same_with_and_without_weights() {
    // pytorch 160064
    let device = device();
    let module = MultiHeadAttentionConfig::new(4, 2)
        .try_init(&device)
        .unwrap();
    let x = Tensor::<3>::ones([1, 2, 4], &device);
    let mut flags = [true; 8];
    flags[..4].fill(false); // head 0 may attend to nothing
    let mask = Mask::allowed(
        Tensor::<1, Bool>::from_bool(flags.as_slice(), &device).reshape([1, 2, 2, 2]),
    );
    let plain = values(module.forward(x.clone(), &mask));
    let (with_weights, weights) = module.forward_with_weights(x, &mask);
    assert!(plain.iter().all(|value| value.is_finite()));
    assert_eq!(plain, values(with_weights));
    assert_eq!(values(weights)[..4], [0.0; 4]);
}

#[test]
fn case_24_the_diagonal_is_open() {
    // nanogpt-burn
    assert_eq!(
        weigh(&[0.0, 0.0], &[0.0, 0.0], &Mask::causal()),
        [1.0, 0.0, 0.5, 0.5]
    );
    assert_eq!(
        attend(&[0.0, 0.0], &[0.0, 0.0], &[1.0, 3.0], &Mask::causal()),
        [1.0, 2.0]
    );
}

#[test]
fn case_25_large_scores_do_not_let_the_future_through() {
    // TransformerLens 318, 366
    for sign in [1.0, -1.0] {
        let weights = weigh(
            &[1e3, 1e3, 1e3],
            &[0.0, -sign * 1e3, sign * 1e3],
            &Mask::causal(),
        );
        assert_eq!([weights[1], weights[2], weights[5]], [0.0; 3]);
        assert!(weights.iter().all(|weight| weight.is_finite()));
    }
}

#[test]
fn case_26_grouped_queries_equal_a_naive_loop_over_different_heads() {
    // TransformerLens 519
    let device = device();
    let (heads, kv_heads, queries, keys, width) = (6, 3, 2, 4, 3);
    let ramp = |n: usize, step: f32| {
        (0..n)
            .map(|i| (i as f32 * step).sin())
            .collect::<Vec<f32>>()
    };
    let (q, k, v) = (
        ramp(heads * queries * width, 0.7),
        ramp(kv_heads * keys * width, 1.3),
        ramp(kv_heads * keys * width, 2.1),
    );
    let tensor =
        |data: &[f32], dims: [usize; 4]| Tensor::<1>::from_floats(data, &device).reshape(dims);
    let output = attention(
        tensor(&q, [1, heads, queries, width]),
        tensor(&k, [1, kv_heads, keys, width]),
        tensor(&v, [1, kv_heads, keys, width]),
        &Mask::none(),
        &unscaled(),
    );
    let mut expected = Vec::new();
    for head in 0..heads {
        let kv = head / (heads / kv_heads);
        for row in 0..queries {
            let score = |key: usize| -> f32 {
                (0..width)
                    .map(|i| {
                        q[(head * queries + row) * width + i] * k[(kv * keys + key) * width + i]
                    })
                    .sum()
            };
            let exponentials: Vec<f32> = (0..keys).map(|key| score(key).exp()).collect();
            let sum: f32 = exponentials.iter().sum();
            for i in 0..width {
                let blend: f32 = (0..keys)
                    .map(|key| exponentials[key] / sum * v[(kv * keys + key) * width + i])
                    .sum();
                expected.push(blend);
            }
        }
    }
    assert_close(&values(output), &expected);
}

#[test]
fn case_29_rows_sum_to_one_when_the_batch_is_not_square() {
    // llms-from-scratch-rs 30
    let device = device();
    let q = Tensor::<1>::from_floats(
        (0..30)
            .map(|i| (i as f32).cos())
            .collect::<Vec<_>>()
            .as_slice(),
        &device,
    )
    .reshape([3, 1, 5, 2]);
    let k = Tensor::<1>::from_floats(
        (0..42)
            .map(|i| (i as f32).sin())
            .collect::<Vec<_>>()
            .as_slice(),
        &device,
    )
    .reshape([3, 1, 7, 2]);
    let weights = attention_weights(q, k, &Mask::none(), &unscaled());
    assert_eq!(weights.dims(), [3, 1, 5, 7]);
    assert_close(&values(weights.sum_dim(3)), &[1.0; 15]);
}

#[test]
fn literal_values_of_two_heads_with_the_weights_counted_up() {
    // Two heads, width 4, no bias, every weight matrix arange(16), one token [1, 2, 3, 4]: the only
    // key has weight 1, so the output is x·W_V·W_O.
    let device = device();
    let mut module = MultiHeadAttentionConfig::new(4, 2)
        .try_init(&device)
        .unwrap();
    let counted = Tensor::<1>::from_floats(
        (0..16).map(|i| i as f32).collect::<Vec<_>>().as_slice(),
        &device,
    );
    for projection in [
        &mut module.w_q,
        &mut module.w_k,
        &mut module.w_v,
        &mut module.w_o,
    ] {
        projection.weight = burn::module::Param::from_tensor(counted.clone().reshape([4, 4]));
    }
    let x = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0, 4.0]]], &device);
    assert_eq!(
        values(module.forward(x, &Mask::causal())),
        [2480.0, 2860.0, 3240.0, 3620.0]
    );
}

#[test]
fn a_key_that_no_query_may_attend_to_may_hold_anything() {
    let device = device().autodiff();
    let q = column(&[0.5], &device).require_grad();
    let k = column(&[1.0, f32::NAN], &device).require_grad();
    let v = column(&[3.0, f32::NAN], &device).require_grad();
    let output = attention(
        q.clone(),
        k.clone(),
        v.clone(),
        &Mask::lengths(&[1]),
        &unscaled(),
    );
    assert_eq!(values(output.clone()), [3.0]);
    let gradients = output.sum().backward();
    assert_eq!(values(q.grad(&gradients).unwrap()), [0.0]);
    assert_eq!(values(k.grad(&gradients).unwrap()), [0.0, 0.0]);
    assert_eq!(values(v.grad(&gradients).unwrap()), [1.0, 0.0]);
}
