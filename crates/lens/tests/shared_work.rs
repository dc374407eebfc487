//! Work that two heads share, and a head that only looks like another: what tests of one head at a
//! time get wrong.

#[path = "common/behaviour.rs"]
mod behaviour;
mod common;
#[path = "common/patterns.rs"]
mod patterns;
#[path = "common/shared_work.rs"]
mod shared_work;

use behaviour::{head, induction};
use burn::tensor::Device;
use common::{hand_built, sequences};
use headlight_heads::{Measure, Role};
use headlight_lens::{
    Ablation, HeadWrites, RoleTargets, TargetWeights, ablate, head_writes, keys_and_queries,
    minimal_set, missed, pairs, role_ranges, score_layer, without_distance, writes_sites,
};
use headlight_residual::{Decoder, token_tensor};
use patterns::{layer_pattern, patterns};
use shared_work::{attends_and_writes_nothing, shared_work, without_norms};

/// rms(result − mean)/rms(stream) of each head of layer 0.
fn writes(model: &Decoder) -> Vec<f64> {
    let tokens = token_tensor(&sequences(), &Device::flex());
    let seen = model.activations(tokens, &writes_sites(model)).unwrap();
    let writes = head_writes(model, &seen).unwrap();
    writes[..2].iter().map(HeadWrites::everywhere).collect()
}

#[test]
fn two_heads_that_share_the_work_have_no_role_and_are_missed_together_only() {
    let (model, behaviour) = (shared_work(), induction());
    let sequences = sequences();
    let weights = patterns(&model, &sequences);
    for scores in score_layer(layer_pattern(&weights[0], &sequences), &sequences) {
        // 0.4 at queries 2 to 8, and 1 at query 1, whose previous token is the first.
        let score = scores[&Measure::PreviousToken.into()];
        assert!(
            (score.value - (7.0 * 0.4 + 1.0) / 8.0).abs() < 1e-6,
            "{score:?}"
        );
        assert_ne!(Role::of(&scores), Role::Of(Measure::PreviousToken));
    }
    let accuracy = |heads: &[&str], ablation| {
        let heads: Vec<_> = heads.iter().map(|name| head(name)).collect();
        ablate(&model, &behaviour, &heads, ablation)
            .unwrap()
            .accuracy
    };
    // A resampled head would point at tokens that other sequences share, as loudly as the other
    // head at the right ones.
    for ablation in [Ablation::Zero, Ablation::Mean] {
        assert_eq!(accuracy(&["L0H0"], ablation), 1.0);
        assert_eq!(accuracy(&["L0H1"], ablation), 1.0);
        assert!(accuracy(&["L0H0", "L0H1"], ablation) < 0.4);
        let joint = pairs(
            &model,
            &behaviour,
            &[[head("L0H0"), head("L0H1")]],
            ablation,
        )
        .unwrap()[0]
            .joint;
        assert_eq!(joint.alone.map(|cost| cost.mean), [0.0, 0.0]);
        assert_eq!(joint.interaction, joint.together);
        assert!(joint.interaction.interval.low > 0.5, "{joint:?}");
    }
    // The distance shows it whatever heads do it, and no other distance does.
    assert!(without_distance(&model, &behaviour, 0, 1).unwrap().accuracy < 0.4);
    for distance in 2..=5 {
        assert_eq!(
            without_distance(&model, &behaviour, 0, distance)
                .unwrap()
                .accuracy,
            1.0
        );
    }
    assert_eq!(
        without_distance(&model, &behaviour, 1, 1).unwrap().accuracy,
        1.0
    );
}

#[test]
fn two_links_of_one_chain_have_a_negative_interaction() {
    let (model, behaviour) = (hand_built(), induction());
    let chain = [head("L0H0"), head("L1H0")];
    let joint = pairs(&model, &behaviour, &[chain], Ablation::Zero).unwrap()[0].joint;
    assert!(joint.alone.iter().all(|cost| cost.mean > 0.6), "{joint:?}");
    assert!(joint.interaction.mean < -0.6, "{joint:?}");
    // The previous-token head is read by keys alone, so queries add nothing.
    let joint = keys_and_queries(&model, &behaviour, &[head("L0H0")])
        .unwrap()
        .unwrap();
    assert!(
        joint.alone[0].mean > 0.6 && joint.alone[1].mean == 0.0,
        "{joint:?}"
    );
    assert_eq!(joint.interaction.mean, 0.0);
    assert!(
        keys_and_queries(&model, &behaviour, &[head("L1H0")])
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_head_that_attends_and_writes_nothing_has_the_pattern_only() {
    let (model, behaviour) = (attends_and_writes_nothing(), induction());
    let sequences = sequences();
    let weights = patterns(&model, &sequences);
    for scores in score_layer(layer_pattern(&weights[0], &sequences), &sequences) {
        assert_eq!(Role::of(&scores), Role::Of(Measure::PreviousToken));
    }
    let [worker, idle] = writes(&model)[..] else {
        panic!()
    };
    assert!(worker > 0.3 && idle == 0.0, "{worker} {idle}");
    for ablation in Ablation::ALL {
        let of = |name: &str, other: &str| {
            missed(&model, &behaviour, head(name), &[head(other)], ablation).unwrap()
        };
        // Without the worker little is left, and the idle head is not missed. Of the worker all is.
        assert_eq!(of("L0H1", "L0H0").cost.mean, 0.0);
        let worker = of("L0H0", "L0H1");
        assert!(worker.cost.interval.low > 0.5, "{worker:?}");
        assert_eq!(worker.without_others.accuracy, 1.0);
        assert!(worker.to_lose.mean >= worker.cost.mean);
    }
}

#[test]
fn what_a_head_writes_is_counted_by_hand() {
    // L0H0 of the circuit writes the one-hot previous token: 27 rows, one for each position of
    // three sequences; the stream has two ones in 33 dimensions.
    let tokens = sequences();
    let mut counts = [0.0; 12];
    for row in &tokens {
        counts[row[0] as usize] += 1.0; // query 0 sees itself only
        for token in &row[..8] {
            counts[*token as usize] += 1.0;
        }
    }
    // Σ‖x − mean‖² = rows − Σ count²/rows.
    let squares = 27.0 - counts.iter().map(|count| count * count / 27.0).sum::<f64>();
    let expected = (squares / (2.0 * 27.0)).sqrt();
    assert!((writes(&without_norms())[0] - expected).abs() < 1e-6);
    assert_eq!(writes(&without_norms())[1], 0.0);
}

#[test]
fn a_minimal_set_is_found_on_one_half_and_holds_on_the_other() {
    let (model, behaviour) = (shared_work(), induction());
    let minimal = minimal_set(&model, &behaviour, Ablation::Zero, 0.1).unwrap();
    assert_eq!(minimal.heads, [head("L1H0")]);
    assert!(
        minimal.found.accuracy < 0.1 && minimal.reported.accuracy < 0.1,
        "{minimal:?}"
    );
    // Nothing can be broken below 0: all heads are taken, and none comes back.
    let all = minimal_set(&model, &behaviour, Ablation::Zero, -1.0).unwrap();
    assert_eq!((all.taken.len(), all.heads.len()), (4, 4));
}

#[test]
fn short_sequences_have_no_ranges() {
    let sequences = sequences();
    let weights = patterns(&hand_built(), &sequences);
    let layers: Vec<_> = weights
        .iter()
        .map(|weights| layer_pattern(weights, &sequences))
        .collect();
    // Queries 2 to 8 are fewer than eight, and three sequences fewer than twenty.
    let targets = RoleTargets::of(&layers[0], &sequences);
    let ranges = role_ranges(&TargetWeights::of(&layers, &targets));
    assert_eq!(ranges, vec![vec![]; 4]);
}
