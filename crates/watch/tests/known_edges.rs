//! The effects of edges against programs of which every edge is known.
//! `docs/results/circuits.md` has the tables that
//! `cargo test --workspace --test known_edges -- --nocapture` prints.

use std::collections::BTreeSet;

use burn::tensor::{Device, Tensor};
use headlight_compile::{Compiled, Input, Part, Program, START, programs};
use headlight_heads::{Edge, Metric, PatchDirection, Source};
use headlight_lens::{EdgePatching, Effects, Estimate, PromptPair};
use headlight_residual::{BlockSite, Decoder, Site, site_of_heads, token_tensor};
use headlight_run::ProgramConfig;
use headlight_tasks::{self as tasks, RowKey, Task, Use};
use headlight_watch::compiled::decoder;

const ROWS: usize = 32;
const NOISE: PatchDirection = PatchDirection::Noise;

/// A program, its model, and pairs of inputs that it answers differently.
struct Known {
    name: String,
    compiled: Compiled,
    model: Decoder,
    pairs: Vec<PromptPair>,
}

impl Known {
    fn of(code: &Program, coldness: f64) -> Self {
        let compiled = code.compile(coldness).unwrap();
        let config = ProgramConfig {
            program: code.name().to_owned(),
            length: code.layout().length(),
        };
        let task = tasks::Program::new(&config, code.layout().positions() + 1).unwrap();
        let mut pairs = Vec::new();
        for row in 0..ROWS {
            let sequence = task.sequence(RowKey {
                seed: 1,
                usage: Use::Validation,
                step: 0,
                row,
                rows: ROWS,
            });
            pairs.extend(pair_of(
                code,
                &sequence.tokens[..sequence.scored.len()],
                row,
            ));
        }
        Self {
            name: code.name().to_owned(),
            model: decoder(&compiled, &Device::flex()).unwrap(),
            compiled,
            pairs,
        }
    }

    fn named(name: &str, coldness: f64) -> Self {
        let entry = programs::ALL
            .iter()
            .find(|entry| entry.name == name)
            .unwrap();
        Self::of(&(entry.write)(entry.length.min(8)).unwrap(), coldness)
    }

    /// Whether a source writes something else on the two prompts of any pair.
    fn differs(&self, source: Source) -> bool {
        let site = match source {
            Source::Embedding => Site::Embed,
            Source::Positions => Site::PosEmbed,
            Source::Head(head) => site_of_heads(&self.model, head.layer),
            Source::FeedForward(layer) => Site::Block(layer, BlockSite::MlpOut),
        };
        let written = |prompt: &[u32]| -> Tensor<4> {
            let inputs = token_tensor(&[prompt], &Device::flex());
            let seen = self.model.activations(inputs, &[site]).unwrap();
            match source {
                Source::Head(head) => seen.tensor::<4>(site).narrow(2, head.head, 1),
                _ => seen.tensor::<3>(site).unsqueeze_dim(2),
            }
        };
        let differs = |pair: &PromptPair| {
            let difference = written(&pair.clean) - written(&pair.corrupted);
            difference.abs().max().into_scalar::<f32>() > 1e-6
        };
        self.pairs.iter().any(differs)
    }

    /// Of every edge whether it carries a variable; `None` of edges that are no hits and no misses:
    /// those whose source is the same on both prompts, and those of padding, whose weights are 0.
    fn truths(&self, edges: &[Edge]) -> Vec<Option<bool>> {
        let truth = &self.compiled.truth;
        let carrying: BTreeSet<Edge> = truth
            .carrying()
            .map(|edge| Edge {
                source: edge.from,
                destination: edge.to,
            })
            .collect();
        let computes = |part: Part| truth.places.iter().any(|place| place.part == part);
        let reads = |input: Input| match input {
            Input::Queries(head) | Input::Keys(head) | Input::Values(head) => {
                computes(Part::Head(head))
            }
            Input::FeedForward(layer) => computes(Part::FeedForward(layer)),
            Input::Logits => true,
        };
        let truth_of = |edge: &Edge| {
            let counts =
                computes(edge.source) && reads(edge.destination) && self.differs(edge.source);
            counts.then(|| carrying.contains(edge))
        };
        edges.iter().map(truth_of).collect()
    }
}

/// An input with one token replaced, cut where the program answers otherwise; `None` if no token
/// changes an answer.
fn pair_of(code: &Program, clean: &[u32], row: usize) -> Option<PromptPair> {
    let names = code.vocabulary();
    let answers = |tokens: &[u32]| {
        let input: Vec<String> = tokens[1..]
            .iter()
            .map(|&id| names[id as usize].clone())
            .collect();
        let trace = code.run(&input).ok()?;
        code.ids(&[&[START], &trace.answers()[..]].concat()).ok()
    };
    let before = answers(clean)?;
    let places = (1..clean.len()).cycle().skip(5 * row).take(clean.len() - 1);
    for place in places {
        for token in clean[1..].iter().cycle().skip(row).take(clean.len() - 1) {
            let mut corrupted = clean.to_vec();
            corrupted[place] = *token;
            let Some(after) = answers(&corrupted) else {
                continue;
            };
            let differ: Vec<usize> = (1..clean.len())
                .filter(|&at| before[at] != after[at])
                .collect();
            if let Some(&position) = differ.get(row % differ.len().max(1)) {
                return Some(PromptPair {
                    clean: clean[..=position].to_vec(),
                    corrupted: corrupted[..=position].to_vec(),
                    answer: before[position],
                    wrong: after[position],
                });
            }
        }
    }
    None
}

/// The share of pairs of an edge that carries a variable and one that does not in which the first
/// has the larger effect; ties count half. `None` without either.
fn auroc(truths: &[Option<bool>], sizes: &[f64]) -> Option<f64> {
    let of = |is_true: bool| {
        let all = truths.iter().zip(sizes);
        all.filter_map(move |(truth, size)| (*truth == Some(is_true)).then_some(*size))
    };
    let (mut above, mut all) = (0.0, 0);
    for carrying in of(true) {
        for other in of(false) {
            above += if carrying > other {
                1.0
            } else if carrying < other {
                0.0
            } else {
                0.5
            };
            all += 1;
        }
    }
    (all > 0).then(|| above / f64::from(all))
}

/// The mean size of each effect over pairs. What is rounding counts as 0.
fn sizes(effects: &Effects) -> Vec<f64> {
    let size = |by_pair: &Vec<f64>| {
        let sum: f64 = by_pair.iter().map(|effect| effect.abs()).sum();
        let mean = sum / by_pair.len() as f64;
        if mean < 1e-5 { 0.0 } else { mean }
    };
    effects.by_pair.iter().map(size).collect()
}

/// The mean effect of the edge of this name.
fn effect_of(patching: &EdgePatching, effects: &Effects, name: &str) -> f64 {
    let edges = patching.graph().edges().iter();
    let index = edges
        .map(Edge::to_string)
        .position(|known| known == name)
        .unwrap();
    effects.means()[index]
}

/// Carrying edges whose change alone changes nothing on these pairs, 21 of 126. 17 of them lead to
/// queries or keys.
const SILENT: [(&str, usize); 7] = [
    ("reverse", 1),
    ("sort", 7),
    ("fraction", 2),
    ("most_frequent", 1),
    ("shuffle_dyck_1", 3),
    ("shuffle_dyck_2", 6),
    ("palindrome", 1),
];

#[test]
fn exact_effects_are_those_of_edges_that_carry_and_of_no_other() {
    let mut silent = Vec::new();
    println!("| program | pairs | edges | carrying | of effect 0 | AUROC |");
    for entry in programs::ALL {
        let known = Known::named(entry.name, 100.0);
        let patching =
            EdgePatching::new(&known.model, &known.pairs, Metric::LogitDifference).unwrap();
        let edges = patching.graph().edges();
        let truths = known.truths(edges);
        let sizes = sizes(&patching.exact_of_all(NOISE).unwrap());
        let (mut carrying, mut without_effect) = (0, 0);
        for (edge, (truth, size)) in edges.iter().zip(truths.iter().zip(&sizes)) {
            if *truth == Some(true) {
                carrying += 1;
                without_effect += usize::from(*size == 0.0);
            } else {
                assert_eq!(*size, 0.0, "{} {edge}", known.name);
            }
        }
        println!(
            "| `{}` | {} | {} | {carrying} | {without_effect} | {:.3} |",
            known.name,
            known.pairs.len(),
            edges.len(),
            auroc(&truths, &sizes).unwrap_or(f64::NAN),
        );
        if without_effect > 0 {
            silent.push((entry.name, without_effect));
        } else if let Some(found) = auroc(&truths, &sizes) {
            assert_eq!(found, 1.0, "{}", known.name);
        }
    }
    assert_eq!(silent, SILENT);
}

#[test]
fn gradients_fade_with_coldness() {
    let key = "L0H0 → keys of L1H0";
    println!(
        "| coldness | effect | exact | eap | eap-ig, 5 points | eap-ig, up to 320 | atp-star | adds up to |"
    );
    for coldness in [1.0, 10.0, 100.0] {
        let known = Known::named("induction", coldness);
        let patching =
            EdgePatching::new(&known.model, &known.pairs, Metric::LogitDifference).unwrap();
        let truths = known.truths(patching.graph().edges());
        let (few, sparse) = patching.eap_ig(NOISE, 5).unwrap();
        let (many, dense) = patching.eap_ig(NOISE, 320).unwrap();
        let star = patching.atp_star(NOISE).unwrap();
        let all = [
            patching.exact_of_all(NOISE).unwrap(),
            patching.eap(NOISE).unwrap(),
            few,
            many,
            star.edges,
        ];
        let row = |of: &dyn Fn(&Effects) -> f64| {
            let cells: Vec<String> = all
                .iter()
                .map(|effects| format!("{:.3}", of(effects)))
                .collect();
            cells.join(" | ")
        };
        println!(
            "| {coldness} | {key} | {} | {:.3}, {:.3} ({} points) |",
            row(&|effects| effect_of(&patching, effects, key)),
            sparse.share,
            dense.share,
            dense.steps
        );
        println!(
            "| {coldness} | AUROC | {} | |",
            row(&|effects| auroc(&truths, &sizes(effects)).unwrap())
        );
        let [exact, eap, _, many, star] =
            [0, 1, 2, 3, 4].map(|at| effect_of(&patching, &all[at], key));
        assert!(exact < -0.01, "{coldness}: {exact}");
        if coldness == 100.0 {
            assert!(
                eap.abs() < 1e-3 * exact.abs(),
                "saturated, but eap says {eap}"
            );
            assert!((many / exact - 1.0).abs() < 0.2, "{many}, not {exact}");
        }
        // Without norms, and with nothing behind layer 1 but the logits, recomputed softmax is all.
        assert!((star / exact - 1.0).abs() < 1e-3, "{star}, not {exact}");
    }
}

/// Whole parts, each patched for all its readers, beside AtP and AtP*.
#[test]
fn recomputed_softmax_sees_the_parts_that_a_saturated_gradient_misses() {
    println!("| coldness | part | patched | AtP | AtP* |");
    for coldness in [1.0, 10.0, 100.0] {
        let known = Known::named("induction", coldness);
        let patching =
            EdgePatching::new(&known.model, &known.pairs, Metric::LogitDifference).unwrap();
        let plain = patching.eap(NOISE).unwrap().by_source(patching.graph());
        let star = patching.atp_star(NOISE).unwrap().parts;
        let of = |parts: &[(Source, Estimate)], source: Source| {
            let part = parts.iter().find(|(known, _)| *known == source);
            part.map_or(0.0, |(_, effect)| effect.mean)
        };
        for (source, patched) in patching.exact_of_sources().unwrap() {
            let (plain, star) = (of(&plain, source), of(&star, source));
            println!(
                "| {coldness} | {source} | {:.3} | {plain:.3} | {star:.3} |",
                patched.mean
            );
            let differs = known.differs(source);
            assert_eq!(
                star > 1e-3,
                differs && patched.mean.abs() > 1e-3,
                "{source}"
            );
            // The head that says where to look: its one reader is layer 1. Without the gradient of
            // that layer nothing is left, so that the mean of both is half.
            if source.to_string() == "L0H0" {
                assert!(
                    (star / patched.mean.abs() - 0.5).abs() < 0.02,
                    "{star}, half of {}",
                    patched.mean
                );
                if coldness > 1.0 {
                    assert!(plain.abs() < 0.05 * patched.mean.abs(), "{plain}");
                }
            }
        }
    }
}
