//! Effects of edges against other ways to the same numbers: on every architecture, on a model that
//! is linear, and on a circuit of which every edge is known.

#[path = "../../residual/tests/common/mod.rs"]
mod architectures;
mod common;

use std::collections::BTreeSet;

use burn::tensor::{Device, Int, Tensor};
use common::{hand_built, sequences};
use headlight_heads::{Corruption, Destination, Edge, HeadName, Metric, PatchDirection, Source};
use headlight_lens::{
    EdgeError, EdgeGraph, EdgePatching, Effects, Faithfulness, PromptPair, RandomSets, curve,
    find_circuit, jaccard, pairs_of, ranked, stability,
};
use headlight_residual::{
    Activations, AnyProbe, BlockOrder, BlockSite, Decoder, DecoderConfig, Edit, Edits, KeptTensor,
    NoProbe, NormKind, NormPlacement, Part, Probed, Projection, Site, Sizes, token_tensor,
};

const NOISE: PatchDirection = PatchDirection::Noise;

/// Prompts of different lengths.
fn pairs() -> Vec<PromptPair> {
    let pair = |clean: &[u32], corrupted: &[u32], answer, wrong| PromptPair {
        clean: clean.to_vec(),
        corrupted: corrupted.to_vec(),
        answer,
        wrong,
    };
    vec![
        pair(&[0, 1, 2, 3, 4, 5], &[6, 1, 5, 1, 0, 5], 3, 2),
        pair(&[6, 6, 5], &[0, 2, 5], 0, 6),
    ]
}

/// Every architecture whose stream is a sum.
fn models() -> Vec<(&'static str, Decoder)> {
    let mut models = architectures::models();
    models.retain(|(_, model)| model.config().norm_placement != NormPlacement::Post);
    models
}

fn head(layer: usize, head: usize) -> HeadName {
    HeadName { layer, head }
}

/// The hand-built induction circuit on the one-hot stream itself.
fn without_norms() -> Decoder {
    let mut model = hand_built();
    for block in &mut model.blocks {
        block.ln1 = None;
    }
    model
}

/// The largest of some numbers, sign left out.
fn largest(numbers: &[f64]) -> f64 {
    numbers
        .iter()
        .fold(0.0, |most, number| number.abs().max(most))
}

#[test]
fn the_graph_has_the_edges_of_the_formula() {
    let (heads, kv_heads, layers) = (4, 2, 3);
    let config = DecoderConfig {
        n_kv_heads: Some(kv_heads),
        ..architectures::config(None)
    };
    let graph = EdgeGraph::of(&architectures::model(&config)).unwrap();
    let sum: usize = (0..layers).map(|layer| 2 + heads * layer).sum();
    let expected = (heads + 2 * kv_heads) * sum + 2 + heads * layers;
    assert_eq!(graph.edges().len(), expected);
    // Keys bear the name of the first head that reads them.
    let keys: BTreeSet<Destination> = graph.edges().iter().map(|edge| edge.destination).collect();
    assert!(keys.contains(&Destination::Keys(head(1, 2))));
    assert!(!keys.contains(&Destination::Keys(head(1, 1))));
    assert!(keys.contains(&Destination::Queries(head(1, 1))));
    for (index, &edge) in graph.edges().iter().enumerate() {
        assert_eq!(graph.index(edge), Some(index));
    }
}

#[test]
fn a_parallel_block_does_not_read_itself() {
    for (order, reads_own_heads) in [
        (BlockOrder::Sequential, true),
        (BlockOrder::Parallel, false),
    ] {
        let config = DecoderConfig {
            block_order: order,
            ..architectures::neox()
        };
        let graph = EdgeGraph::of(&architectures::model(&config)).unwrap();
        let edge = |source| Edge {
            source,
            destination: Destination::FeedForward(1),
        };
        let own = graph.index(edge(Source::Head(head(1, 0))));
        assert_eq!(own.is_some(), reads_own_heads, "{order:?}");
        assert!(graph.index(edge(Source::Head(head(0, 0)))).is_some());
        assert!(graph.index(edge(Source::FeedForward(0))).is_some());
        assert!(graph.index(edge(Source::FeedForward(1))).is_none());
    }
}

#[test]
fn what_has_no_edges_or_no_gradient_says_so() {
    for (name, model) in architectures::models() {
        let found = EdgePatching::new(&model, &pairs(), Metric::Loss);
        if model.config().norm_placement == NormPlacement::Post {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("norms replace it"), "{name}: {error}");
        } else {
            assert!(found.is_ok(), "{name}");
        }
    }
    let model = architectures::model(&architectures::config(None));
    let divergence = EdgePatching::new(&model, &pairs(), Metric::Kl).unwrap();
    assert_eq!(divergence.eap(NOISE).unwrap_err(), EdgeError::NoGradient);
    assert_eq!(
        divergence.atp_star(NOISE).unwrap_err(),
        EdgeError::NoGradient
    );
    assert!(largest(divergence.at_clean()) < 1e-6);
    assert!(divergence.at_corrupted().iter().all(|nats| *nats > 0.0));

    let mut wrong = pairs();
    wrong[1].corrupted.pop();
    let mut empty = pairs();
    empty[0].clean.clear();
    empty[0].corrupted.clear();
    let mut unknown = pairs();
    unknown[0].wrong = 7;
    for (pairs, expected) in [
        (
            wrong,
            "pair 1: the clean prompt has 3 tokens, the corrupted one 2",
        ),
        (empty, "pair 0: the prompts have no tokens"),
        (unknown, "pair 0: token 7 of 7"),
        (Vec::new(), "there are no pairs of prompts"),
    ] {
        let error = EdgePatching::new(&model, &pairs, Metric::Loss).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn all_edges_are_the_clean_run_and_no_edge_is_the_corrupted_one() {
    for (name, model) in models() {
        for metric in Metric::ALL {
            let patching = EdgePatching::new(&model, &pairs(), metric).unwrap();
            let count = patching.graph().edges().len();
            let ends = [
                (true, patching.at_clean()),
                (false, patching.at_corrupted()),
            ];
            for (kept, expected) in ends {
                let found = patching.with_edges(&vec![kept; count]).unwrap();
                for (found, expected) in found.iter().zip(expected) {
                    let close = (found - expected).abs() < 2e-5 * expected.abs().max(1.0);
                    assert!(close, "{name} {metric} {kept}: {found}, not {expected}");
                }
            }
        }
    }
}

#[test]
fn edges_that_lead_nowhere_leave_the_corrupted_run_and_a_path_does_not() {
    for (name, model) in models() {
        let patching = EdgePatching::new(&model, &pairs(), Metric::LogitDifference).unwrap();
        let edges = patching.graph().edges();
        let with = |keep: &dyn Fn(Edge) -> bool| {
            let kept: Vec<bool> = edges.iter().map(|&edge| keep(edge)).collect();
            patching.with_edges(&kept).unwrap()
        };
        // Heads of layer 0 read the prompt, and nobody reads them.
        let into_first = |edge: Edge| edge.destination.layer() == Some(0);
        assert_eq!(with(&into_first), patching.at_corrupted(), "{name}");
        // Heads of layer 0 are read, and see the corrupted prompt.
        let out_of_first = |edge: Edge| edge.source.layer() == Some(0);
        assert_eq!(with(&out_of_first), patching.at_corrupted(), "{name}");
        // Both: a path, also through keys and values that heads share.
        let of_last_head = |edge: Edge| {
            let head = Source::Head(head(0, model.n_heads() - 1));
            edge.source == head && edge.destination == Destination::Logits
        };
        let values =
            |edge: Edge| matches!(edge.destination, Destination::Values(_)) && into_first(edge);
        let through = with(&|edge| values(edge) || of_last_head(edge));
        assert_ne!(through, patching.at_corrupted(), "{name}");
    }
}

#[test]
fn an_edge_patched_alone_is_all_edges_but_one() {
    for (name, model) in models() {
        let patching = EdgePatching::new(&model, &pairs(), Metric::LogitDifference).unwrap();
        let count = patching.graph().edges().len();
        let alone = patching.exact_of_all(NOISE).unwrap();
        for edge in (0..count).step_by(7) {
            let mut kept = vec![true; count];
            kept[edge] = false;
            let found = patching.with_edges(&kept).unwrap();
            for pair in 0..2 {
                let expected = found[pair] - patching.at_clean()[pair];
                let effect = alone.by_pair[edge][pair];
                let close = (effect - expected).abs() < 2e-5 * expected.abs().max(1.0);
                let edge = patching.graph().edges()[edge];
                assert!(close, "{name} {edge}: {effect}, not {expected}");
            }
        }
        // The other direction is the same with the prompts exchanged.
        let mut exchanged = pairs();
        for pair in &mut exchanged {
            std::mem::swap(&mut pair.clean, &mut pair.corrupted);
        }
        let other = EdgePatching::new(&model, &exchanged, Metric::LogitDifference).unwrap();
        let back = patching.exact(&[3, 1], PatchDirection::Denoise).unwrap();
        let expected = other.exact(&[3, 1], NOISE).unwrap();
        assert_eq!(back.by_pair, expected.by_pair, "{name}");
        assert_eq!(back.importance(0), -expected.importance(0), "{name}");
    }
}

/// The logit difference of each pair, in a pass of its own.
fn differences(model: &dyn Probed, edits: impl Fn(usize) -> Edits) -> Vec<f64> {
    let mut found = Vec::new();
    for (index, pair) in pairs().iter().enumerate() {
        let inputs = token_tensor(&[&pair.clean], &Device::flex());
        let logits = model.forward_probed(inputs, &mut edits(index));
        let [_, _, classes] = logits.dims();
        let logits: Vec<f64> = logits.into_data().iter::<f64>().collect();
        let of = |token: u32| logits[(pair.clean.len() - 1) * classes + token as usize];
        found.push(of(pair.answer) - of(pair.wrong));
    }
    found
}

/// What stands at `sites` on one prompt.
fn seen(model: &Decoder, prompt: &[u32], sites: &[Site]) -> Activations {
    let inputs = token_tensor(&[prompt], &Device::flex());
    model.activations(inputs, sites).unwrap()
}

/// What a source writes on one prompt, `[1, pos, d_model]`.
fn written(model: &Decoder, prompt: &[u32], source: Source) -> Tensor<3> {
    let of_head = |layer| headlight_residual::site_of_heads(model, layer);
    match source {
        Source::Embedding => seen(model, prompt, &[Site::Embed]).tensor(Site::Embed),
        Source::Positions => seen(model, prompt, &[Site::PosEmbed]).tensor(Site::PosEmbed),
        Source::FeedForward(layer) => {
            let site = Site::Block(layer, BlockSite::MlpOut);
            seen(model, prompt, &[site]).tensor(site)
        }
        Source::Head(head) => {
            let site = of_head(head.layer);
            let heads = seen(model, prompt, &[site]).tensor::<4>(site);
            heads.narrow(2, head.head, 1).squeeze_dim(2)
        }
    }
}

/// A step of `size` along the edge, from the clean value to the corrupted one.
fn step(model: &Decoder, edge: Edge, pair: &PromptPair, size: f64) -> Edits {
    let [clean, corrupted] =
        [&pair.clean, &pair.corrupted].map(|prompt| written(model, prompt, edge.source));
    let step = (corrupted - clean).mul_scalar(size);
    let group = model.config().n_heads / model.config().n_kv_heads();
    let by_head = |head: HeadName, projection, group: usize| {
        let step = KeptTensor::from(step.clone().unsqueeze_dim::<4>(2));
        let part = Part::heads(&[head.head / group]);
        let site = Site::HeadInput(head.layer, projection);
        Edits::default().part(site, part, Edit::Add(step))
    };
    match edge.destination {
        Destination::Queries(head) => by_head(head, Projection::Query, 1),
        Destination::Keys(head) => by_head(head, Projection::Key, group),
        Destination::Values(head) => by_head(head, Projection::Value, group),
        Destination::FeedForward(layer) => {
            let site = Site::Block(layer, BlockSite::MlpIn);
            Edits::default().at(site, Edit::Add(step.into()))
        }
        Destination::Logits => {
            let last = *model.stream_sites().last().unwrap();
            Edits::default().at(last, Edit::Add(step.into()))
        }
    }
}

#[test]
fn a_whole_step_is_the_exact_effect_and_small_steps_are_its_estimate() {
    const SMALL: f64 = 0.004;
    for (name, model) in models() {
        let pairs = pairs();
        let patching = EdgePatching::new(&model, &pairs, Metric::LogitDifference).unwrap();
        let (exact, estimated) = (
            patching.exact_of_all(NOISE).unwrap(),
            patching.eap(NOISE).unwrap(),
        );
        let untouched = differences(&model, |_| Edits::default());
        let size = largest(&estimated.by_pair.concat());
        assert!(size > 0.01, "{name}: nothing has an effect");
        // Every kind of destination in the middle of the model, and the logits.
        let edges = patching.graph().edges().to_vec();
        for (index, edge) in edges.iter().enumerate().skip(1).step_by(5) {
            let stepped =
                |size: f64| differences(&model, |pair| step(&model, *edge, &pairs[pair], size));
            let (whole, up, down) = (stepped(1.0), stepped(SMALL), stepped(-SMALL));
            for pair in 0..2 {
                let effect = whole[pair] - untouched[pair];
                let found = exact.by_pair[index][pair];
                let close = (effect - found).abs() < 2e-5 * effect.abs().max(1.0);
                assert!(close, "{name} {edge}: {found}, not {effect}");
                let slope = (up[pair] - down[pair]) / (2.0 * SMALL);
                let found = estimated.by_pair[index][pair];
                // The second summand is what f32 rounds off.
                let bound = 2e-3 * size + 2e-6 * untouched[pair].abs().max(1.0) / SMALL;
                let close = (slope - found).abs() < bound;
                assert!(close, "{name} {edge}: {found}, not {slope} (of {size})");
            }
        }
    }
}

#[test]
fn a_source_patched_for_all_readers_is_its_activation_patched() {
    for (name, model) in models() {
        let pairs = pairs();
        let patching = EdgePatching::new(&model, &pairs, Metric::LogitDifference).unwrap();
        let untouched = differences(&model, |_| Edits::default());
        for (source, found) in patching.exact_of_sources().unwrap() {
            let Source::FeedForward(layer) = source else {
                continue;
            };
            let site = Site::Block(layer, BlockSite::MlpOut);
            let patched = differences(&model, |pair| {
                let other = seen(&model, &pairs[pair].corrupted, &[site]);
                Edits::default().at(site, Edit::Replace(other.kept(site).clone()))
            });
            let expected = (patched[0] + patched[1] - untouched[0] - untouched[1]) / 2.0;
            let close = (found.mean - expected).abs() < 2e-5 * expected.abs().max(1.0);
            assert!(close, "{name} {source}: {}, not {expected}", found.mean);
        }
        // The estimate of a part is the sum over its edges.
        let estimated = patching.eap(NOISE).unwrap();
        let (source, sum) = estimated.by_source(patching.graph())[0];
        assert_eq!(source, Source::Embedding);
        let edges = patching.graph().edges().iter().zip(estimated.means());
        let edges = edges.filter(|(edge, _)| edge.source == source);
        let expected: f64 = edges.map(|(_, effect)| effect).sum();
        assert!(
            (sum.mean - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{name}"
        );
    }
}

#[test]
fn readers_hidden_together_are_the_input_of_the_layer() {
    for (name, model) in models() {
        let pairs = pairs();
        let patching = EdgePatching::new(&model, &pairs, Metric::LogitDifference).unwrap();
        let source = Source::Head(head(0, 1));
        let readers: Vec<usize> = (0..model.n_heads())
            .map(|reader| {
                let destination = Destination::Queries(head(1, reader));
                patching
                    .graph()
                    .index(Edge {
                        source,
                        destination,
                    })
                    .unwrap()
            })
            .collect();
        let joint = patching.joint(&readers).unwrap();
        let untouched = differences(&model, |_| Edits::default());
        let hidden = differences(&model, |pair| {
            let [clean, corrupted] = [&pairs[pair].clean, &pairs[pair].corrupted]
                .map(|prompt| written(&model, prompt, source));
            let site = Site::Block(1, BlockSite::QInput);
            Edits::default().at(site, Edit::Add((corrupted - clean).into()))
        });
        let expected = (hidden[0] + hidden[1] - untouched[0] - untouched[1]) / 2.0;
        let together = joint.together.mean;
        assert!(
            (together - expected).abs() < 2e-5,
            "{name}: {together}, not {expected}"
        );
        let interaction = together - joint.sum.mean;
        assert!(
            (joint.interaction.mean - interaction).abs() < 1e-9,
            "{name}"
        );
    }
}

/// A model that looks where it looked on one prompt, whatever it reads.
#[derive(Debug)]
struct Held {
    model: Decoder,
    patterns: Activations,
}

impl Probed for Held {
    fn sizes(&self) -> Sizes {
        self.model.sizes()
    }

    fn device(&self) -> Device {
        Device::flex()
    }

    fn sites(&self) -> Vec<Site> {
        self.model.sites()
    }

    fn forward_probed(&self, rows: Tensor<2, Int>, probe: &mut dyn AnyProbe) -> Tensor<3> {
        let mut held = Edits::default();
        for site in self.model.pattern_sites() {
            held = held.at(site, Edit::Replace(self.patterns.kept(site).clone()));
        }
        self.model.forward_probed(rows, &mut (held, probe))
    }

    fn summands(&self, site: Site) -> Option<Vec<Site>> {
        self.model.summands(site)
    }

    fn stream_sites(&self) -> Vec<Site> {
        self.model.stream_sites()
    }

    fn readout(&self) -> Option<headlight_residual::Readout> {
        Some(self.model.readout())
    }
}

#[test]
fn where_everything_is_linear_estimates_are_exact_and_add_up() {
    let config = DecoderConfig {
        norm: NormKind::None,
        init_std: 0.2,
        ..architectures::config(None)
    };
    let model = architectures::model(&config);
    let pair = vec![pairs().remove(0)];
    let patterns = seen(&model, &pair[0].clean, &model.pattern_sites());
    let held = Held { model, patterns };
    let patching = EdgePatching::new(&held, &pair, Metric::LogitDifference).unwrap();
    let exact = patching.exact_of_all(NOISE).unwrap();
    let estimated = patching.eap(NOISE).unwrap();
    let (averaged, completeness) = patching.eap_ig(NOISE, 5).unwrap();
    let (exact, estimated) = (exact.means(), estimated.means());
    let size = largest(&exact);
    assert!(size > 0.01, "{size}");
    for (index, edge) in patching.graph().edges().iter().enumerate() {
        let (exact, estimated) = (exact[index], estimated[index]);
        assert!(
            (exact - estimated).abs() < 1e-4 * size,
            "{edge}: {estimated}, not {exact}"
        );
        let averaged = averaged.by_pair[index][0];
        assert!(
            (exact - averaged).abs() < 1e-4 * size,
            "{edge}: {averaged}, not {exact}"
        );
    }
    let into_logits = patching.graph().edges().iter().enumerate();
    let into_logits = into_logits.filter(|(_, edge)| edge.destination == Destination::Logits);
    let sum: f64 = into_logits.map(|(index, _)| exact[index]).sum();
    let whole = patching.at_corrupted()[0] - patching.at_clean()[0];
    assert!(
        (sum - whole).abs() < 1e-4 * whole.abs(),
        "{sum}, not {whole}"
    );
    assert!((completeness.share - 1.0).abs() < 1e-3, "{completeness:?}");
}

/// The mean over pairs of the size of the sum over the edges of a part.
fn size_of_sum(patching: &EdgePatching, effects: &Effects, source: Source) -> f64 {
    let mut sums = [0.0; 2];
    for (edge, by_pair) in patching.graph().edges().iter().zip(&effects.by_pair) {
        if edge.source == source {
            sums[0] += by_pair[0];
            sums[1] += by_pair[1];
        }
    }
    f64::midpoint(sums[0].abs(), sums[1].abs())
}

/// In one layer without norms the logits are linear in the pattern. So what recomputed softmax says
/// is exact, which the gradient through softmax is not.
#[test]
fn recomputed_softmax_is_exact_where_all_behind_it_is_linear() {
    let config = DecoderConfig {
        n_layers: 1,
        norm: NormKind::None,
        init_std: 0.9,
        ..architectures::config(None)
    };
    let model = architectures::model(&config);
    let patching = EdgePatching::new(&model, &pairs(), Metric::LogitDifference).unwrap();
    let exact = patching.exact_of_all(NOISE).unwrap();
    let star = patching.atp_star(NOISE).unwrap();
    let plain = patching.eap(NOISE).unwrap();
    let size = largest(&exact.by_pair.concat());
    let mut misses: f64 = 0.0;
    for (index, edge) in patching.graph().edges().iter().enumerate() {
        for pair in 0..2 {
            let (exact, found) = (exact.by_pair[index][pair], star.edges.by_pair[index][pair]);
            assert!(
                (exact - found).abs() < 1e-4 * size,
                "{edge}: {found}, not {exact}"
            );
            misses = misses.max((exact - plain.by_pair[index][pair]).abs());
        }
    }
    assert!(
        misses > 0.05 * size,
        "{misses} of {size}: softmax is nearly linear"
    );
    // No other layer can be dropped for a head: its size is that of the sum over its edges.
    for (source, effect) in &star.parts {
        if let Source::Head(_) = source {
            let expected = size_of_sum(&patching, &star.edges, *source);
            assert!((effect.mean - expected).abs() < 1e-6 * size, "{source}");
        }
    }
}

#[test]
fn dropped_gradients_leave_what_goes_past_the_layer() {
    for (name, model) in models() {
        let patching = EdgePatching::new(&model, &pairs(), Metric::LogitDifference).unwrap();
        let star = patching.atp_star(NOISE).unwrap();
        let layers = model.blocks.len();
        // What the last layer writes goes past all others: its whole estimate is left.
        let last: Vec<_> = star
            .parts
            .iter()
            .filter(|(source, _)| matches!(source, Source::Head(head) if head.layer + 1 == layers))
            .collect();
        assert!(!last.is_empty(), "{name}");
        for (source, effect) in last {
            // A feed-forward of the same layer is the layer's own, and never dropped for it.
            let expected = size_of_sum(&patching, &star.edges, *source);
            let close = (effect.mean - expected).abs() < 1e-5 * expected.max(1.0);
            assert!(close, "{name} {source}: {}, not {expected}", effect.mean);
        }
        assert!(
            star.parts.iter().all(|(_, effect)| effect.mean >= 0.0),
            "{name}"
        );
    }
}

#[test]
fn averaged_gradients_add_up_as_the_points_grow_dense() {
    for (name, model) in models() {
        let patching = EdgePatching::new(&model, &pairs(), Metric::Loss).unwrap();
        let (_, few) = patching.eap_ig(NOISE, 5).unwrap();
        let (_, many) = patching.eap_ig(NOISE, 10_240).unwrap();
        assert!((many.share - 1.0).abs() <= 0.01, "{name}: {many:?}");
        assert!(
            many.steps >= few.steps && few.steps == 5,
            "{name}: {few:?}, {many:?}"
        );
    }
}

/// The edges that the hand-built circuit needs under a corruption.
fn needed(corruption: Corruption) -> Vec<&'static str> {
    match corruption {
        Corruption::Value => vec!["embedding → values of L1H0", "L1H0 → logits"],
        Corruption::Key => vec![
            "embedding → values of L0H0",
            "L0H0 → keys of L1H0",
            "L1H0 → logits",
        ],
        Corruption::Query => vec!["embedding → queries of L1H0", "L1H0 → logits"],
    }
}

#[test]
fn the_circuit_of_each_corruption_is_the_one_that_was_built() {
    let model = without_norms();
    for corruption in Corruption::ALL {
        let made = pairs_of(&model, &sequences(), corruption, 0).unwrap();
        let counts = (
            made.pairs.len(),
            made.made,
            made.right,
            made.right_on_corrupted,
        );
        assert_eq!(counts, (3, 3, 1.0, 0.0), "{corruption}");
        let pairs = made.pairs;
        let patching = EdgePatching::new(&model, &pairs, Metric::LogitDifference).unwrap();
        let effects = patching.exact_of_all(NOISE).unwrap();
        let circuit = find_circuit(&patching, &patching, &effects, 0.9, RandomSets::of(0))
            .unwrap()
            .unwrap();
        let names = |edges: &[usize]| -> BTreeSet<String> {
            let edges = edges
                .iter()
                .map(|&edge| patching.graph().edges()[edge].to_string());
            edges.collect()
        };
        let expected: BTreeSet<String> =
            needed(corruption).into_iter().map(str::to_owned).collect();
        let mut found = names(&circuit.edges);
        // The current token is in the stream: of a corrupted query, the logits see it directly.
        found.remove("embedding → logits");
        assert_eq!(found, expected, "{corruption}");
        assert!(
            circuit.found.interval.low >= 0.9 && circuit.random.mean < 0.5,
            "{circuit:?}"
        );

        // No other edge has an effect, since nothing else differs or nobody looks there.
        let first: BTreeSet<String> = names(&ranked(&effects)[..expected.len()]);
        if corruption != Corruption::Query {
            assert_eq!(first, expected, "{corruption}");
            let rest = &effects.means();
            let others = ranked(&effects).split_off(expected.len());
            let others: Vec<f64> = others.iter().map(|&edge| rest[edge]).collect();
            assert!(
                largest(&others) < 1e-4,
                "{corruption}: {}",
                largest(&others)
            );
            assert_eq!(stability(&effects, expected.len()), 1.0);
        }
        let points = curve(&patching, &effects, RandomSets::of(0)).unwrap();
        let counts: Vec<usize> = points.iter().map(|point| point.edges).collect();
        assert_eq!(counts, [0, 1, 2, 3, 5, 8, 13, 21, 34, 42]);
        assert!(points[0].faithfulness.share.abs() < 1e-5);
        assert!((points[9].faithfulness.share - 1.0).abs() < 1e-5);
        assert!((points[9].random.mean - 1.0).abs() < 1e-5);
    }
}

#[test]
fn faithfulness_is_a_ratio_of_means() {
    // The mean of the two ratios, 1 and 0, would be 0.5.
    let found = Faithfulness::of(&[9.0, 0.0], &[9.0, 1.0], &[0.0, 0.0]);
    assert!((found.share - 0.9).abs() < 1e-12);
    assert_eq!((found.interval.low, found.interval.high), (0.0, 1.0));
    assert_eq!(jaccard(&BTreeSet::new(), &BTreeSet::new()), 1.0);
}

#[test]
fn pairs_differ_in_one_token_and_nothing_is_asked_that_the_model_cannot_do() {
    let (model, sequences) = (without_norms(), sequences());
    for corruption in Corruption::ALL {
        for pair in pairs_of(&model, &sequences, corruption, 1).unwrap().pairs {
            let differ: Vec<usize> = (0..pair.clean.len())
                .filter(|&at| pair.clean[at] != pair.corrupted[at])
                .collect();
            let last = pair.clean.len() - 1;
            let key = (1..last)
                .find(|&at| pair.clean[at] == pair.clean[last])
                .unwrap();
            let expected = match corruption {
                Corruption::Value => key + 1,
                Corruption::Key => key,
                Corruption::Query => last,
            };
            assert_eq!(differ, [expected], "{corruption}");
            assert_eq!(pair.answer, pair.clean[key + 1]);
            assert_ne!(pair.wrong, pair.answer);
            let inputs = token_tensor(&[&pair.clean], &Device::flex());
            let logits = model.logits_at(inputs, last, &mut NoProbe);
            let says: i32 = logits.argmax(2).into_data().iter::<i32>().next().unwrap();
            assert_eq!(says as u32, pair.answer);
        }
    }
    // A sequence in which nothing comes back has no pair.
    let none = pairs_of(&model, &[vec![1, 2, 3, 4]], Corruption::Value, 0).unwrap();
    assert_eq!((none.pairs, none.made), (Vec::new(), 0));
}
