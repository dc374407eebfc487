//! Causal tests on a circuit of which it is known what each head is for.

#[path = "common/behaviour.rs"]
mod behaviour;
mod common;

use behaviour::{head, induction};
use burn::tensor::{Device, Tensor};
use common::hand_built;
use headlight_heads::{HeadName, Interval};
use headlight_lens::{
    Ablation, Ablations, Input, PromptPair, PromptPairs, ablate, ablate_frozen, all_heads,
    at_each_layer, control_sets, direct_logit_attribution, heads_after, logit_lens, path_test,
    path_tests,
};
use headlight_residual::{
    AttentionSite, Decoder, DecoderConfig, Edit, Edits, KeptTensor, Part, Site, token_tensor,
};

const ALL: [Ablation; 3] = [Ablation::Zero, Ablation::Mean, Ablation::Resample];

#[test]
fn only_the_heads_of_the_circuit_are_missed() {
    let (model, induction) = (hand_built(), induction());
    let untouched = ablate(&model, &induction, &[], Ablation::Mean).unwrap();
    assert_eq!(
        (untouched.accuracy, untouched.interval),
        (1.0, Interval::point(1.0))
    );
    for ablation in ALL {
        for (name, needed) in [
            ("L0H0", true),
            ("L0H1", false),
            ("L1H0", true),
            ("L1H1", false),
        ] {
            let left = ablate(&model, &induction, &[head(name)], ablation).unwrap();
            assert_eq!(left.accuracy < 0.4, needed, "{name} {ablation:?}: {left:?}");
            if !needed {
                // What writes nothing leaves no trace, to the last bit.
                assert_eq!(left, untouched, "{name} {ablation:?}");
            }
        }
        let idle = ablate(&model, &induction, &[head("L0H1"), head("L1H1")], ablation).unwrap();
        assert_eq!(idle, untouched);
    }
    // Without L1H0 the stream still holds the current token, which is never the next one.
    assert_eq!(
        ablate(&model, &induction, &[head("L1H0")], Ablation::Zero)
            .unwrap()
            .accuracy,
        0.0
    );
    let elsewhere = |head: &str| {
        ablate(&model, &induction, &[self::head(head)], Ablation::Zero)
            .unwrap()
            .loss_elsewhere
            .unwrap()
    };
    assert!((elsewhere("L1H1") - untouched.loss_elsewhere.unwrap()).abs() < 1e-9);
}

#[test]
fn ablations_that_share_their_beginning_equal_whole_passes() {
    let (model, induction) = (hand_built(), induction());
    let sets = [
        vec![],
        vec![head("L0H0")],
        vec![head("L1H0")],
        vec![head("L1H1"), head("L0H0")],
        all_heads(&model),
    ];
    for ablation in ALL {
        let ablations = Ablations::new(&model, &induction, ablation);
        for heads in &sets {
            let whole = ablate(&model, &induction, heads, ablation).unwrap();
            assert_eq!(
                ablations.without(heads).unwrap(),
                whole,
                "{heads:?} {ablation:?}"
            );
        }
    }
}

#[test]
fn the_previous_token_head_is_read_by_keys_alone() {
    let (model, induction) = (hand_built(), induction());
    let through = |writer: &str, input| {
        path_test(&model, &induction, &[head(writer)], 1, input)
            .unwrap()
            .unwrap()
            .accuracy
    };
    assert_eq!(through("L0H0", Input::Query), 1.0);
    assert_eq!(through("L0H0", Input::Value), 1.0);
    assert!(
        through("L0H0", Input::Key) < 0.4,
        "{}",
        through("L0H0", Input::Key)
    );
    for input in Input::ALL {
        assert_eq!(
            through("L0H1", input),
            1.0,
            "what writes nothing is missed by nobody"
        );
    }
    let together = path_tests(&model, &induction, &[head("L0H0")], 1)
        .unwrap()
        .unwrap();
    let alone = |input| {
        path_test(&model, &induction, &[head("L0H0")], 1, input)
            .unwrap()
            .unwrap()
    };
    assert_eq!(together, Input::ALL.map(alone));
    assert!(
        path_test(&model, &induction, &[head("L1H0")], 1, Input::Key)
            .unwrap()
            .is_none(),
        "no layer reads itself"
    );
    assert!(
        path_test(&model, &induction, &[], 1, Input::Key)
            .unwrap()
            .is_none()
    );
}

#[test]
fn the_previous_token_head_is_missed_only_because_later_heads_look_elsewhere() {
    let (model, induction) = (hand_built(), induction());
    for ablation in ALL {
        let accuracy = |heads: &[&str], frozen: &[&str]| {
            let names = |heads: &[&str]| heads.iter().map(|name| head(name)).collect::<Vec<_>>();
            ablate_frozen(&model, &induction, &names(heads), ablation, &names(frozen))
                .unwrap()
                .accuracy
        };
        // Where the later heads go on looking where they looked, nothing is lost without it: its
        // work is all QK.
        assert_eq!(accuracy(&["L0H0"], &["L1H0", "L1H1"]), 1.0);
        assert_eq!(accuracy(&["L0H0"], &["L1H0"]), 1.0, "one head reads it");
        assert!(accuracy(&["L0H0"], &["L1H1"]) < 0.4, "the other does not");
        // What the induction head does is done by what it moves.
        assert!(accuracy(&["L1H0"], &["L1H0", "L1H1"]) < 0.4);
        let plain = ablate(&model, &induction, &[head("L0H0")], ablation).unwrap();
        assert_eq!(
            ablate_frozen(&model, &induction, &[head("L0H0")], ablation, &[]).unwrap(),
            plain
        );
    }
    assert_eq!(
        heads_after(&model, &[head("L0H1")]),
        [head("L1H0"), head("L1H1")]
    );
    assert_eq!(
        heads_after(&model, &[head("L1H0"), head("L0H1")]),
        [head("L1H0"), head("L1H1")]
    );
    assert!(heads_after(&model, &[head("L1H0")]).is_empty() && heads_after(&model, &[]).is_empty());
}

#[test]
fn controls_are_heads_of_the_same_layers_that_no_test_needs() {
    let model = hand_built();
    let sets = |heads: &[HeadName], needed: &[HeadName]| control_sets(&model, heads, needed, 5, 1);
    assert_eq!(sets(&[head("L1H0")], &[]), [[head("L1H1")]]);
    assert_eq!(
        sets(&[head("L1H0"), head("L0H0")], &[head("L0H0")]),
        [[head("L0H1"), head("L1H1")]]
    );
    // The only other head of the layer is needed itself: there is no control.
    assert!(sets(&[head("L1H0")], &[head("L1H1")]).is_empty());
    assert!(
        sets(&all_heads(&model)[..3], &[]).is_empty(),
        "no head is left in layer 0"
    );
    assert!(sets(&[], &[]).is_empty());
}

#[test]
fn the_lens_sees_the_answer_only_after_the_head_that_gives_it() {
    let (model, induction) = (hand_built(), induction());
    let depths = logit_lens(&model, &induction).unwrap();
    let places: Vec<&str> = depths.iter().map(|depth| depth.site.as_str()).collect();
    let expected = [
        "blocks.0.hook_resid_pre",
        "blocks.0.hook_resid_post",
        "blocks.1.hook_resid_post",
    ];
    assert_eq!(places, expected);
    // Before the second layer the stream holds the current token.
    assert_eq!(
        depths
            .iter()
            .map(|depth| depth.performance.accuracy)
            .collect::<Vec<_>>(),
        [0.0, 0.0, 1.0]
    );
    assert_eq!(
        depths[2].performance,
        ablate(&model, &induction, &[], Ablation::Zero).unwrap()
    );
}

#[test]
fn contributions_add_up_to_the_logit_and_name_the_head() {
    let (model, induction) = (hand_built(), induction());
    let parts = direct_logit_attribution(&model, &induction)
        .unwrap()
        .unwrap();
    let of = |name: &str| parts.iter().find(|part| part.name == name).unwrap().logit;
    assert!(
        of("L0H1").abs() < 1e-6 && of("L1H1").abs() < 1e-6,
        "what writes nothing says nothing"
    );
    assert!(
        of("L1H0") > 5.0 * of("L0H0").abs().max(of("embedding").abs()),
        "{parts:?}"
    );

    let logits = model.forward(induction.inputs());
    let centred = logits.clone() - logits.mean_dim(2);
    let right = centred
        .gather(2, induction.targets().unsqueeze_dim::<3>(2))
        .squeeze_dim::<2>(2);
    let scored = induction.scored();
    let mean =
        (right * scored.clone()).sum().into_scalar::<f32>() / scored.sum().into_scalar::<f32>();
    let sum: f64 = parts.iter().map(|part| part.logit).sum();
    assert!(
        (sum - f64::from(mean)).abs() < 1e-5 * f64::from(mean).abs().max(1.0),
        "{sum}, not {mean}"
    );
}

#[test]
fn heads_of_a_layer_that_pass_as_one_batch_lose_what_each_loses_alone() {
    let (model, induction) = (hand_built(), induction());
    for ablation in ALL {
        let mut alone = Vec::new();
        at_each_layer(&model, &induction, ablation, &[0, 1], &mut |layer| {
            alone.extend(layer.without_each(&[0, 1])?);
            Ok(())
        })
        .unwrap();
        for (head, left) in all_heads(&model).into_iter().zip(&alone) {
            let whole = ablate(&model, &induction, &[head], ablation).unwrap();
            assert_eq!(left, &whole, "{head} {ablation:?}");
        }
    }
}

/// Two pairs of prompts of 5 and 3 tokens, which end in the same token.
fn pairs() -> Vec<PromptPair> {
    let pair = |clean: &[u32], corrupted: &[u32]| PromptPair {
        clean: clean.to_vec(),
        corrupted: corrupted.to_vec(),
        answer: 4,
        wrong: 6,
    };
    vec![
        pair(&[1, 2, 3, 5, 1], &[1, 2, 7, 5, 1]),
        pair(&[9, 8, 1], &[9, 3, 1]),
    ]
}

/// `logit[answer] − logit[wrong]` after one prompt, which stands alone in its batch.
fn difference(model: &Decoder, prompt: &[u32], mut edits: Edits) -> f64 {
    let inputs = token_tensor(&[prompt], &Device::flex());
    let logits = model.forward_probed(inputs, &mut edits);
    let last = logits.narrow(1, prompt.len() - 1, 1).into_data();
    let logits: Vec<f64> = last.iter::<f64>().collect();
    logits[4] - logits[6]
}

#[test]
fn padding_behind_a_prompt_changes_nothing_about_its_pair() {
    let config = DecoderConfig {
        init_std: 0.3,
        ..DecoderConfig::default()
    };
    let device = Device::flex();
    let model = config.try_init(0, &device).unwrap();
    let behaviour = PromptPairs::new(pairs()).behaviour(&device);
    let heads = [head("L0H1"), head("L1H2")];
    let blends = |layer| Site::Attention(layer, AttentionSite::Z);
    let parts = [(0, 1), (1, 2)];

    // What the heads blend at all 8 positions of the clean prompts, and in the corrupted ones.
    let blend = |prompt: &[u32], layer, edits: &Edits| -> Tensor<4> {
        let inputs = token_tensor(&[prompt], &device);
        let seen = model.activations_probed(inputs, &[blends(layer)], &mut edits.clone());
        seen.unwrap().tensor(blends(layer))
    };
    let mean = |layer, edits: &Edits| -> KeptTensor {
        let all = pairs()
            .iter()
            .map(|pair| blend(&pair.clean, layer, edits))
            .collect();
        Tensor::cat(all, 1).mean_dim(1).into()
    };
    let with = |edits: Edits, (layer, head): (usize, usize), edit| {
        edits.part(blends(layer), Part::heads(&[head]), edit)
    };
    for ablation in ALL {
        let mut expected = 0.0;
        for pair in pairs() {
            let mut edits = Edits::default();
            for (layer, head) in parts {
                let edit = match ablation {
                    Ablation::Zero => Edit::Zero,
                    Ablation::Mean => Edit::Replace(mean(layer, &edits)),
                    Ablation::Resample => {
                        let other = blend(&pair.corrupted, layer, &Edits::default());
                        Edit::Replace(other.into())
                    }
                };
                edits = with(edits, (layer, head), edit);
            }
            expected += difference(&model, &pair.clean, edits) / 2.0;
        }
        let left = ablate(&model, &behaviour, &heads, ablation).unwrap();
        let found = left.logit_difference.unwrap().mean;
        assert!(
            (found - expected).abs() < 1e-5,
            "{ablation:?}: {found}, {expected}"
        );
    }
    // Untouched: the mean over both pairs, and how many say the answer rather than the wrong token.
    let untouched = ablate(&model, &behaviour, &[], Ablation::Mean).unwrap();
    let untouched_of = |pair: &PromptPair| difference(&model, &pair.clean, Edits::default());
    let each: Vec<f64> = pairs().iter().map(untouched_of).collect();
    let right = each.iter().filter(|&&difference| difference > 0.0).count();
    assert_eq!(untouched.accuracy, right as f64 / 2.0);
    assert!(
        (untouched.logit_difference.unwrap().mean - f64::midpoint(each[0], each[1])).abs() < 1e-5
    );
    assert_eq!(untouched.loss_elsewhere, None);

    // What the parts add to the logit difference is all of it.
    let parts = direct_logit_attribution(&model, &behaviour)
        .unwrap()
        .unwrap();
    let sum: f64 = parts.iter().map(|part| part.logit).sum();
    assert!(
        (sum - f64::midpoint(each[0], each[1])).abs() < 1e-4,
        "{sum} {each:?}"
    );
    let depths = logit_lens(&model, &behaviour).unwrap();
    assert_eq!(
        depths.last().unwrap().performance.accuracy,
        untouched.accuracy
    );
}
