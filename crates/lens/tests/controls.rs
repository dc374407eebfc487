//! What must not be called induction: even attention, and a head that goes by position on data with
//! a fixed period.

mod common;
#[path = "common/fixed_distance.rs"]
mod fixed_distance;
#[path = "common/patterns.rs"]
mod patterns;

use common::{LENGTH, hand_built, sequences};
use fixed_distance::fixed_distance;
use headlight_heads::{Measure, Relation, Role};
use headlight_lens::{LayerPattern, ShuffledContext, score_layer};
use headlight_residual::Decoder;
use patterns::{layer_pattern, patterns};

/// Blocks of three and of five: no distance fits both.
fn jittered() -> Vec<Vec<u32>> {
    vec![
        vec![1, 2, 3, 1, 2, 3, 1, 2, 3],
        vec![0, 5, 6, 7, 8, 9, 5, 6, 7],
    ]
}

/// The null of each head of one layer: value, and what the head scores with its matches there.
fn shuffled(
    model: &Decoder,
    layer: usize,
    sequences: &[Vec<u32>],
    measure: Measure,
) -> Vec<[f64; 2]> {
    let context = ShuffledContext::new(sequences, &[], 5);
    let without = patterns(model, context.contexts());
    let null = context.scores(layer_pattern(&without[layer], sequences));
    let with = patterns(model, sequences);
    let scores = score_layer(layer_pattern(&with[layer], sequences), sequences);
    let name = measure.into();
    null.iter()
        .zip(&scores)
        .map(|(null, score)| [null[&name].value, score[&name].value])
        .collect()
}

#[test]
fn a_head_that_looks_back_by_one_period_is_told_by_other_periods_and_by_shuffled_tokens() {
    // All blocks of `sequences` are four long, so three back is what followed last time.
    let model = fixed_distance(3);
    let role = |sequences: &[Vec<u32>]| {
        Role::of(
            &score_layer(
                layer_pattern(&patterns(&model, sequences)[0], sequences),
                sequences,
            )[0],
        )
    };
    assert_eq!(
        role(&sequences()),
        Role::Of(Measure::Induction),
        "its own data call it induction"
    );
    assert_ne!(role(&jittered()), Role::Of(Measure::Induction));
    let [null, score] = shuffled(&model, 0, &sequences(), Measure::Induction)[0];
    assert!(
        (score - 1.0).abs() < 1e-6 && (null - score).abs() < 1e-6,
        "the same without any match: {null}, {score}"
    );
}

#[test]
fn shuffled_tokens_take_from_a_head_what_it_finds_by_content_and_nothing_else() {
    let (model, sequences) = (hand_built(), sequences());
    let [[null, score], [_, duplicate_head]] =
        shuffled(&model, 1, &sequences, Measure::Induction)[..]
    else {
        panic!()
    };
    assert!((score - 1.0).abs() < 1e-6 && null < 0.5, "L1H0: {null}");
    assert!(duplicate_head < 1e-6);
    let [_, [null, score]] = shuffled(&model, 1, &sequences, Measure::DuplicateToken)[..] else {
        panic!()
    };
    assert!((score - 0.5).abs() < 1e-6 && null < 0.25, "L1H1: {null}");
    // Previous-token head and even attention go by position: the same to the last digits.
    for measure in [Measure::Induction, Measure::DuplicateToken] {
        for [null, score] in shuffled(&model, 0, &sequences, measure) {
            assert!((null - score).abs() < 1e-6, "{measure}: {null}, {score}");
        }
    }
}

#[test]
fn a_shuffled_context_holds_the_same_tokens_and_no_old_match() {
    let relation = |dependent, source| Relation {
        name: "verb→subject".into(),
        dependent,
        source,
    };
    let relations = [
        vec![relation(3, 1)],
        vec![],
        vec![relation(8, 0), relation(4, 2)],
    ];
    for seed in 0..20 {
        let sequences = sequences();
        let context = ShuffledContext::new(&sequences, &relations, seed);
        for ((tokens, order), relations) in sequences.iter().zip(context.contexts()).zip(&relations)
        {
            let sorted = |tokens: &[u32]| {
                let mut tokens = tokens.to_vec();
                tokens.sort_unstable();
                tokens
            };
            assert_eq!(sorted(order), sorted(tokens));
            for (key, query) in
                (0..LENGTH).flat_map(|query| (0..query).map(move |key| (key, query)))
            {
                assert!(
                    tokens[key] != tokens[query] || order[key] != order[query],
                    "{order:?}"
                );
            }
            assert!(
                relations
                    .iter()
                    .all(|relation| order[relation.source] != tokens[relation.source])
            );
        }
        assert_eq!(
            context.contexts(),
            ShuffledContext::new(&sequences, &relations, seed).contexts()
        );
    }
}

#[test]
fn relations_are_scored_at_their_places_while_their_words_are_elsewhere() {
    let tokens = vec![vec![1, 2, 3, 4]];
    let relations = [vec![Relation {
        name: "verb→subject".into(),
        dependent: 3,
        source: 1,
    }]];
    let context = ShuffledContext::new(&tokens, &relations, 0);
    let by_position: Vec<f32> = (0..4)
        .flat_map(|q: usize| (0..4).map(move |k| f32::from(u8::from(k == q.saturating_sub(2)))))
        .collect();
    let scores = context.relation_scores(LayerPattern::new([1, 1, 4], &by_position));
    assert_eq!(scores[0]["verb→subject"].score.value, 1.0);

    // Two tokens that are all the same: the match cannot go away, so that nothing can be said.
    let same = vec![vec![7, 7]];
    let context = ShuffledContext::new(&same, &[], 0);
    assert!(context.scores(LayerPattern::new([1, 1, 2], &[1.0, 0.0, 0.5, 0.5]))[0].is_empty());
}

#[test]
fn the_start_of_a_sequence_is_not_shuffled_and_matches_nothing() {
    // The start is 9. Behind it the tokens are those of the sequences without it.
    let without = jittered();
    let with: Vec<Vec<u32>> = without
        .iter()
        .map(|row| [&[9], &row[..]].concat())
        .collect();
    let context = ShuffledContext::with_start(&with, &[], 3, true);
    for (order, tokens) in context.contexts().iter().zip(&with) {
        assert_eq!(order[0], 9);
        let mut sorted = [order.clone(), tokens.clone()];
        for tokens in &mut sorted {
            tokens.sort_unstable();
        }
        assert_eq!(sorted[0], sorted[1]);
    }
    // Even attention to all but the start scores what it scores where there is none.
    let even = |start: usize| -> Vec<f32> {
        let mut weights = Vec::new();
        for _ in 0..2 {
            for query in 0..9 + start {
                let weight = |key| {
                    let seen = key <= query && (key >= start || query < start);
                    if seen {
                        1.0 / (query + 1 - start.min(query)) as f32
                    } else {
                        0.0
                    }
                };
                weights.extend((0..9 + start).map(weight));
            }
        }
        weights
    };
    let [bare, started] = [even(0), even(1)];
    let plain = ShuffledContext::with_start(&without, &[], 3, false);
    let plain = plain.scores(LayerPattern::new([2, 1, 9], &bare));
    let started = context.scores(LayerPattern::new([2, 1, 10], &started).with_start(true));
    let induction = Measure::Induction.into();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(close(
        started[0][&induction].value,
        started[0][&induction].null
    ));
    assert!(close(plain[0][&induction].value, plain[0][&induction].null));
}
