//! Detectors against a two-layer model whose weights are written down, so that every head's score is known.
//!
//! The residual stream has three parts, `[token | position | previous token]`, all one-hot.
//!
//! | head | queries read | keys read | so it attends to |
//! |---|---|---|---|
//! | L0H0 | position | position, shifted by one | the previous token, and copies it into the third part |
//! | L0H1 | nothing | nothing | every key equally |
//! | L1H0 | token | previous token | the token after the same token: induction |
//! | L1H1 | token | token | every equal token, itself included |

use burn::{
    module::Param,
    tensor::{Device, Int, Tensor},
};
use headlight_attention::AttentionOptions;
use headlight_lens::{LayerPattern, Measure, Role, score_layer};
use headlight_residual::{Capture, Decoder, DecoderConfig};
use headlight_run::Scores;

const VOCABULARY: usize = 12;
const LENGTH: usize = 9;
const D_HEAD: usize = 12;
const D_MODEL: usize = VOCABULARY + LENGTH + VOCABULARY;
const TOKEN: usize = 0;
const POSITION: usize = VOCABULARY;
const PREVIOUS: usize = VOCABULARY + LENGTH;
/// Makes every score difference at least 104, where exp(−difference) is 0 in f32; no larger, since it also scales
/// the rounding of equal scores.
const SHARP: f32 = 20.0;

/// `[rows, columns]` with `value` at the listed cells and 0 elsewhere.
fn matrix(rows: usize, columns: usize, cells: impl Iterator<Item = (usize, usize)>, value: f32) -> Param<Tensor<2>> {
    let mut data = vec![0.0; rows * columns];
    for (row, column) in cells {
        data[row * columns + column] = value;
    }
    Param::from_tensor(Tensor::<1>::from_floats(data.as_slice(), &Device::flex()).reshape([rows, columns]))
}

/// Cells that carry `count` dimensions of the stream from `from` on into head `head`, `shift` further on.
fn into_head(from: usize, count: usize, head: usize, shift: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).filter(move |i| i + shift < D_HEAD).map(move |i| (from + i, head * D_HEAD + i + shift))
}

fn hand_built() -> Decoder {
    let config = DecoderConfig {
        vocabulary: VOCABULARY,
        n_ctx: LENGTH,
        d_model: D_MODEL,
        n_layers: 2,
        n_heads: 2,
        d_head: Some(D_HEAD),
        attention: AttentionOptions::default().with_scale(1.0),
        ..DecoderConfig::default()
    };
    let mut model = config.try_init(0, &Device::flex()).unwrap();
    let wide = 2 * D_HEAD;
    let zero = || matrix(D_MODEL, wide, std::iter::empty(), 0.0);

    model.w_e = matrix(VOCABULARY, D_MODEL, (0..VOCABULARY).map(|i| (i, TOKEN + i)), 1.0);
    model.w_pos = Some(matrix(LENGTH, D_MODEL, (0..LENGTH).map(|i| (i, POSITION + i)), 1.0));

    let [layer_0, layer_1] = &mut model.blocks[..] else { unreachable!() };
    layer_0.attn.w_q.weight = matrix(D_MODEL, wide, into_head(POSITION, LENGTH, 0, 0), SHARP);
    layer_0.attn.w_k.weight = matrix(D_MODEL, wide, into_head(POSITION, LENGTH, 0, 1), 1.0);
    layer_0.attn.w_v.weight = matrix(D_MODEL, wide, into_head(TOKEN, VOCABULARY, 0, 0), 1.0);
    layer_0.attn.w_o.weight = matrix(wide, D_MODEL, (0..VOCABULARY).map(|i| (i, PREVIOUS + i)), 1.0);

    let token_queries = into_head(TOKEN, VOCABULARY, 0, 0).chain(into_head(TOKEN, VOCABULARY, 1, 0));
    let keys = into_head(PREVIOUS, VOCABULARY, 0, 0).chain(into_head(TOKEN, VOCABULARY, 1, 0));
    layer_1.attn.w_q.weight = matrix(D_MODEL, wide, token_queries, SHARP);
    layer_1.attn.w_k.weight = matrix(D_MODEL, wide, keys, 1.0);
    layer_1.attn.w_v.weight = zero();
    model
}

/// A token that never comes back, a block of four, the block again.
fn sequences() -> Vec<Vec<u32>> {
    vec![vec![11, 1, 2, 3, 4, 1, 2, 3, 4], vec![0, 9, 8, 7, 6, 9, 8, 7, 6], vec![5, 2, 10, 1, 3, 2, 10, 1, 3]]
}

/// The scores of both heads of each layer.
fn scores_of(model: &Decoder, sequences: &[Vec<u32>]) -> Vec<Vec<Scores>> {
    let ids: Vec<i32> = sequences.iter().flatten().map(|&token| token as i32).collect();
    let tokens = Tensor::<1, Int>::from_ints(ids.as_slice(), &Device::flex()).reshape([sequences.len(), LENGTH]);
    let sites = model.pattern_sites();
    let mut capture = Capture::new(&sites, usize::MAX);
    let _ = model.forward_probed(tokens, &mut capture);
    sites
        .into_iter()
        .map(|site| {
            let weights: Vec<f32> = capture.get::<4>(site).unwrap().into_data().iter::<f32>().collect();
            score_layer(LayerPattern::new([sequences.len(), 2, LENGTH], &weights), sequences)
        })
        .collect()
}

#[track_caller]
fn assert_scores(scores: &Scores, expected: [f64; 5]) {
    for (measure, expected) in Measure::ALL.into_iter().zip(expected) {
        let found = scores[measure.name()].value;
        assert!((found - expected).abs() < 1e-6, "{measure}: {found}, expected {expected}");
    }
}

#[test]
fn every_head_scores_exactly_what_its_weights_say() {
    let layers = scores_of(&hand_built(), &sequences());
    // In the order of Measure::ALL: previous, current, first, duplicate, induction.

    // L0H0: all weight on q−1. Query 1's previous token is also the first: 1 row of 8. Never the duplicate, which
    // is four back, nor its successor, which is three back.
    assert_scores(&layers[0][0], [1.0, 0.0, 1.0 / 8.0, 0.0, 0.0]);
    assert_eq!(Role::of(&layers[0][0]), Role::Of(Measure::PreviousToken));

    // L0H1: uniform attention, so each score is its null: the mean of 1/(q+1) over the rows that count.
    let all: f64 = (1..LENGTH).map(|q| 1.0 / (q + 1) as f64).sum::<f64>() / 8.0;
    let second_copy: f64 = (5..LENGTH).map(|q| 1.0 / (q + 1) as f64).sum::<f64>() / 4.0;
    assert_scores(&layers[0][1], [all, all, all, second_copy, second_copy]);
    assert_eq!(Role::of(&layers[0][1]), Role::Mixed);

    // L1H0: on the second copy, all weight on the token after the same token. On the first copy no key matches,
    // so it is uniform there (and at the token that never comes back, whose own key holds itself). The row 5's
    // target is key 2, never q−1, q or 0.
    let first_copy: f64 = (1..5).map(|q| 1.0 / f64::from(q + 1)).sum::<f64>() / 8.0;
    assert_scores(&layers[1][0], [first_copy, first_copy, first_copy, 0.0, 1.0]);
    assert_eq!(Role::of(&layers[1][0]), Role::Of(Measure::Induction));

    // L1H1: on the first copy only itself, on the second half itself and half its double.
    assert_scores(&layers[1][1], [0.0, 0.75, 0.0, 0.5, 0.0]);
    assert_eq!(Role::of(&layers[1][1]), Role::Of(Measure::CurrentToken));
}

#[test]
fn the_nulls_are_those_of_uniform_attention_and_hold_the_closed_form() {
    let layers = scores_of(&hand_built(), &sequences());
    let harmonic: f64 = (1..=LENGTH).map(|n| 1.0 / n as f64).sum();
    for scores in layers.iter().flatten() {
        let null = scores["previous token"].null;
        assert!((null - (harmonic - 1.0) / (LENGTH as f64 - 1.0)).abs() < 1e-12);
    }
    for (name, uniform) in &layers[0][1] {
        assert!((uniform.value - uniform.null).abs() < 1e-6, "{name}");
        assert!(uniform.low - 1e-6 <= uniform.value && uniform.value <= uniform.high + 1e-6, "{name}");
    }
}

#[test]
fn an_untrained_model_has_no_role() {
    let config = DecoderConfig { vocabulary: VOCABULARY, n_ctx: LENGTH, n_heads: 2, ..DecoderConfig::default() };
    for seed in 0..5 {
        let model = config.try_init(seed, &Device::flex()).unwrap();
        for scores in scores_of(&model, &sequences()).iter().flatten() {
            assert_eq!(Role::of(scores), Role::Mixed);
        }
    }
}
