//! Relation scores of patterns that are written down.

use headlight_heads::{Interval, Relation};
use headlight_lens::{LayerPattern, mean_distance, score_relations};

const LENGTH: usize = 12;
const SEQUENCES: usize = 6;

/// In sequence s the words at 3, 6 and 9 depend on words 2 + (s + position) % 2 before them; the
/// last word stands before its source.
fn relations() -> Vec<Vec<Relation>> {
    let of_sequence = |sequence| {
        let backward = [3, 6, 9].map(|dependent| Relation {
            name: "verb→subject".into(),
            dependent,
            source: dependent - 2 - (sequence + dependent) % 2,
        });
        backward
            .into_iter()
            .chain([Relation {
                name: "determiner→noun".into(),
                dependent: 4,
                source: 5,
            }])
            .collect()
    };
    (0..SEQUENCES).map(of_sequence).collect()
}

/// The pattern of one head that puts all weight on the key `attends_to(sequence, query)`.
fn pattern(attends_to: impl Fn(usize, usize) -> usize) -> Vec<f32> {
    let mut weights = vec![0.0; SEQUENCES * LENGTH * LENGTH];
    for row in 0..SEQUENCES * LENGTH {
        weights[row * LENGTH + attends_to(row / LENGTH, row % LENGTH)] = 1.0;
    }
    weights
}

fn layer(weights: &[f32]) -> LayerPattern<'_> {
    LayerPattern::new([SEQUENCES, 1, LENGTH], weights)
}

#[test]
fn a_head_that_follows_the_relation_scores_1_and_its_distance_explains_nothing() {
    let relations = relations();
    let weights = pattern(|sequence, query| {
        let found = relations[sequence]
            .iter()
            .find(|relation| relation.dependent == query && relation.is_visible());
        found.map_or(query, |relation| relation.source)
    });
    let score = score_relations(layer(&weights), &relations)[0]["verb→subject"];
    assert_eq!(
        (score.score.value, score.score.interval),
        (1.0, Interval::point(1.0))
    );
    assert_eq!((score.distance_null, score.rows), (0.0, 18));
    assert!((score.score.null - (1.0 / 4.0 + 1.0 / 7.0 + 1.0 / 10.0) / 3.0).abs() < 1e-12);
}

#[test]
fn a_head_that_counts_positions_scores_its_own_null() {
    // Always two back: right for every second relation, and just as often elsewhere at that
    // distance.
    let weights = pattern(|_, query| query.saturating_sub(2));
    let score = score_relations(layer(&weights), &relations())[0]["verb→subject"];
    assert_eq!((score.score.value, score.distance_null), (0.5, 0.5));
}

#[test]
fn the_position_that_predicts_the_word_is_scored_apart() {
    // Queries 2, 5 and 8 look one or two back, where the next word's source stands.
    let relations = relations();
    let weights = pattern(|sequence, query| {
        let next = relations[sequence]
            .iter()
            .find(|relation| relation.dependent == query + 1 && relation.is_visible());
        next.map_or(query, |relation| relation.source)
    });
    let scores = &score_relations(layer(&weights), &relations)[0];
    assert_eq!(scores["next verb→subject"].score.value, 1.0);
    assert_eq!(scores["verb→subject"].score.value, 0.0);
}

#[test]
fn what_stands_later_is_left_out() {
    let scores = &score_relations(layer(&pattern(|_, query| query)), &relations())[0];
    assert_eq!(
        scores.keys().collect::<Vec<_>>(),
        ["next verb→subject", "verb→subject"]
    );
}

#[test]
fn mean_distance_of_simple_heads() {
    let distance = |weights: &[f32]| mean_distance(layer(weights))[0];
    assert_eq!(distance(&pattern(|_, query| query)).value, 0.0);
    assert_eq!(
        distance(&pattern(|_, query| query.saturating_sub(1))).value,
        1.0
    );
    let first = distance(&pattern(|_, _| 0));
    assert_eq!((first.value, first.ceiling), (6.0, 6.0)); // (1 + … + 11) / 11
    let uniform: Vec<f32> = (0..SEQUENCES * LENGTH)
        .flat_map(|row| {
            (0..LENGTH).map(move |key| {
                if key <= row % LENGTH {
                    1.0 / (row % LENGTH + 1) as f32
                } else {
                    0.0
                }
            })
        })
        .collect();
    let uniform = distance(&uniform);
    assert!((uniform.value - uniform.null).abs() < 1e-6, "{uniform:?}");
}
