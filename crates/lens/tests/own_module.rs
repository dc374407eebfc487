//! A model of which only the four methods are known that every model must have: a test either gives
//! the numbers of the decoder behind it, or says what it lacks.

#[path = "common/behaviour.rs"]
mod behaviour;
mod common;

use std::fmt::{Debug, Display};

use behaviour::{head, induction};
use burn::tensor::{Device, Int, Tensor};
use common::{LENGTH, hand_built, sequences};
use headlight_heads::Ablation;
use headlight_lens::{
    Circuits, Input, Patching, Place, ablate, ablate_frozen, direct_logit_attribution, head_writes,
    heads_after, keys_and_queries, logit_lens, path_test, path_tests, readers, swap_follow,
    without_distance, writes_sites,
};
use headlight_residual::{AnyProbe, AttentionSite, Decoder, Probed, Site, Sizes, token_tensor};

/// The decoder with attention sites alone.
#[derive(Debug)]
struct Closed {
    model: Decoder,
    sites: Vec<Site>,
}

impl Closed {
    fn new() -> Self {
        Self {
            model: hand_built(),
            sites: [0, 1].into_iter().flat_map(Site::of_attention).collect(),
        }
    }
}

impl Probed for Closed {
    fn sizes(&self) -> Sizes {
        Sizes {
            vocabulary: None,
            ..self.model.sizes()
        }
    }

    fn device(&self) -> Device {
        Device::flex()
    }

    fn sites(&self) -> Vec<Site> {
        self.sites.clone()
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        self.model.forward_probed(rows, probe)
    }
}

#[track_caller]
fn assert_lacks<T: Debug>(found: Result<T, impl Display>, expected: &str) {
    match found {
        Ok(found) => panic!("{found:?}, although {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn what_the_sites_allow_gives_the_numbers_of_the_decoder() {
    let (closed, open, behaviour) = (Closed::new(), hand_built(), induction());
    let heads = [head("L0H0")];
    for ablation in [Ablation::Zero, Ablation::Mean, Ablation::Resample] {
        let without = |model: &dyn Probed| ablate(model, &behaviour, &heads, ablation).unwrap();
        assert_eq!(without(&closed), without(&open));
        assert!(without(&closed).accuracy < 0.5);
        let frozen = |model: &dyn Probed| {
            let later = heads_after(model, &heads);
            ablate_frozen(model, &behaviour, &heads, ablation, &later).unwrap()
        };
        assert_eq!(frozen(&closed), frozen(&open));
    }
    let forbidden = |model: &dyn Probed| without_distance(model, &behaviour, 0, 1).unwrap();
    assert_eq!(forbidden(&closed), forbidden(&open));

    let [base, source] = [[9, 1, 2, 3, 4, 1, 2], [9, 1, 2, 5, 4, 1, 2]];
    let patched = |model: &dyn Probed| {
        let patching = Patching::new(model, &base, &source, 6).unwrap();
        (patching.heads(), patching.at(Place::Head(head("L1H0"))))
    };
    assert_eq!(patched(&closed), patched(&open));
    // Of the places of the decoder, the stream is not one.
    let places = Place::all(&closed);
    assert!(places.iter().all(|place| matches!(place, Place::Head(_))));
    assert_eq!(places.len(), 4);
}

#[test]
fn what_needs_more_says_what_the_model_lacks() {
    let (closed, behaviour) = (Closed::new(), induction());
    let heads = [head("L0H0")];
    let no_stream = "Closed does not give its stream sites";
    assert_lacks(logit_lens(&closed, &behaviour), no_stream);
    assert_lacks(direct_logit_attribution(&closed, &behaviour), no_stream);
    assert_lacks(readers(&closed, &behaviour, &heads), no_stream);
    assert_lacks(keys_and_queries(&closed, &behaviour, &heads), no_stream);
    assert_lacks(
        swap_follow(&closed, &sequences(), &[], Ablation::Zero, 0),
        "Closed does not give its vocabulary",
    );
    assert_lacks(
        Circuits::of(&closed),
        "Closed does not give the weights of its circuits",
    );
    let rows = token_tensor(&sequences(), &Device::flex());
    assert_lacks(
        closed.activations(rows.clone(), &writes_sites(&closed)),
        "blocks.0.hook_resid_pre is not in Closed",
    );
    let seen = hand_built()
        .activations(rows, &writes_sites(&closed))
        .unwrap();
    assert_lacks(
        head_writes(&closed, &seen),
        "Closed does not give its attention weights",
    );
    // It does not say that its stream is a sum.
    assert_eq!(
        path_test(&closed, &behaviour, &heads, 1, Input::Key).unwrap(),
        None
    );

    let few = Closed {
        sites: vec![Site::Attention(0, AttentionSite::Z)],
        ..Closed::new()
    };
    assert_lacks(
        ablate(&few, &behaviour, &[head("L1H0")], Ablation::Zero),
        "blocks.1.attn.hook_z is not in Closed",
    );
    assert_lacks(
        ablate_frozen(&few, &behaviour, &heads, Ablation::Zero, &[head("L1H0")]),
        "blocks.1.attn.hook_pattern is not in Closed",
    );
    assert_lacks(
        without_distance(&few, &behaviour, 1, 1),
        "blocks.1.attn.hook_attn_scores is not in Closed",
    );
    assert_lacks(
        Patching::new(&few, &[0; LENGTH], &[1; LENGTH], 1),
        "blocks.1.attn.hook_z is not in Closed",
    );
}

/// A decoder that says its stream is a sum, and lets no probe to where it is read.
#[derive(Debug)]
struct Summed(Closed);

impl Probed for Summed {
    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn device(&self) -> Device {
        Device::flex()
    }

    fn sites(&self) -> Vec<Site> {
        self.0.sites()
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        self.0.forward_probed(rows, probe)
    }

    fn summands(&self, site: Site) -> Option<Vec<Site>> {
        self.0.model.summands(site)
    }
}

#[test]
fn nothing_is_hidden_silently_from_an_input_that_no_probe_meets() {
    let (model, behaviour) = (Summed(Closed::new()), induction());
    let heads = [head("L0H0")];
    let lacks = "blocks.1.hook_k_input is not in Summed";
    assert_lacks(path_test(&model, &behaviour, &heads, 1, Input::Key), lacks);
    let lacks = "blocks.1.hook_q_input is not in Summed";
    assert_lacks(path_tests(&model, &behaviour, &heads, 1), lacks);
}
