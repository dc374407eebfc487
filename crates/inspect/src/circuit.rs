//! `inspect SUBJECT circuit`: through which edges a behaviour runs.

use std::collections::BTreeSet;

use headlight_heads::{
    Corruption, Destination, Edge, EdgeMethod, HeadName, Metric, PatchDirection, Source,
};
use headlight_lens::{
    Circuit, Completeness, CurvePoint, EdgeError, EdgeGraph, EdgePatching, Effects, Estimate,
    Faithfulness, PromptPair, RandomBand, ShareCurve, curve, find_circuit, find_edges, jaccard,
    ranked, share_curve, stability,
};
use headlight_report::{CircuitPicture, PicturedEdge, Printout, Table, number, with_interval};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::no_room;
use serde::Serialize;

use super::{
    CircuitOverTraining, Limit, ModelParts, Output, Part, Subject, Verb,
    circuit_pairs::{LARGE, pairs_in_words},
    picture_files::PictureFiles,
    verb::POST_NORM,
};

/// The edges through which the continuation of what came before runs: which part reads which part,
/// as queries, keys, values or logits
#[derive(Debug, clap::Args)]
pub struct CircuitVerb {
    /// What differs between the two prompts of a pair: what followed the current token before
    /// (value), the earlier token that equals the current one (key), or the current token (query)
    /// [default: value]
    #[arg(long, value_name = "value|key|query")]
    corrupt: Option<Corruption>,
    /// Each edge patched (exact), or estimated from gradients (eap, eap-ig) [default: exact, for
    /// more than 2000 edges eap-ig]
    #[arg(long, value_name = "exact|eap|eap-ig")]
    method: Option<EdgeMethod>,
    /// What is read from the logits
    #[arg(long, value_name = "logit-difference|loss|kl", default_value_t)]
    metric: Metric,
    /// Corrupted values put into the clean run (noise), or clean ones into the corrupted run
    /// (denoise)
    #[arg(long, value_name = "noise|denoise", default_value_t)]
    direction: PatchDirection,
    /// The effects of edges alone: no circuit is searched for, which takes most of the time
    #[arg(long)]
    effects_only: bool,
    /// When each edge of the circuit appeared, at the kept checkpoints of a run
    #[arg(long, conflicts_with_all = ["method", "direction", "effects_only", "svg", "png"])]
    over_training: bool,
    #[command(flatten)]
    files: PictureFiles,
}

impl Verb for CircuitVerb {
    const NAME: &'static str = "circuit";
    const TAKES_PAIRS: bool = true;
    const PARTS: &'static [Part] = &[Part {
        name: "",
        limits: &[Limit {
            on: POST_NORM,
            says: "has no edges: its stream is no sum of what its parts write, since norms replace it",
        }],
    }];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let asked = CircuitQuestion {
            corruption: self.corrupt,
            method: self.method,
            metric: self.metric,
            direction: self.direction,
            effects_only: self.effects_only,
        };
        if self.over_training {
            let found = subject.circuit_over_training(asked)?;
            return out.show(&found, CircuitOverTraining::printout);
        }
        let found = subject.circuit(asked)?;
        let written = self.files.write(|| Ok(found.picture().svg()))?;
        let terminal = out.terminal;
        out.show_text(&found, &found.edges, written, |found| {
            found.printout().draw(&terminal)
        })
    }
}

/// Edges of a large graph that are patched exactly.
const EXACT_OF_LARGE: usize = 100;
/// How much of the behaviour a circuit has to carry.
pub(super) const ENOUGH: f64 = 0.9;
/// Points on the way between two runs, at most.
const MOST_STEPS: usize = 320;
/// The same in a large graph.
const MOST_STEPS_OF_LARGE: usize = 20;
/// Edges in the terminal; JSON has all.
const SHOWN: usize = 12;

/// What is asked about edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CircuitQuestion {
    /// What differs between the prompts that are made; `None`: value, or the pairs are given.
    pub corruption: Option<Corruption>,
    /// How effects are found; `None`: as the size of the graph allows.
    pub method: Option<EdgeMethod>,
    /// What is read from the logits.
    pub metric: Metric,
    /// Which run is changed.
    pub direction: PatchDirection,
    /// Whether no circuit is searched for.
    pub effects_only: bool,
}

/// What `inspect SUBJECT circuit` shows. Edges are chosen on one half of the pairs; everything here
/// is of the other half, unless it says `found`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundCircuit {
    /// What differs between the prompts; none where the pairs were given.
    pub corruption: Option<Corruption>,
    /// The pairs, and what the model says to them.
    pub pairs: PairCounts,
    /// How effects were found.
    pub method: EdgeMethod,
    /// What is read from the logits.
    pub metric: Metric,
    /// Which run was changed.
    pub direction: PatchDirection,
    /// The mean of the metric in the clean run.
    pub clean: f64,
    /// The mean of the metric in the corrupted run.
    pub corrupted: f64,
    /// How far averaged gradients add up, for eap-ig.
    pub completeness: Option<Completeness>,
    /// The fewest edges that carry 0.9 of the behaviour, as far as the search found; none where they
    /// were not searched for.
    pub circuit: Option<CircuitEdges>,
    /// What the first edges of the ranking carry.
    pub curve: Vec<CurvePoint>,
    /// Shares of a large graph.
    pub shares: Option<ShareCurve>,
    /// How far the first edges depend on the pairs, where a circuit was searched for.
    pub stability: Option<Stability>,
    /// What each part does through all its readers at once: patched, or the sum of what gradients
    /// say of its edges (attribution patching). None for edges that are patched towards the clean
    /// prompt.
    pub parts: Vec<MeasuredPart>,
    /// Every edge, the largest effect first.
    pub edges: Vec<MeasuredEdge>,
    /// The pairs that all this is of.
    pub prompts: Vec<NamedPair>,
    /// Layers of the model, and query heads in each.
    #[serde(skip)]
    sizes: [usize; 2],
}

/// A pair of prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedPair {
    /// Token names.
    pub clean: Vec<String>,
    /// Token names.
    pub corrupted: Vec<String>,
    /// The right token after the clean prompt.
    pub answer: String,
    /// The answer that it is told from.
    pub wrong: String,
}

/// How many pairs there are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairCounts {
    /// Made from the probe, or given.
    pub made: usize,
    /// Of these, the ones whose metric is lower on the corrupted prompt; half of them choose edges.
    pub used: usize,
    /// The share of these whose clean prompt the model answers right.
    pub right: f64,
    /// The share whose corrupted prompt gets the same answer.
    pub right_on_corrupted: f64,
}

/// Edges that carry the behaviour.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CircuitEdges {
    /// The edges, the largest effect first.
    pub edges: Vec<Edge>,
    /// The same in words.
    pub sentences: Vec<String>,
    /// What they carry on the half on which they were chosen.
    pub found: Faithfulness,
    /// On the other half.
    pub faithfulness: Faithfulness,
    /// As many random edges.
    pub random: RandomBand,
    /// As many random edges between the same layers.
    pub random_same_layers: RandomBand,
    /// The edges that the search finds on the other half.
    pub on_other_half: Vec<Edge>,
    /// The Jaccard index of both.
    pub shared: f64,
}

/// How far the first edges of the ranking depend on the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stability {
    /// How many edges.
    pub edges: usize,
    /// The mean Jaccard index of the first edges of two bootstraps over pairs.
    pub jaccard: f64,
    /// The expectation of as many random edges.
    pub random: f64,
}

/// A part that writes into the stream, and the effect of all its edges at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredPart {
    /// The part.
    pub source: Source,
    /// In the units of the metric.
    #[serde(flatten)]
    pub effect: Estimate,
}

/// An edge and its effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredEdge {
    /// Who writes.
    pub source: Source,
    /// Who reads.
    pub destination: Destination,
    /// The layer that writes; none for embedding and positions.
    pub source_layer: Option<usize>,
    /// The layer that reads; none for the logits.
    pub destination_layer: Option<usize>,
    /// In the units of the metric.
    #[serde(flatten)]
    pub effect: Estimate,
    /// What is lost without the edge; below 0 it works against the answer.
    pub importance: f64,
    /// Whether it is one of the circuit.
    pub in_circuit: bool,
    /// Its effect when it is patched, where gradients estimate that of all edges.
    pub exact: Option<Estimate>,
}

impl Subject {
    /// The edges through which the continuation of what came before runs.
    ///
    /// # Errors
    /// If the model has no edges, does not continue what came before, or the graph is too large for
    /// the method.
    pub fn circuit(&self, asked: CircuitQuestion) -> Result<FoundCircuit, Error> {
        let ModelParts { model, vocabulary } = self.model()?;
        let wrong = |error| self.edge_error(error);
        let graph = EdgeGraph::of(&model).map_err(wrong)?;
        let is_large = graph.edges().len() > LARGE;
        let method = method_for(asked, &graph)?;
        let (made, corruption) =
            self.circuit_pairs(&model, graph.edges().len(), asked.corruption)?;
        let (finding, reporting) = made.pairs.split_at(made.pairs.len() / 2);
        let prompts = reporting.iter().map(|pair| named(pair, &vocabulary));
        let prompts = prompts.collect();
        let patching = |pairs: &[PromptPair]| EdgePatching::new(&model, pairs, asked.metric);
        let [finding, reporting] = [
            patching(finding).map_err(wrong)?,
            patching(reporting).map_err(wrong)?,
        ];
        let most_steps = if is_large {
            MOST_STEPS_OF_LARGE
        } else {
            MOST_STEPS
        };
        let effects = |patching: &EdgePatching| match method {
            EdgeMethod::Exact => Ok((patching.exact_of_all(asked.direction)?, None)),
            EdgeMethod::Eap => Ok((patching.eap(asked.direction)?, None)),
            EdgeMethod::EapIg => {
                let (effects, completeness) = patching.eap_ig(asked.direction, most_steps)?;
                Ok((effects, Some(completeness)))
            }
        };
        let (shown, completeness) = effects(&reporting).map_err(wrong)?;
        let seed = self.seed();
        let (mut circuit, mut points, mut shares) = (None, Vec::new(), None);
        let (mut exact, mut stable) = (None, None);
        if !asked.effects_only {
            let (chosen, _) = effects(&finding).map_err(wrong)?;
            let mut count = EXACT_OF_LARGE;
            if is_large {
                let mut first = ranked(&chosen);
                first.truncate(EXACT_OF_LARGE);
                exact = Some(reporting.exact(&first, asked.direction).map_err(wrong)?);
                shares = Some(share_curve(&reporting, &chosen, seed).map_err(wrong)?);
            } else {
                let found =
                    find_circuit(&finding, &reporting, &chosen, ENOUGH, seed).map_err(wrong)?;
                let other = find_edges(&reporting, &shown, ENOUGH).map_err(wrong)?;
                points = curve(&reporting, &chosen, seed).map_err(wrong)?;
                count = found.as_ref().map_or(SHOWN, |found| found.edges.len());
                circuit = found.map(|found| (found, other.unwrap_or_default()));
            }
            let all = graph.edges().len();
            let count = count.min(all);
            stable = Some(Stability {
                edges: count,
                jaccard: stability(&chosen, count),
                random: count as f64 / (2 * all - count) as f64,
            });
        }
        let parts = match (method, asked.direction) {
            (EdgeMethod::Exact, PatchDirection::Noise) => {
                reporting.exact_of_sources().map_err(wrong)?
            }
            (EdgeMethod::Exact, PatchDirection::Denoise) => Vec::new(),
            (EdgeMethod::Eap | EdgeMethod::EapIg, _) => shown.by_source(&graph),
        };
        let [n_layers, n_heads] = [model.blocks.len(), model.n_heads()];
        let group = n_heads / model.config().n_kv_heads();
        Ok(FoundCircuit {
            corruption,
            pairs: PairCounts {
                made: made.made,
                used: made.pairs.len(),
                right: made.right,
                right_on_corrupted: made.right_on_corrupted,
            },
            method,
            metric: asked.metric,
            direction: asked.direction,
            clean: mean(reporting.at_clean()),
            corrupted: mean(reporting.at_corrupted()),
            completeness,
            parts: parts
                .into_iter()
                .map(|(source, effect)| MeasuredPart { source, effect })
                .collect(),
            curve: points,
            shares,
            stability: stable,
            edges: measured(
                &graph,
                &shown,
                circuit.as_ref().map(|(circuit, _)| circuit),
                exact,
            ),
            circuit: circuit.map(|(circuit, other)| described(&graph, circuit, other, group)),
            prompts,
            sizes: [n_layers, n_heads],
        })
    }

    /// Checks that every edge can be patched.
    pub(super) fn check_small(&self, model: &Decoder) -> Result<(), Error> {
        let graph = EdgeGraph::of(model).map_err(|error| self.edge_error(error))?;
        if graph.edges().len() <= LARGE {
            return Ok(());
        }
        let message = format!("has {} edges, too many to patch each", graph.edges().len());
        Err(Error::new(self.path().display(), message))
    }

    pub(super) fn edge_error(&self, error: EdgeError) -> Error {
        match error {
            EdgeError::Activations(error) => no_room(error),
            other => Error::new(self.path().display(), other),
        }
    }
}

/// The method that was asked for, or the one that the size of the graph allows.
fn method_for(asked: CircuitQuestion, graph: &EdgeGraph) -> Result<EdgeMethod, Error> {
    let edges = graph.edges().len();
    if asked.metric == Metric::Kl
        && asked.direction == PatchDirection::Noise
        && asked.method == Some(EdgeMethod::Eap)
    {
        let message = "has a gradient of 0 at the clean prompt, so that eap finds nothing; take another --metric or --method";
        return Err(Error::new("--metric", message).value(asked.metric));
    }
    match asked.method {
        None if edges > LARGE => Ok(EdgeMethod::EapIg),
        None => Ok(EdgeMethod::Exact),
        Some(EdgeMethod::Exact) if edges > LARGE => {
            let message = format!(
                "takes a pass for each of {edges} edges; take eap-ig, which patches the {EXACT_OF_LARGE} best"
            );
            Err(Error::new("--method", message).value(EdgeMethod::Exact))
        }
        Some(method) => Ok(method),
    }
}

fn named(pair: &PromptPair, vocabulary: &[String]) -> NamedPair {
    let name = |token: u32| vocabulary[token as usize].clone();
    let names = |tokens: &[u32]| tokens.iter().map(|&token| name(token)).collect();
    NamedPair {
        clean: names(&pair.clean),
        corrupted: names(&pair.corrupted),
        answer: name(pair.answer),
        wrong: name(pair.wrong),
    }
}

/// Every edge with its effect, the largest first.
fn measured(
    graph: &EdgeGraph,
    effects: &Effects,
    circuit: Option<&Circuit>,
    exact: Option<Effects>,
) -> Vec<MeasuredEdge> {
    let chosen: BTreeSet<usize> = circuit
        .map(|circuit| circuit.edges.iter().copied().collect())
        .unwrap_or_default();
    let patched = |edge: usize| {
        let exact = exact.as_ref()?;
        let place = exact.edges.iter().position(|known| *known == edge)?;
        Some(exact.estimate(place))
    };
    let measured = |index: usize| {
        let Edge {
            source,
            destination,
        } = graph.edges()[index];
        MeasuredEdge {
            source,
            destination,
            source_layer: source.layer(),
            destination_layer: destination.layer(),
            effect: effects.estimate(index),
            importance: effects.importance(index),
            in_circuit: chosen.contains(&index),
            exact: patched(index),
        }
    };
    ranked(effects).into_iter().map(measured).collect()
}

fn described(graph: &EdgeGraph, circuit: Circuit, other: Vec<usize>, group: usize) -> CircuitEdges {
    let named =
        |edges: &[usize]| -> Vec<Edge> { edges.iter().map(|&edge| graph.edges()[edge]).collect() };
    let set = |edges: &[usize]| edges.iter().copied().collect::<BTreeSet<usize>>();
    let edges = named(&circuit.edges);
    CircuitEdges {
        sentences: sentences(&edges, group),
        edges,
        found: circuit.found,
        faithfulness: circuit.reported,
        random: circuit.random,
        random_same_layers: circuit.random_same_layers,
        shared: jaccard(&set(&circuit.edges), &set(&other)),
        on_other_half: named(&other),
    }
}

/// Edges in words: what has the same source and the same kind of reader in one layer is one
/// sentence, and so are sources with the same readers.
fn sentences(edges: &[Edge], group: usize) -> Vec<String> {
    let mut by_readers: Vec<(Vec<Source>, Vec<Destination>)> = Vec::new();
    let mut sorted = edges.to_vec();
    sorted.sort();
    for edge in sorted {
        let same = |(sources, readers): &&mut (Vec<Source>, Vec<Destination>)| {
            sources[0] == edge.source && is_alike(readers[0], edge.destination)
        };
        match by_readers.iter_mut().find(same) {
            Some((_, readers)) => readers.push(edge.destination),
            None => by_readers.push((vec![edge.source], vec![edge.destination])),
        }
    }
    let mut merged: Vec<(Vec<Source>, Vec<Destination>)> = Vec::new();
    for (sources, readers) in by_readers {
        let same = |(_, known): &&mut (Vec<Source>, Vec<Destination>)| *known == readers;
        match merged.iter_mut().find(same) {
            Some((known, _)) => known.extend(sources),
            None => merged.push((sources, readers)),
        }
    }
    let sentence = |(sources, readers): (Vec<Source>, Vec<Destination>)| {
        format!(
            "{} → {}",
            sources_in_words(&sources),
            readers_in_words(&readers, group)
        )
    };
    merged.into_iter().map(sentence).collect()
}

/// Whether two destinations read as the same thing in one layer.
fn is_alike(one: Destination, other: Destination) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other) && one.layer() == other.layer()
}

fn sources_in_words(sources: &[Source]) -> String {
    let mut heads = Vec::new();
    let mut words = Vec::new();
    for source in sources {
        match source {
            Source::Head(head) => heads.push(*head),
            other => words.push(other.to_string()),
        }
    }
    if !heads.is_empty() {
        words.push(heads_in_words(&heads));
    }
    words.join(", ")
}

fn readers_in_words(readers: &[Destination], group: usize) -> String {
    let mut heads = Vec::new();
    for reader in readers {
        match *reader {
            Destination::Queries(head) => heads.push(head),
            Destination::Keys(head) | Destination::Values(head) => {
                // All heads that share them.
                heads.extend((0..group).map(|next| HeadName {
                    head: head.head + next,
                    ..head
                }));
            }
            Destination::FeedForward(_) | Destination::Logits => return reader.to_string(),
        }
    }
    let kind = match readers[0] {
        Destination::Queries(_) => "queries",
        Destination::Keys(_) => "keys",
        _ => "values",
    };
    format!("{kind} of {}", heads_in_words(&heads))
}

/// `L1H0 to L1H3`, `L1H0, L1H2`
fn heads_in_words(heads: &[HeadName]) -> String {
    let follows =
        |pair: &[HeadName]| pair[0].layer == pair[1].layer && pair[0].head + 1 == pair[1].head;
    match heads {
        [first, .., last] if heads.len() > 2 && heads.windows(2).all(follows) => {
            format!("{first} to {last}")
        }
        _ => {
            let names: Vec<String> = heads.iter().map(HeadName::to_string).collect();
            names.join(", ")
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl FoundCircuit {
    /// The circuit as a picture; of a large graph, its first edges.
    #[must_use]
    pub fn picture(&self) -> CircuitPicture {
        let is_shown = |(place, edge): &(usize, &MeasuredEdge)| match &self.circuit {
            Some(_) => edge.in_circuit,
            None => *place < SHOWN,
        };
        let edges = self.edges.iter().enumerate().filter(is_shown);
        let [n_layers, n_heads] = self.sizes;
        let title = match &self.circuit {
            Some(circuit) => format!(
                "{} edges carry {:.2} of the behaviour ({})",
                circuit.edges.len(),
                circuit.faithfulness.share,
                pairs_in_words(self.corruption)
            ),
            None => format!(
                "The {SHOWN} edges of the largest effects ({})",
                pairs_in_words(self.corruption)
            ),
        };
        CircuitPicture {
            title,
            n_layers,
            n_heads,
            edges: edges
                .map(|(_, edge)| PicturedEdge {
                    edge: Edge {
                        source: edge.source,
                        destination: edge.destination,
                    },
                    importance: edge.importance,
                })
                .collect(),
        }
    }

    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        Printout::new()
            .prose(self.about_pairs())
            .prose(self.about_circuit())
            .table(self.drawing())
            .prose(self.about_edges())
            .table(self.edge_table())
            .prose(self.about_curve())
            .table(self.curve_table())
            .table(self.share_table())
            .prose(self.about_stability())
            .prose(
                "A circuit is one of this behaviour under this corruption: what both prompts share has no effect. Others \
                 may carry as much. f = (m with these edges − m corrupted) / (m clean − m corrupted), all other edges \
                 corrupted. Edges are chosen on one half of the pairs and reported on the other.",
            )
    }

    fn about_pairs(&self) -> String {
        let metric = match self.metric {
            Metric::LogitDifference => "m = logit of the answer over that of the wrong one",
            Metric::Loss => "m = loss in nats",
            Metric::Kl => "m = divergence from the clean prompt in nats",
        };
        let pairs = self.pairs;
        let origin = match self.corruption {
            Some(corruption) => format!("made from the probe: {}", corruption.in_words()),
            None => "given: the corrupted prompt lowers the answer".to_owned(),
        };
        format!(
            "{} of {} pairs {origin}. The clean prompt is answered right in {:.0} %, the corrupted one \
             with the same answer in {:.0} %.\n{metric}: {:.2} clean, {:.2} corrupted.",
            pairs.used,
            pairs.made,
            100.0 * pairs.right,
            100.0 * pairs.right_on_corrupted,
            self.clean,
            self.corrupted,
        )
    }

    fn about_circuit(&self) -> String {
        let all = self.edges.len();
        let Some(circuit) = &self.circuit else {
            return if self.curve.is_empty() {
                format!("The graph has {all} edges. Those of the largest effects:")
            } else {
                format!("All {all} edges together do not carry {ENOUGH} of the behaviour.")
            };
        };
        let band =
            |band: RandomBand| format!("{} to {}", number(band.least, 2), number(band.most, 2));
        format!(
            "{} of {all} edges carry f = {} of the behaviour ({:.2} on the pairs on which they were chosen). 20 sets of \
             as many random edges carry {}, between the same layers {}.\n{}",
            circuit.edges.len(),
            with_interval(circuit.faithfulness.share, circuit.faithfulness.interval, 2),
            circuit.found.share,
            band(circuit.random),
            band(circuit.random_same_layers),
            circuit.sentences.join("\n"),
        )
    }

    /// The circuit from the logits down to the embedding: who reads, and from whom.
    fn drawing(&self) -> Table {
        let mut edges: Vec<&MeasuredEdge> =
            self.edges.iter().filter(|edge| edge.in_circuit).collect();
        edges.sort_by_key(|edge| (edge.destination, edge.source));
        let mut rows: Vec<(usize, usize, Vec<String>)> = Vec::new();
        for edge in edges {
            let (layer, half, name, column) = match edge.destination {
                Destination::Logits => (usize::MAX, 0, "logits".to_owned(), 4),
                Destination::FeedForward(layer) => (layer, 1, format!("feed-forward {layer}"), 4),
                Destination::Queries(head) => (head.layer, 0, head.to_string(), 1),
                Destination::Keys(head) => (head.layer, 0, head.to_string(), 2),
                Destination::Values(head) => (head.layer, 0, head.to_string(), 3),
            };
            let is_same = |(_, _, cells): &&mut (usize, usize, Vec<String>)| cells[0] == name;
            if !rows.iter_mut().any(|row| is_same(&row)) {
                let mut cells = vec![String::new(); 5];
                cells[0].clone_from(&name);
                rows.push((layer, half, cells));
            }
            let row = rows.iter_mut().find(is_same);
            if let Some((_, _, cells)) = row {
                let separator = if cells[column].is_empty() { "" } else { " " };
                cells[column] = format!("{}{separator}{}", cells[column], short(edge.source));
            }
        }
        rows.sort_by(|a, b| (b.0, b.1, &a.2[0]).cmp(&(a.0, a.1, &b.2[0])));
        let header = ["reader", "queries ←", "keys ←", "values ←", "stream ←"];
        Table::new(&header, rows.into_iter().map(|(_, _, cells)| cells)).text_columns(5)
    }

    fn about_edges(&self) -> String {
        let how = match self.method {
            EdgeMethod::Exact => "each edge patched",
            EdgeMethod::Eap => "estimated from one gradient",
            EdgeMethod::EapIg => "estimated from averaged gradients",
        };
        let direction = match self.direction {
            PatchDirection::Noise => "corrupted values in the clean run",
            PatchDirection::Denoise => "clean values in the corrupted run",
        };
        let complete = self.completeness.map_or(String::new(), |complete| {
            format!(
                " {} points; the edges of the embedding add up to {:.3} of the difference.",
                complete.steps, complete.share
            )
        });
        format!("Effects on m, {how}, {direction}:{complete}")
    }

    fn edge_table(&self) -> Table {
        let has_exact = self.edges.iter().any(|edge| edge.exact.is_some());
        let effect = |effect: Estimate| with_interval(effect.mean, effect.interval, 3);
        let row = |edge: &MeasuredEdge| {
            let name = Edge {
                source: edge.source,
                destination: edge.destination,
            };
            let mut cells = vec![name.to_string(), effect(edge.effect)];
            if has_exact {
                cells.push(edge.exact.map_or(String::new(), effect));
            }
            if self.circuit.is_some() {
                let mark = if edge.in_circuit { "in" } else { "" };
                cells.push(mark.to_owned());
            }
            cells
        };
        let mut header = vec!["edge", "effect"];
        if has_exact {
            header.push("patched");
        }
        if self.circuit.is_some() {
            header.push("circuit");
        }
        Table::new(&header, self.edges.iter().take(SHOWN).map(row))
    }

    fn about_curve(&self) -> String {
        if self.curve.is_empty() {
            return String::new();
        }
        "f of the first edges by size of effect, and of 20 sets of as many random edges:".to_owned()
    }

    fn curve_table(&self) -> Table {
        let band =
            |band: RandomBand| format!("{} … {}", number(band.least, 2), number(band.most, 2));
        let row = |point: &CurvePoint| {
            vec![
                point.edges.to_string(),
                with_interval(point.faithfulness.share, point.faithfulness.interval, 2),
                band(point.random),
                band(point.random_same_layers),
            ]
        };
        let header = ["edges", "f", "random", "same layers"];
        Table::new(&header, self.curve.iter().map(row))
    }

    fn share_table(&self) -> Table {
        let mut rows = Vec::new();
        if let Some(shares) = &self.shares {
            for (at, share) in shares.shares.iter().enumerate() {
                rows.push(vec![
                    format!("{share}"),
                    number(shares.by_importance[at], 2),
                    number(shares.by_size[at], 2),
                    number(shares.random[at], 2),
                ]);
            }
            let areas = [
                "area".to_owned(),
                format!("CPR {:.2}", shares.cpr),
                format!("CMD {:.2}", shares.cmd),
            ];
            rows.push(areas.to_vec());
        }
        Table::new(&["share", "f, signed", "f, by size", "f, random"], rows)
    }

    fn about_stability(&self) -> String {
        let Some(Stability {
            edges,
            jaccard,
            random,
        }) = self.stability
        else {
            return String::new();
        };
        let halves = self.circuit.as_ref().map_or(String::new(), |circuit| {
            format!(
                " The search on the other half finds {} edges; Jaccard index {:.2}.",
                circuit.on_other_half.len(),
                circuit.shared
            )
        });
        format!(
            "Stability: the first {edges} edges of two bootstraps over pairs have a Jaccard index of {jaccard:.2} \
             ({random:.2} at random).{halves}"
        )
    }
}

/// A source in a table.
fn short(source: Source) -> String {
    match source {
        Source::Embedding => "embedding".to_owned(),
        Source::Positions => "positions".to_owned(),
        Source::Head(head) => head.to_string(),
        Source::FeedForward(layer) => format!("MLP{layer}"),
    }
}
