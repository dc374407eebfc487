//! Every test of `lens` on the hand-made circuit, whose answers are known.

use burn::tensor::Device;
use headlight_heads::{Ablation, HeadName, Reader};
use headlight_lens::{
    Behaviour, Circuits, ForbiddenDistances, Input, LayerPattern, Patching, Performance, Place,
    ablate, ablate_frozen, all_heads, copying_by_eigenvalues, direct_logit_attribution,
    head_writes, heads_after, keys_and_queries, logit_lens, minimal_set, pairs, path_test,
    path_tests, readers, score_targets, swap_follow, writes_sites,
};
use headlight_own_model::{
    CROSS, DECODER, ENCODER, EncoderDecoder, SOURCE, TARGET, VOCABULARY, Walk, hand_made,
};
use headlight_residual::{
    AttentionSite, BlockSite, NoProbe, Probed, Site, check_probed, token_tensor,
};

fn model() -> EncoderDecoder {
    hand_made(&Device::flex())
}

fn head(name: &str) -> HeadName {
    name.parse().unwrap()
}

/// Sources in which each token stands once at each place, so that every mean is uniform, walked
/// along from each place that is far enough from the end.
fn walks() -> Vec<Walk> {
    let mut walks = Vec::new();
    for first in 0..VOCABULARY as u32 {
        // 5 and 12 have no common divisor: a step of 5 meets every token.
        let token = |place: u32| (first + 5 * place) % VOCABULARY as u32;
        let source: Vec<u32> = (0..SOURCE as u32).map(token).collect();
        walks.extend((0..SOURCE - TARGET).map(|start| Walk::along(&source, start)));
    }
    walks
}

fn behaviour() -> Behaviour {
    Walk::behaviour(&walks(), &Device::flex())
}

/// −ln softmax of the right logit, where these many other tokens have these logits.
fn loss(right: f64, others: &[(usize, f64)]) -> f64 {
    let all: f64 = others
        .iter()
        .map(|&(count, logit)| count as f64 * logit.exp())
        .sum();
    (right.exp() + all).ln() - right
}

/// The next token 4, the one that is read 1, all others 0.
fn untouched() -> f64 {
    loss(4.0, &[(1, 1.0), (VOCABULARY - 2, 0.0)])
}

/// The one that is read 1, all others 0.
fn silent() -> f64 {
    loss(0.0, &[(1, 1.0), (VOCABULARY - 2, 0.0)])
}

/// L2H0 attends to all of the source alike: 4/8 for each token of it, 1 more for the one that is
/// read.
fn undirected() -> f64 {
    let others = [(1, 1.5), (SOURCE - 2, 0.5), (VOCABULARY - SOURCE, 0.0)];
    loss(0.5, &others)
}

#[track_caller]
fn assert_is(found: Performance, accuracy: f64, loss: f64) {
    assert_eq!(found.accuracy, accuracy);
    assert!(
        (found.loss - loss).abs() < 1e-5,
        "loss {}, expected {loss}",
        found.loss
    );
}

#[test]
fn the_model_is_what_it_says_about_itself() {
    let rows = Walk::rows(&walks()[..3], &Device::flex());
    check_probed(&model(), rows).unwrap();
}

#[test]
fn every_head_looks_where_its_weights_say() {
    let (model, walks) = (model(), walks());
    let pattern = |layer| Site::Attention(layer, AttentionSite::Pattern);
    let sites = [ENCODER, CROSS].map(pattern);
    let seen = model
        .activations(Walk::rows(&walks, &Device::flex()), &sites)
        .unwrap();
    let [encoder, cross] = sites.map(|site| {
        let weights = seen.tensor::<4>(site);
        (
            weights.dims(),
            weights.into_data().try_into_vec::<f32>().unwrap(),
        )
    });
    assert_eq!(cross.0, [walks.len(), 2, TARGET, SOURCE]);

    let before = |_: usize, query: usize| Some([(query + SOURCE - 1) % SOURCE]);
    let scores = score_targets(&LayerPattern::of_all_keys(encoder.0, &encoder.1), before).unwrap();
    assert_eq!([scores[0].value, scores[1].value], [1.0, 0.125]);
    assert_eq!([scores[0].null, scores[0].ceiling], [0.125, 1.0]);

    let pattern = LayerPattern::of_all_keys(cross.0, &cross.1);
    let behind = |walk: usize, query: usize| Some(walks[walk].place_of(query).map(|at| at + 1));
    let scores = score_targets(&pattern, behind).unwrap();
    assert_eq!([scores[0].value, scores[1].value], [1.0, 0.0]);
    let itself = |walk: usize, query: usize| Some(walks[walk].place_of(query));
    let scores = score_targets(&pattern, itself).unwrap();
    assert_eq!([scores[0].value, scores[1].value], [0.0, 1.0]);
}

#[test]
fn without_a_link_of_the_chain_the_loss_is_the_one_worked_out() {
    let (model, behaviour) = (model(), behaviour());
    let without = |heads: &[&str], ablation| {
        let heads: Vec<HeadName> = heads.iter().map(|name| head(name)).collect();
        ablate(&model, &behaviour, &heads, ablation).unwrap()
    };
    assert_is(without(&[], Ablation::Zero), 1.0, untouched());
    for ablation in [Ablation::Zero, Ablation::Mean] {
        // Without the previous tokens no key matches.
        assert_is(without(&["L0H0"], ablation), 0.0, undirected());
    }
    assert_is(without(&["L2H0"], Ablation::Zero), 0.0, silent());
    // The mean over all tokens changes all logits alike.
    assert_is(without(&["L2H0"], Ablation::Mean), 0.0, silent());
    assert_is(without(&["L0H0", "L2H0"], Ablation::Zero), 0.0, silent());
}

#[test]
fn a_head_that_does_nothing_costs_nothing() {
    let (model, behaviour) = (model(), behaviour());
    let untouched = behaviour.measure(&model, &mut NoProbe);
    let idle = ["L0H1", "L1H0", "L1H1", "L2H1"].map(head);
    for ablation in [Ablation::Zero, Ablation::Mean, Ablation::Resample] {
        for head in idle {
            let without = ablate(&model, &behaviour, &[head], ablation).unwrap();
            assert_eq!(without, untouched, "{head} {ablation:?}");
        }
        assert_eq!(
            ablate(&model, &behaviour, &idle, ablation).unwrap(),
            untouched
        );
    }
}

#[test]
fn heads_that_write_nothing_are_known_from_their_outputs() {
    let model = model();
    let rows = Walk::rows(&walks(), &Device::flex());
    let seen = model.activations(rows, &writes_sites(&model)).unwrap();
    for writes in head_writes(&model, &seen).unwrap() {
        let is_at_work = [head("L0H0"), head("L2H0")].contains(&writes.head);
        assert_eq!(writes.everywhere() > 0.0, is_at_work, "{}", writes.head);
    }
}

#[test]
fn the_encoder_is_read_through_the_keys_of_the_cross_attention_alone() {
    let (model, behaviour) = (model(), behaviour());
    let through =
        |writer, input| path_test(&model, &behaviour, &[head(writer)], CROSS, input).unwrap();
    assert_is(through("L0H0", Input::Key).unwrap(), 0.0, undirected());
    assert_is(through("L0H0", Input::Value).unwrap(), 1.0, untouched());
    // The queries read the stream of the target, into which the encoder does not write.
    assert!(through("L0H0", Input::Query).is_none());
    assert!(through("L1H0", Input::Key).is_none());
    assert_is(through("L1H0", Input::Query).unwrap(), 1.0, untouched());

    let [query, key, value] = path_tests(&model, &behaviour, &[head("L0H0")], CROSS)
        .unwrap()
        .unwrap();
    assert_is(query, 1.0, untouched());
    assert_is(key, 0.0, undirected());
    assert_is(value, 1.0, untouched());
    assert!(
        path_tests(&model, &behaviour, &[head("L0H0")], DECODER)
            .unwrap()
            .is_none()
    );

    let of = |name| readers(&model, &behaviour, &[head(name)]).unwrap();
    let [(Reader::Keys, keys), (Reader::Values, values)] = of("L0H0")[..] else {
        panic!("{:?}", of("L0H0"));
    };
    assert_is(keys, 0.0, undirected());
    assert_is(values, 1.0, untouched());
    let [(Reader::Logits, logits)] = of("L2H0")[..] else {
        panic!("{:?}", of("L2H0"));
    };
    assert_is(logits, 0.0, silent());
    assert!(
        keys_and_queries(&model, &behaviour, &[head("L0H0")])
            .unwrap()
            .is_none()
    );
}

#[test]
fn with_its_pattern_held_the_cross_attention_does_not_need_the_encoder() {
    let (model, behaviour) = (model(), behaviour());
    let heads = [head("L0H0")];
    let later = heads_after(&model, &heads);
    let frozen = ablate_frozen(&model, &behaviour, &heads, Ablation::Zero, &later).unwrap();
    assert_is(frozen, 1.0, untouched());
}

#[test]
fn both_links_are_needed_and_no_other_head() {
    let (model, behaviour) = (model(), behaviour());
    let links = [head("L0H0"), head("L2H0")];
    let joint = pairs(&model, &behaviour, &[links], Ablation::Zero).unwrap()[0].joint;
    assert_eq!(joint.alone.map(|estimate| estimate.mean), [1.0, 1.0]);
    assert_eq!(joint.together.mean, 1.0);
    assert_eq!(joint.interaction.mean, -1.0);
    let set = minimal_set(&model, &behaviour, Ablation::Zero, 0.5).unwrap();
    assert_eq!(set.heads, [head("L0H0")]); // the first of equals; one link is enough
}

#[test]
fn patching_moves_the_answer_from_the_places_that_hold_it() {
    let model = model();
    let all = |patching: &Patching| {
        all_heads(&model)
            .into_iter()
            .zip(patching.heads())
            .filter(|(_, share)| *share != 0.0)
            .map(|(head, share)| (head.to_string(), share))
            .collect::<Vec<_>>()
    };
    // Another token behind the 3.
    let base = [1, 2, 3, 4, 5, 6, 7, 8, 3];
    let source = [1, 2, 3, 9, 5, 6, 7, 8, 3];
    let patching = Patching::new(&model, &base, &source, SOURCE).unwrap();
    assert_eq!(patching.answers(), [4, 9]);
    assert_eq!(patching.differences(), [-4.0, 4.0]);
    assert_eq!(all(&patching), [("L2H0".to_owned(), 1.0)]);
    let source_stream = patching.at(Place::Stream(Site::Block(ENCODER, BlockSite::ResidPre)));
    assert_eq!(
        source_stream.by_position,
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(source_stream.everywhere, 1.0);
    let target_stream = patching.at(Place::Stream(Site::Block(DECODER, BlockSite::ResidPre)));
    assert_eq!(target_stream.by_position, [0.0]);

    // The 3 somewhere else: now the keys move the answer.
    let source = [1, 2, 9, 4, 3, 6, 7, 8, 3];
    let patching = Patching::new(&model, &base, &source, SOURCE).unwrap();
    assert_eq!(patching.answers(), [4, 6]);
    let moved = [("L0H0".to_owned(), 1.0), ("L2H0".to_owned(), 1.0)];
    assert_eq!(all(&patching), moved);
    // At position 5 alone two keys match, half each. At position 3 alone none does, and 4 and 6 are
    // read alike.
    let by_position = patching.at(Place::Head(head("L0H0"))).by_position;
    assert_eq!(by_position, [0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0]);
}

#[test]
fn the_prediction_follows_the_source() {
    let model = model();
    let rows: Vec<Vec<u32>> = walks().into_iter().map(|walk| walk.row).collect();
    let swap = |heads: &[HeadName]| {
        swap_follow(&model, &rows, heads, Ablation::Zero, 0)
            .unwrap()
            .unwrap()
    };
    let found = swap(&[]);
    assert!(found.queries > 100, "{}", found.queries);
    assert_eq!(found.copies.mean, 1.0);
    assert_eq!(found.follows.mean, 1.0);
    assert_eq!(found.control_follows.mean, 0.0);
    assert_eq!(found.control_keeps.mean, 1.0);
    let without = swap(&[head("L0H0")]);
    assert_eq!([without.copies.mean, without.follows.mean], [0.0, 0.0]);
}

#[test]
fn the_lenses_read_what_each_part_wrote() {
    let (model, behaviour) = (model(), behaviour());
    let depths = logit_lens(&model, &behaviour).unwrap();
    let sites: Vec<&str> = depths.iter().map(|depth| depth.site.as_str()).collect();
    let expected = [
        "blocks.1.hook_resid_pre",
        "blocks.1.hook_resid_post",
        "blocks.2.hook_resid_post",
    ];
    assert_eq!(sites, expected);
    assert_is(depths[0].performance, 0.0, silent());
    assert_is(depths[1].performance, 0.0, silent());
    assert_is(depths[2].performance, 1.0, untouched());

    let parts = direct_logit_attribution(&model, &behaviour)
        .unwrap()
        .unwrap();
    let parts: Vec<(&str, f64)> = parts
        .iter()
        .map(|part| (part.name.as_str(), part.logit))
        .collect();
    // Above the mean of 12 logits: 0 − 1/12, and 4 − 4/12.
    let expected = [
        ("blocks.1.hook_resid_pre", -1.0 / 12.0),
        ("L1H0", 0.0),
        ("L1H1", 0.0),
        ("L2H0", 11.0 / 3.0),
        ("L2H1", 0.0),
    ];
    assert_eq!(parts.len(), expected.len());
    for (found, expected) in parts.iter().zip(expected) {
        assert_eq!(found.0, expected.0);
        assert!((found.1 - expected.1).abs() < 1e-6, "{found:?}");
    }
}

#[test]
fn the_circuit_is_in_the_weights() {
    let circuits = Circuits::of(&model()).unwrap();
    let copying = |name| copying_by_eigenvalues(&circuits.full_ov(head(name)));
    assert_eq!(copying("L2H0"), Some(1.0));
    assert_eq!(copying("L2H1"), None);
    let composed = circuits.key_composed_qk(head("L0H0"), head("L2H0"));
    assert_eq!(composed.diagonal_is_largest(), 1.0);
}

#[test]
fn a_test_that_needs_more_than_the_model_has_says_what() {
    let model = model();
    let error = ForbiddenDistances::new(&model, 3, &[1]).unwrap_err();
    let expected = "blocks.3.attn.hook_attn_scores is not in EncoderDecoder";
    assert_eq!(error.to_string(), expected);
    let error = ablate(&model, &behaviour(), &[head("L4H0")], Ablation::Zero).unwrap_err();
    assert_eq!(
        error.to_string(),
        "blocks.4.attn.hook_z is not in EncoderDecoder"
    );
}

#[test]
fn a_pass_that_goes_on_from_a_kept_stream_gives_the_same_logits() {
    let model = model();
    let rows = token_tensor(&[&walks()[0].row], &Device::flex());
    for layer in [ENCODER, DECODER, CROSS] {
        let site = Site::Block(layer, BlockSite::ResidPre);
        let seen = model.activations(rows.clone(), &[site]).unwrap();
        let on = model
            .forward_from(layer, rows.clone(), seen.tensor(site), &mut NoProbe)
            .unwrap();
        assert_eq!(on.into_data(), seen.logits.into_data());
    }
}
