//! A head that looks two after the match: the induction score misses it, offset profile and path
//! test find it.

#[path = "common/behaviour.rs"]
mod behaviour;
mod common;
#[path = "common/patterns.rs"]
mod patterns;
#[path = "common/two_after.rs"]
mod two_after;

use behaviour::{head, induction};
use common::{hand_built, sequences};
use headlight_heads::{Measure, Role};
use headlight_lens::{
    Ablation, Input, Offset, Patching, Place, ablate, ablate_frozen, heads_after, offset_profile,
    path_tests, score_layer,
};
use headlight_residual::Decoder;
use patterns::{layer_pattern, patterns};
use two_after::two_after;

#[test]
fn it_solves_the_task_and_no_head_looks_like_induction() {
    let (model, sequences) = (two_after(), sequences());
    assert_eq!(
        ablate(&model, &induction(), &[], Ablation::Mean)
            .unwrap()
            .accuracy,
        1.0
    );
    assert!(
        ablate(&model, &induction(), &[head("L1H0")], Ablation::Mean)
            .unwrap()
            .accuracy
            < 0.4
    );
    for weights in &patterns(&model, &sequences) {
        for scores in score_layer(layer_pattern(weights, &sequences), &sequences) {
            assert_ne!(Role::of(&scores), Role::Of(Measure::Induction));
        }
    }
    // The circuit that copies from one after the match has the same answers and the full score.
    let induction_score = |model: &Decoder| {
        let layer_1 = &patterns(model, &sequences)[1];
        let scores = &score_layer(layer_pattern(layer_1, &sequences), &sequences)[0];
        scores[&Measure::Induction.into()].value
    };
    assert!(induction_score(&model) < 1e-6 && induction_score(&hand_built()) > 1.0 - 1e-6);
}

#[test]
fn the_offset_profile_says_where_it_looks() {
    let (model, sequences) = (two_after(), sequences());
    let layers = patterns(&model, &sequences);
    let value = |layer: usize, head: usize, place: Offset| {
        let profile = offset_profile(layer_pattern(&layers[layer], &sequences), &sequences);
        profile
            .iter()
            .find(|(offset, _)| *offset == place)
            .unwrap()
            .1[head]
            .value
    };
    for place in Offset::all() {
        // The block is 4 long: two after the match is two back.
        let expected = matches!(place, Offset::Match(2) | Offset::Distance(2));
        let found = value(1, 0, place);
        assert!(
            (found - f64::from(u8::from(expected))).abs() < 1e-6,
            "{place}: {found}"
        );
    }
    assert!((value(0, 0, Offset::Distance(1)) - 1.0).abs() < 1e-6);
    assert!((value(0, 1, Offset::Distance(2)) - 1.0).abs() < 1e-6);
}

#[test]
fn one_writer_is_read_by_values_the_other_by_keys() {
    let (model, induction) = (two_after(), induction());
    let needed_by = |writer: &str| {
        let through = path_tests(&model, &induction, &[head(writer)], 1)
            .unwrap()
            .unwrap();
        let needed = |input: &Input| through[*input as usize].accuracy < 0.4;
        let needed: Vec<Input> = Input::ALL.into_iter().filter(needed).collect();
        assert!(
            through
                .iter()
                .all(|left| left.accuracy < 0.4 || left.accuracy == 1.0),
            "{writer}: {through:?}"
        );
        needed
    };
    assert_eq!(needed_by("L0H0"), [Input::Value]);
    assert_eq!(needed_by("L0H1"), [Input::Key]);
    // So freezing patterns gives back what is lost without the second, and nothing of what is lost
    // without the first.
    let frozen = |writer: &str| {
        let heads = [head(writer)];
        ablate_frozen(
            &model,
            &induction,
            &heads,
            Ablation::Mean,
            &heads_after(&model, &heads),
        )
        .unwrap()
        .accuracy
    };
    assert!(frozen("L0H0") < 0.4);
    assert_eq!(frozen("L0H1"), 1.0);
}

#[test]
fn patching_follows_the_token_one_position_on() {
    let model = two_after();
    let (clean, corrupted) = ([11, 1, 2, 3, 4, 1, 2], [11, 1, 2, 5, 4, 1, 2]);
    let patching = Patching::new(&model, &corrupted, &clean, 6).unwrap();
    assert_eq!(patching.answers(), [5, 3]);
    let where_restored = |name: &str| {
        let place = Place::all(&model)
            .into_iter()
            .find(|place| place.to_string() == name)
            .unwrap();
        let shares = patching.at(place).by_position;
        assert!(
            shares
                .iter()
                .all(|share| share.abs() < 1e-5 || (share - 1.0).abs() < 1e-5),
            "{name}: {shares:?}"
        );
        (0..shares.len())
            .filter(|&position| shares[position] > 0.5)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        where_restored("blocks.0.hook_resid_pre"),
        [3],
        "where the token stands"
    );
    assert_eq!(
        where_restored("blocks.1.hook_resid_pre"),
        [4],
        "where it was copied to"
    );
    assert_eq!(where_restored("L0H0"), [4]);
    assert_eq!(where_restored("L1H0"), [6]);
    assert!(
        where_restored("L0H1").is_empty(),
        "it moves a token that is the same in both prompts to where it is read"
    );
}
