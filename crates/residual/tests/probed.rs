//! A decoder is what it says about itself as a `Probed` model, in every architecture; a model that is
//! not is found out.

mod common;

use burn::tensor::{Device, Int, Tensor};
use common::{LAYERS, config, model, models, tokens, values};
use headlight_heads::MayAttend;
use headlight_residual::{
    AnyProbe, AttentionSite, BlockSite, Decoder, Edit, Edits, Interest, NoProbe, Part, Probe,
    Probed, Readout, Site, Sizes, Targets, check_probed,
};

#[test]
fn every_architecture_is_what_it_says_about_itself() {
    for (name, model) in models() {
        if let Err(error) = check_probed(&model, tokens()) {
            panic!("{name}: {error}");
        }
    }
}

/// Before the first position that is asked for, the last block computes keys and values only.
#[test]
fn scores_that_are_asked_for_are_those_of_the_whole_pass() {
    let asked = [[2, 4, 5], [3, 4, 5]].map(|asked| (0..6).map(|at| asked.contains(&at)).collect());
    let targets = Targets::from(tokens());
    let only = targets.clone().only(&asked);
    let is_asked: Vec<bool> = asked.concat();
    for (name, model) in models() {
        let whole = model.next_token_scores(tokens(), &targets, &mut NoProbe);
        let some = model.next_token_scores(tokens(), &only, &mut NoProbe);
        let kept = model.kept_for(1);
        let seen = model.activations(tokens(), &kept).unwrap();
        let on = model.next_token_scores_from(1, &seen, tokens(), &only, &mut NoProbe);
        for found in [some, on] {
            let losses = values(whole.losses.clone())
                .into_iter()
                .zip(values(found.losses));
            for ((whole, found), &is_asked) in losses.zip(&is_asked) {
                let expected = if is_asked { whole } else { 0.0 };
                assert!(
                    (found - expected).abs() < 1e-5,
                    "{name}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_pass_from_a_kept_stream_gives_the_bits_of_the_whole_pass() {
    for (name, model) in models() {
        for layer in 0..LAYERS {
            let site = Site::Block(layer, BlockSite::ResidPre);
            let seen = model.activations(tokens(), &[site]).unwrap();
            let heads = Site::Attention(layer, AttentionSite::Z);
            let edits = || Edits::default().part(heads, Part::heads(&[1]), Edit::Zero);
            let whole = model.forward_probed(tokens(), &mut edits());
            for probed in [&model as &dyn Probed, &Faulty::none(&model)] {
                let stream = seen.tensor(site);
                let on = probed.forward_from(layer, tokens(), stream, &mut edits());
                assert_eq!(values(on.unwrap()), values(whole.clone()), "{name} {layer}");
            }
        }
        let beyond = model.forward_from(
            LAYERS,
            tokens(),
            Tensor::zeros([2, 6, 24], &Device::flex()),
            &mut NoProbe,
        );
        let expected = format!("blocks.{LAYERS}.hook_resid_pre is not in this model");
        assert_eq!(beyond.unwrap_err().to_string(), expected);
    }
}

#[test]
fn scores_from_kept_blends_are_the_bits_of_the_whole_pass() {
    let targets = Targets::from(tokens().flip([1]));
    for (name, model) in models() {
        for layer in 0..LAYERS {
            let kept = model
                .activations(tokens(), &Probed::kept_for(&model, layer))
                .unwrap();
            let heads = Site::Attention(layer, AttentionSite::Z);
            for edit in [Edit::Zero, Edit::Mean] {
                let edits = || Edits::default().part(heads, Part::heads(&[1]), edit.clone());
                let whole = Probed::next_token_scores(&model, tokens(), &targets, &mut edits());
                let on =
                    model.next_token_scores_from(layer, &kept, tokens(), &targets, &mut edits());
                assert_eq!(values(on.losses), values(whole.losses), "{name} {layer}");
                assert_eq!(values(on.right), values(whole.right), "{name} {layer}");
            }
            let untouched = Probed::next_token_scores(&model, tokens(), &targets, &mut NoProbe);
            let on = model.next_token_scores_from(layer, &kept, tokens(), &targets, &mut NoProbe);
            assert_eq!(
                values(on.losses),
                values(untouched.losses),
                "{name} {layer}"
            );
        }
    }
}

/// A decoder that says or does something wrong.
#[derive(Debug)]
struct Faulty {
    model: Decoder,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    ListsTooMuch,
    ListsTooLittle,
    DropsChanges,
    ChangedByReading,
    CountsHeadsWrong,
    SeesLessThanItDoes,
    LacksALayer,
    SumWithoutAPart,
    SumOfAnUnknownPart,
    AnotherReadout,
}

impl Faulty {
    fn none(model: &Decoder) -> Self {
        Self {
            model: model.clone(),
            fault: None,
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

const ATTN_OUT: Site = Site::Block(1, BlockSite::AttnOut);

impl Probed for Faulty {
    fn sizes(&self) -> Sizes {
        let mut sizes = self.model.sizes();
        if self.is(Fault::CountsHeadsWrong) {
            sizes.layers[2].n_heads = 5;
        }
        if self.is(Fault::SeesLessThanItDoes) {
            sizes.layers[0].may_attend = MayAttend::Window(2);
        }
        if self.is(Fault::LacksALayer) {
            sizes.layers.pop();
        }
        sizes
    }

    fn device(&self) -> Device {
        Device::flex()
    }

    fn sites(&self) -> Vec<Site> {
        let mut sites = self.model.sites();
        if self.is(Fault::ListsTooMuch) {
            sites.push(Site::Block(0, BlockSite::MlpOut));
        }
        if self.is(Fault::ListsTooLittle) {
            sites.retain(|site| *site != ATTN_OUT);
        }
        sites
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        if self.is(Fault::DropsChanges) {
            return self
                .model
                .forward_probed(rows, &mut OnlyReadAt(ATTN_OUT, probe));
        }
        let is_read = probe.interest_at(ATTN_OUT) == Interest::Read;
        let logits = self.model.forward_probed(rows, probe);
        if is_read && self.is(Fault::ChangedByReading) {
            logits.mul_scalar(1.0 + 1e-6)
        } else {
            logits
        }
    }

    fn summands(&self, site: Site) -> Option<Vec<Site>> {
        let mut summands = self.model.summands(site)?;
        if self.is(Fault::SumWithoutAPart) {
            summands.retain(|&site| site != Site::Attention(0, AttentionSite::Result));
        }
        if self.is(Fault::SumOfAnUnknownPart) {
            summands.push(Site::Block(7, BlockSite::MlpOut));
        }
        Some(summands)
    }

    fn stream_sites(&self) -> Vec<Site> {
        self.model.stream_sites()
    }

    fn readout(&self) -> Option<Readout> {
        let mut readout = self.model.readout();
        if self.is(Fault::AnotherReadout) {
            readout.norm = None;
        }
        Some(readout)
    }
}

/// Shows every change at a site to nobody.
struct OnlyReadAt<'a>(Site, &'a mut dyn AnyProbe);

impl Probe for OnlyReadAt<'_> {
    fn interest(&self, site: Site) -> Interest {
        let interest = self.1.interest(site);
        if site == self.0 {
            interest.min(Interest::Read)
        } else {
            interest
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        self.1.at(site, activation)
    }
}

#[test]
fn a_model_that_is_not_what_it_says_is_found_out() {
    let cases = [
        (
            Fault::ListsTooMuch,
            "blocks.0.hook_mlp_out is one of its sites, and a probe does not meet it",
        ),
        (
            Fault::ListsTooLittle,
            "a probe meets blocks.1.hook_attn_out, which is none of its sites",
        ),
        (
            Fault::DropsChanges,
            "what a probe puts at blocks.1.hook_attn_out does not reach the logits",
        ),
        (
            Fault::ChangedByReading,
            "a probe that reads changes its logits",
        ),
        (
            Fault::CountsHeadsWrong,
            "blocks.2.attn.hook_q has the shape [2, 6, 4, 6], not [2, _, 5, 6]",
        ),
        (
            Fault::SeesLessThanItDoes,
            "blocks.0.attn.hook_pattern has weight on key 0 at query 2, which may not attend to it",
        ),
        (
            Fault::LacksALayer,
            "it has blocks.2.attn.hook_q, and 2 layers",
        ),
        (
            Fault::SumWithoutAPart,
            "the stream at blocks.0.hook_resid_post is not the sum of its summands",
        ),
        (
            Fault::SumOfAnUnknownPart,
            "blocks.7.hook_mlp_out, a summand of blocks.0.hook_resid_pre, is none of its sites",
        ),
        (
            Fault::AnotherReadout,
            "its readout of blocks.2.hook_resid_post is not its logits",
        ),
    ];
    let model = model(&config(None));
    check_probed(&Faulty::none(&model), tokens()).unwrap();
    for (fault, expected) in cases {
        let faulty = Faulty {
            model: model.clone(),
            fault: Some(fault),
        };
        let error = check_probed(&faulty, tokens()).unwrap_err();
        assert_eq!(error.to_string(), format!("Faulty: {expected}"));
    }
}

#[test]
fn scores_that_nobody_asks_for_are_0_and_the_others_keep_their_values() {
    let [batch, outputs] = tokens().dims();
    let asked_at = |row: usize, output: usize| row > 0 && output % 3 != 1;
    let asked: Vec<Vec<bool>> = (0..batch)
        .map(|row| (0..outputs).map(|output| asked_at(row, output)).collect())
        .collect();
    let all = Targets::from(tokens().flip([1])).against(tokens());
    for (name, model) in models() {
        let scores = |targets: &Targets| {
            let scores = Probed::next_token_scores(&model, tokens(), targets, &mut NoProbe);
            let difference = scores.difference.unwrap();
            [scores.losses, scores.right, difference].map(values)
        };
        let everywhere = scores(&all);
        let some = scores(&all.clone().only(&asked));
        for (everywhere, some) in everywhere.iter().zip(&some) {
            for (place, (one, other)) in everywhere.iter().zip(some).enumerate() {
                let is_asked = asked_at(place / outputs, place % outputs);
                let expected = if is_asked { *one } else { 0.0 };
                assert!(
                    (other - expected).abs() < 1e-5,
                    "{name} {place}: {other}, {expected}"
                );
            }
        }
        // Twice the same batch: its scores one after the other.
        let twice = Tensor::cat(vec![tokens(), tokens()], 0);
        let targets = all.clone().only(&asked).repeated(2);
        let scores = Probed::next_token_scores(&model, twice, &targets, &mut NoProbe);
        let losses = values(scores.losses);
        let (first, second) = losses.split_at(batch * outputs);
        for (a, b) in first
            .iter()
            .chain(second)
            .zip(some[0].iter().chain(&some[0]))
        {
            assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
        }
        let nothing = all.clone().only(&vec![vec![false; outputs]; batch]);
        let scores = Probed::next_token_scores(&model, tokens(), &nothing, &mut NoProbe);
        assert_eq!(values(scores.losses), vec![0.0; batch * outputs]);
    }
}
