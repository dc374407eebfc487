//! The effects of edges against programs of which every edge is known.
//! `docs/results/circuits.md` has the table that
//! `cargo test --workspace --test known_edges -- --nocapture` prints.

use std::collections::BTreeSet;

use burn::tensor::{Device, Tensor};
use headlight_compile::{Compiled, Input, Part, Program, START, programs};
use headlight_heads::{Edge, Metric, PatchDirection, Source};
use headlight_lens::{Completeness, EdgePatching, Effects, PromptPair};
use headlight_residual::{BlockSite, Decoder, Probed, Site, site_of_heads, token_tensor};
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
        let names = code.vocabulary();
        let (mut tokens, mut answers) = (Vec::new(), Vec::new());
        for row in 0..ROWS {
            let sequence = task.sequence(RowKey {
                seed: 1,
                usage: Use::Validation,
                step: 0,
                row,
                rows: ROWS,
            });
            let read = sequence.tokens[..sequence.scored.len()].to_vec();
            let input: Vec<String> = read[1..]
                .iter()
                .map(|&id| names[id as usize].clone())
                .collect();
            let trace = code.run(&input).unwrap();
            answers.push(
                code.ids(&[&[START], &trace.answers()[..]].concat())
                    .unwrap(),
            );
            tokens.push(read);
        }
        let mut pairs = Vec::new();
        for row in 0..ROWS {
            let other = (row + 1) % ROWS;
            let differ: Vec<usize> = (1..tokens[row].len())
                .filter(|&position| answers[row][position] != answers[other][position])
                .collect();
            // Positions of all parts of the inputs.
            if let Some(&position) = differ.get(row % differ.len().max(1)) {
                pairs.push(PromptPair {
                    clean: tokens[row][..=position].to_vec(),
                    corrupted: tokens[other][..=position].to_vec(),
                    answer: answers[row][position],
                    wrong: answers[other][position],
                });
            }
        }
        Self {
            name: code.name().to_owned(),
            model: decoder(&compiled, &Device::flex()).unwrap(),
            compiled,
            pairs,
        }
    }

    fn shipped(coldness: f64) -> Vec<Self> {
        let named = |entry: &programs::Entry| {
            let code = (entry.write)(entry.length.min(8)).unwrap();
            Self::of(&code, coldness)
        };
        programs::ALL.iter().map(named).collect()
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

/// What a method finds in all programs: the mean AUROC, the least, and the carrying edges that it
/// gives an effect of 0.
#[derive(Debug, Default)]
struct Found {
    sum: f64,
    programs: usize,
    least: f64,
    silent: usize,
    carrying: usize,
    completeness: Vec<f64>,
}

impl Found {
    fn add(&mut self, truths: &[Option<bool>], effects: &Effects, complete: Option<Completeness>) {
        let sizes = sizes(effects);
        if let Some(auroc) = auroc(truths, &sizes) {
            self.least = if self.programs == 0 {
                auroc
            } else {
                self.least.min(auroc)
            };
            self.sum += auroc;
            self.programs += 1;
        }
        for (truth, size) in truths.iter().zip(&sizes) {
            if *truth == Some(true) {
                self.carrying += 1;
                self.silent += usize::from(*size == 0.0);
            }
        }
        self.completeness
            .extend(complete.map(|complete| complete.share));
    }

    fn row(&self, coldness: f64, method: &str) -> String {
        let mut shares = self.completeness.clone();
        shares.sort_by(f64::total_cmp);
        let completeness = match (shares.first(), shares.last()) {
            (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
            _ => "–".to_owned(),
        };
        format!(
            "| {coldness} | {method} | {:.3} | {:.3} | {} of {} | {completeness} |",
            self.sum / self.programs as f64,
            self.least,
            self.silent,
            self.carrying,
        )
    }
}

#[test]
fn exact_effects_are_those_of_the_edges_that_carry_and_gradients_fade_with_coldness() {
    println!("| coldness | method | mean AUROC | least | carrying, effect 0 | completeness |");
    println!("|---|---|---|---|---|---|");
    for coldness in [1.0, 10.0, 100.0] {
        let [mut exact, mut eap, mut few, mut many] = [(); 4].map(|()| Found::default());
        for known in Known::shipped(coldness) {
            assert!(known.pairs.len() >= 8, "{}", known.name);
            let pairs = &known.pairs;
            let patching = EdgePatching::new(&known.model, pairs, Metric::LogitDifference).unwrap();
            let truths = known.truths(patching.graph().edges());
            let effects = patching.exact_of_all(NOISE).unwrap();
            // An edge that carries nothing has no effect, whatever the coldness.
            let sizes = sizes(&effects);
            for (edge, (truth, size)) in patching
                .graph()
                .edges()
                .iter()
                .zip(truths.iter().zip(&sizes))
            {
                if *truth != Some(true) {
                    assert_eq!(*size, 0.0, "{} {edge}", known.name);
                }
            }
            exact.add(&truths, &effects, None);
            eap.add(&truths, &patching.eap(NOISE).unwrap(), None);
            let (effects, complete) = patching.eap_ig(NOISE, 5).unwrap();
            few.add(&truths, &effects, Some(complete));
            let (effects, complete) = patching.eap_ig(NOISE, 160).unwrap();
            many.add(&truths, &effects, Some(complete));
            println!("{} {coldness}: {:?}", known.name, auroc(&truths, &sizes));
        }
        println!("{}", exact.row(coldness, "exact"));
        println!("{}", eap.row(coldness, "eap"));
        println!("{}", few.row(coldness, "eap-ig, 5 points"));
        println!("{}", many.row(coldness, "eap-ig, up to 160"));
        assert_eq!((exact.sum / exact.programs as f64, exact.silent), (1.0, 0));
    }
}
