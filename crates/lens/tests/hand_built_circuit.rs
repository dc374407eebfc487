//! Detectors against a two-layer model whose weights are written down, so that every head's score
//! is known.

mod common;
#[path = "common/patterns.rs"]
mod patterns;

use burn::tensor::Device;
use common::{LENGTH, VOCABULARY, hand_built, sequences};
use headlight_heads::{
    Measure::{self, CurrentToken, DuplicateToken, FirstToken, Induction, PreviousToken},
    Role, ScoreName, Scores,
};
use headlight_lens::score_layer;
use headlight_residual::{Decoder, DecoderConfig};
use patterns::{layer_pattern, patterns};

/// The scores of both heads of each layer.
fn scores_of(model: &Decoder, sequences: &[Vec<u32>]) -> Vec<Vec<Scores>> {
    let score = |weights: &Vec<f32>| score_layer(layer_pattern(weights, sequences), sequences);
    patterns(model, sequences).iter().map(score).collect()
}

#[track_caller]
fn assert_scores(scores: &Scores, expected: impl Fn(Measure) -> f64) {
    for measure in Measure::BUILT_IN {
        let (found, expected) = (scores[&measure.into()].value, expected(measure));
        assert!(
            (found - expected).abs() < 1e-6,
            "{measure}: {found}, expected {expected}"
        );
    }
}

#[test]
fn every_head_scores_exactly_what_its_weights_say() {
    let layers = scores_of(&hand_built(), &sequences());
    // L0H0: all weight on q−1. Query 1's previous token is also the first: 1 row of 8. Never the
    // duplicate, which is four back, nor its successor, which is three back.
    assert_scores(&layers[0][0], |measure| match measure {
        PreviousToken => 1.0,
        FirstToken => 1.0 / 8.0,
        _ => 0.0,
    });
    assert_eq!(Role::of(&layers[0][0]), Role::Of(PreviousToken));

    // L0H1: uniform attention, so each score is its null: the mean of 1/(q+1) over the rows that
    // count.
    let all: f64 = (1..LENGTH).map(|q| 1.0 / (q + 1) as f64).sum::<f64>() / 8.0;
    let second_copy: f64 = (5..LENGTH).map(|q| 1.0 / (q + 1) as f64).sum::<f64>() / 4.0;
    assert_scores(&layers[0][1], |measure| match measure {
        PreviousToken | CurrentToken | FirstToken => all,
        _ => second_copy,
    });
    assert_eq!(Role::of(&layers[0][1]), Role::Mixed);

    // L1H0: on the second copy, all weight on the token after the same token. On the first copy no
    // key matches, so it is uniform there (and at the token that never comes back, whose own key
    // holds itself). The row 5's target is key 2, never q−1, q or 0.
    let first_copy: f64 = (1..5).map(|q| 1.0 / f64::from(q + 1)).sum::<f64>() / 8.0;
    assert_scores(&layers[1][0], |measure| match measure {
        PreviousToken | CurrentToken | FirstToken => first_copy,
        Induction => 1.0,
        _ => 0.0,
    });
    assert_eq!(Role::of(&layers[1][0]), Role::Of(Induction));

    // L1H1: on the first copy only itself, on the second half itself and half its double.
    assert_scores(&layers[1][1], |measure| match measure {
        CurrentToken => 0.75,
        DuplicateToken => 0.5,
        _ => 0.0,
    });
    assert_eq!(Role::of(&layers[1][1]), Role::Of(CurrentToken));
}

#[test]
fn the_nulls_are_those_of_uniform_attention_and_hold_the_closed_form() {
    let layers = scores_of(&hand_built(), &sequences());
    let harmonic: f64 = (1..=LENGTH).map(|n| 1.0 / n as f64).sum();
    for scores in layers.iter().flatten() {
        let null = scores[&PreviousToken.into()].null;
        assert!((null - (harmonic - 1.0) / (LENGTH as f64 - 1.0)).abs() < 1e-12);
    }
    for (name, uniform) in &layers[0][1] {
        assert!((uniform.value - uniform.null).abs() < 1e-6, "{name}");
        assert!(
            uniform.interval.low - 1e-6 <= uniform.value
                && uniform.value <= uniform.interval.high + 1e-6,
            "{name}"
        );
    }
}

#[test]
fn entropy_is_zero_on_one_key_and_that_of_the_shared_keys_elsewhere() {
    let layers = scores_of(&hand_built(), &sequences());
    let of = |layer: usize, head: usize| layers[layer][head][&ScoreName::Entropy].value;
    assert!(of(0, 0).abs() < 1e-6, "one key");
    assert!((of(0, 1) - 1.0).abs() < 1e-6, "uniform");
    // L1H0 is uniform on the first copy, rows 1 to 4 of 8, and looks at one key on the second.
    assert!((of(1, 0) - 0.5).abs() < 1e-6, "{}", of(1, 0));
    // L1H1 halves its weight between two keys in rows 5 to 8: ln 2 / ln(q + 1).
    let halves: f64 = (5..LENGTH).map(|q| 2f64.ln() / ((q + 1) as f64).ln()).sum();
    assert!((of(1, 1) - halves / 8.0).abs() < 1e-6, "{}", of(1, 1));
}

#[test]
fn an_untrained_model_has_no_role() {
    let config = DecoderConfig {
        vocabulary: VOCABULARY,
        n_ctx: LENGTH,
        n_heads: 2,
        ..DecoderConfig::default()
    };
    for seed in 0..5 {
        let model = config.try_init(seed, &Device::flex()).unwrap();
        for scores in scores_of(&model, &sequences()).iter().flatten() {
            assert_eq!(Role::of(scores), Role::Mixed);
        }
    }
}
