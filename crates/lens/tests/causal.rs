//! Causal tests on a circuit of which it is known what each head is for.

mod common;

use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{LENGTH, hand_built, sequences};
use headlight_lens::{
    Ablation, Behaviour, Input, ablate, all_heads, direct_logit_attribution, logit_lens, matched_sets, minimal_set,
    path_test,
};
use headlight_run::HeadName;

/// To continue the second copy: targets 6, 7 and 8.
fn induction() -> Behaviour {
    let sequences = sequences();
    let inputs: Vec<i32> = sequences.iter().flat_map(|row| &row[..LENGTH - 1]).map(|&token| token as i32).collect();
    let inputs = TensorData::new(inputs, [sequences.len(), LENGTH - 1]);
    let inputs = Tensor::<2, Int>::from_data(inputs, &Device::flex());
    let targets = sequences.iter().map(|row| row[1..].to_vec()).collect();
    let scored = sequences.iter().map(|_| (0..LENGTH - 1).map(|input| input >= 5).collect()).collect();
    Behaviour::new(inputs, targets, scored)
}

fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}

const ALL: [Ablation; 3] = [Ablation::Zero, Ablation::Mean, Ablation::Resample];

#[test]
fn only_the_heads_of_the_circuit_are_missed() {
    let (model, induction) = (hand_built(), induction());
    let untouched = ablate(&model, &induction, &[], Ablation::Mean);
    assert_eq!((untouched.accuracy, untouched.low, untouched.high), (1.0, 1.0, 1.0));
    for ablation in ALL {
        for (name, needed) in [("L0H0", true), ("L0H1", false), ("L1H0", true), ("L1H1", false)] {
            let left = ablate(&model, &induction, &[head(name)], ablation);
            assert_eq!(left.accuracy < 0.4, needed, "{name} {ablation:?}: {left:?}");
            if !needed {
                // What writes nothing leaves no trace, to the last bit.
                assert_eq!(left, untouched, "{name} {ablation:?}");
            }
        }
        let idle = ablate(&model, &induction, &[head("L0H1"), head("L1H1")], ablation);
        assert_eq!(idle, untouched);
    }
    // Without L1H0 the stream still holds the current token, which is never the next one.
    assert_eq!(ablate(&model, &induction, &[head("L1H0")], Ablation::Zero).accuracy, 0.0);
    let elsewhere =
        |head: &str| ablate(&model, &induction, &[self::head(head)], Ablation::Zero).loss_elsewhere.unwrap();
    assert!((elsewhere("L1H1") - untouched.loss_elsewhere.unwrap()).abs() < 1e-9);
}

#[test]
fn the_previous_token_head_is_read_by_keys_alone() {
    let (model, induction) = (hand_built(), induction());
    let through = |writer: &str, input| path_test(&model, &induction, &[head(writer)], 1, input).unwrap().accuracy;
    assert_eq!(through("L0H0", Input::Query), 1.0);
    assert_eq!(through("L0H0", Input::Value), 1.0);
    assert!(through("L0H0", Input::Key) < 0.4, "{}", through("L0H0", Input::Key));
    for input in Input::ALL {
        assert_eq!(through("L0H1", input), 1.0, "what writes nothing is missed by nobody");
    }
    assert!(path_test(&model, &induction, &[head("L1H0")], 1, Input::Key).is_none(), "no layer reads itself");
    assert!(path_test(&model, &induction, &[], 1, Input::Key).is_none());
}

#[test]
fn a_greedy_search_ends_with_the_circuit() {
    let (model, induction) = (hand_built(), induction());
    let taken = minimal_set(&model, &induction, Ablation::Zero, 0.1);
    assert_eq!(taken.len(), 1);
    assert!([head("L0H0"), head("L1H0")].contains(&taken[0].0));
    // It never ends by itself where nothing can be broken: all heads are gone, and it stops.
    assert_eq!(minimal_set(&model, &induction, Ablation::Zero, -1.0).len(), 4);
}

#[test]
fn matched_sets_are_other_heads_as_many_and_different() {
    let model = hand_built();
    let sets = matched_sets(&model, &[head("L1H0")], 5, 1);
    assert_eq!(sets.len(), 3, "three others, one at a time: {sets:?}");
    assert!(sets.iter().all(|set| set.len() == 1 && set[0] != head("L1H0")));
    assert_eq!(matched_sets(&model, &[head("L1H0"), head("L0H0")], 5, 1), [[head("L0H1"), head("L1H1")]]);
    assert!(matched_sets(&model, &all_heads(&model)[..3], 5, 1).is_empty(), "one head is too few for three");
    assert!(matched_sets(&model, &[], 5, 1).is_empty());
}

#[test]
fn the_lens_sees_the_answer_only_after_the_head_that_gives_it() {
    let (model, induction) = (hand_built(), induction());
    let depths = logit_lens(&model, &induction);
    let places: Vec<&str> = depths.iter().map(|depth| depth.site.as_str()).collect();
    let expected = ["blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"];
    assert_eq!(places, expected);
    // Before the second layer the stream holds the current token.
    assert_eq!(depths.iter().map(|depth| depth.performance.accuracy).collect::<Vec<_>>(), [0.0, 0.0, 1.0]);
    assert_eq!(depths[2].performance, ablate(&model, &induction, &[], Ablation::Zero));
}

#[test]
fn contributions_add_up_to_the_logit_and_name_the_head() {
    let (model, induction) = (hand_built(), induction());
    let parts = direct_logit_attribution(&model, &induction).unwrap();
    let of = |name: &str| parts.iter().find(|part| part.name == name).unwrap().logit;
    assert!(of("L0H1").abs() < 1e-6 && of("L1H1").abs() < 1e-6, "what writes nothing says nothing");
    assert!(of("L1H0") > 5.0 * of("L0H0").abs().max(of("embedding").abs()), "{parts:?}");

    let logits = model.forward(induction.inputs());
    let centred = logits.clone() - logits.mean_dim(2);
    let right = centred.gather(2, induction.targets().unsqueeze_dim::<3>(2)).squeeze_dim::<2>(2);
    let scored = induction.scored();
    let mean = (right * scored.clone()).sum().into_scalar::<f32>() / scored.sum().into_scalar::<f32>();
    let sum: f64 = parts.iter().map(|part| part.logit).sum();
    assert!((sum - f64::from(mean)).abs() < 1e-5 * f64::from(mean).abs().max(1.0), "{sum}, not {mean}");
}
