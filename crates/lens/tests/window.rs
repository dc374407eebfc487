//! What can be seen bounds every score: nulls and ceilings under a sliding window.

use headlight_heads::{Measure, Relation, ScoreName};
use headlight_lens::{LayerPattern, mean_distance, score_layer, score_relations};

const LENGTH: usize = 8;

/// One head that spreads its weight over the last `window` keys.
fn uniform(window: usize) -> Vec<f32> {
    let row = |query: usize| {
        let first = (query + 1).saturating_sub(window);
        (0..LENGTH).map(move |key| {
            if (first..=query).contains(&key) {
                1.0 / (query + 1 - first) as f32
            } else {
                0.0
            }
        })
    };
    (0..LENGTH).flat_map(row).collect()
}

/// A match two back, one four back, and one seven back.
fn tokens() -> Vec<Vec<u32>> {
    vec![vec![1, 2, 3, 2, 4, 5, 3, 1]]
}

#[test]
fn uniform_attention_over_a_window_scores_its_nulls() {
    let relations = [vec![
        Relation {
            name: "near".into(),
            dependent: 3,
            source: 1,
        },
        Relation {
            name: "far".into(),
            dependent: 7,
            source: 0,
        },
    ]];
    for window in 1..=LENGTH {
        let weights = uniform(window);
        let pattern = LayerPattern::new([1, 1, LENGTH], &weights).with_window(Some(window));
        let scores = &score_layer(pattern, &tokens())[0];
        for measure in Measure::BUILT_IN {
            let score = scores[&measure.into()];
            assert!(
                (score.value - score.null).abs() < 1e-6,
                "{window} {measure} {score:?}"
            );
        }
        let distance = mean_distance(pattern)[0];
        assert!(
            (distance.value - distance.null).abs() < 1e-6,
            "{window} {distance:?}"
        );
        for (name, relation) in &score_relations(pattern, &relations)[0] {
            assert!(
                (relation.score.value - relation.score.null).abs() < 1e-6,
                "{window} {name} {relation:?}"
            );
        }
        assert_eq!(
            scores.contains_key(&ScoreName::Entropy),
            window > 1,
            "one key is no choice"
        );
        assert!(
            scores
                .get(&ScoreName::Entropy)
                .is_none_or(|entropy| (entropy.value - 1.0).abs() < 1e-6)
        );
    }
}

#[test]
fn the_ceiling_is_the_share_of_queries_that_see_a_target() {
    let ceiling = |window: Option<usize>, measure: Measure| {
        let weights = uniform(window.unwrap_or(LENGTH));
        let pattern = LayerPattern::new([1, 1, LENGTH], &weights).with_window(window);
        score_layer(pattern, &tokens())[0][&measure.into()].ceiling
    };
    for measure in Measure::BUILT_IN {
        assert_eq!(ceiling(None, measure), 1.0);
    }
    // Three matches: 3 → 1, 6 → 2, 7 → 0; what followed stands one nearer.
    assert_eq!(ceiling(Some(3), Measure::DuplicateToken), 1.0 / 3.0);
    assert_eq!(ceiling(Some(4), Measure::Induction), 2.0 / 3.0);
    assert_eq!(ceiling(Some(4), Measure::FirstToken), 3.0 / 7.0);
    assert_eq!(
        [1, 2].map(|window| ceiling(Some(window), Measure::PreviousToken)),
        [0.0, 1.0]
    );
}
