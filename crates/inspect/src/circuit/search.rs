//! The effects of edges, and the few that carry the behaviour: chosen on one half of the pairs,
//! reported on the other.

use std::collections::BTreeSet;

use headlight_heads::{Edge, EdgeMethod, Metric, PatchDirection, Source};
use headlight_lens::{
    Circuit, Completeness, CurvePoint, EdgeError, EdgeGraph, EdgePatching, Effects, Estimate,
    PromptPair, RandomSets, ShareCurve, curve, find_circuit, find_edges, jaccard, ranked,
    share_curve, stability,
};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::no_room;

use super::{
    CircuitQuestion,
    agreement::agreement,
    found::{
        CircuitEdges, FoundCircuit, MeasuredEdge, MeasuredPart, NamedPair, PairCounts, Stability,
    },
    pairs::{CircuitPairs, LARGE},
    sentences::sentences,
};
use crate::{ModelParts, Subject};

/// Edges of a large graph that are patched exactly.
const EXACT_OF_LARGE: usize = 100;
/// How much of the behaviour a circuit has to carry.
pub(super) const ENOUGH: f64 = 0.9;
/// Points on the way between two runs, at most.
const MOST_STEPS: usize = 320;
/// The same in a large graph.
const MOST_STEPS_OF_LARGE: usize = 20;
/// Random sets of edges for a page.
const FEW_RANDOM_SETS: usize = 5;
/// Edges whose stability is told where no circuit was found.
const FIRST_EDGES: usize = 12;

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
        let method = method_for(asked, &graph)?;
        let pairs = self.circuit_pairs(&model, asked.corruption)?;
        let halves = Halves::of(&model, &pairs, asked, method, self.seed()).map_err(wrong)?;
        let shown = halves.measured(&halves.reporting).map_err(wrong)?;
        let searched = if asked.effects_only {
            Searched::default()
        } else if halves.is_large() {
            halves.search_shares().map_err(wrong)?
        } else {
            halves.search_edges(&shown.effects).map_err(wrong)?
        };
        let parts = halves.parts(&shown).map_err(wrong)?;
        let [n_layers, n_heads] = [model.blocks.len(), model.n_heads()];
        let group = n_heads / model.config().n_kv_heads();
        let (_, reporting) = pairs.halves();
        let prompts = reporting.iter().map(|pair| named(pair, &vocabulary));
        let clean = mean(halves.reporting.at_clean());
        let corrupted = mean(halves.reporting.at_corrupted());
        let edges = edges_of(&graph, &shown.effects, &searched);
        Ok(FoundCircuit {
            corruption: pairs.corruption,
            pairs: PairCounts {
                made: pairs.made.made,
                used: pairs.made.pairs.len(),
                right: pairs.made.right,
                right_on_corrupted: pairs.made.right_on_corrupted,
            },
            method,
            metric: asked.metric,
            direction: asked.direction,
            clean,
            corrupted,
            completeness: shown.completeness,
            agreement: agreement(&edges, &parts, clean - corrupted),
            parts,
            edges,
            circuit: searched
                .circuit
                .map(|found| circuit_edges(&graph, found, group)),
            curve: searched.curve,
            shares: searched.shares,
            stability: searched.stability,
            prompts: prompts.collect(),
            reporting: reporting.to_vec(),
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

    pub(crate) fn edge_error(&self, error: EdgeError) -> Error {
        match error {
            EdgeError::Activations(error) => no_room(error),
            other => Error::new(self.path().display(), other),
        }
    }
}

/// A model on the half of the pairs on which edges are chosen, and on the half on which they are
/// reported.
struct Halves<'a> {
    finding: EdgePatching<'a>,
    reporting: EdgePatching<'a>,
    method: EdgeMethod,
    asked: CircuitQuestion,
    sets: RandomSets,
}

/// What a method says of all edges.
struct Measured {
    effects: Effects,
    /// Of averaged gradients.
    completeness: Option<Completeness>,
    /// Of gradients: what they say of whole parts.
    parts: Vec<(Source, Estimate)>,
}

/// What a search found.
#[derive(Default)]
struct Searched {
    circuit: Option<CircuitOfHalves>,
    curve: Vec<CurvePoint>,
    shares: Option<ShareCurve>,
    stability: Option<Stability>,
    /// All edges patched where gradients estimate them, or the first ones of a large graph.
    exact: Option<Effects>,
}

/// A circuit, and the edges that the same search finds on the other half.
struct CircuitOfHalves {
    circuit: Circuit,
    on_other_half: Vec<usize>,
}

impl<'a> Halves<'a> {
    fn of(
        model: &'a Decoder,
        pairs: &CircuitPairs,
        asked: CircuitQuestion,
        method: EdgeMethod,
        seed: u64,
    ) -> Result<Self, EdgeError> {
        let (finding, reporting) = pairs.halves();
        Ok(Self {
            finding: EdgePatching::new(model, finding, asked.metric)?,
            reporting: EdgePatching::new(model, reporting, asked.metric)?,
            method,
            asked,
            sets: if asked.is_brief {
                RandomSets {
                    seed,
                    count: FEW_RANDOM_SETS,
                }
            } else {
                RandomSets::of(seed)
            },
        })
    }

    fn graph(&self) -> &EdgeGraph {
        self.reporting.graph()
    }

    fn is_large(&self) -> bool {
        self.graph().edges().len() > LARGE
    }

    /// The effects of all edges on one half.
    fn measured(&self, half: &EdgePatching) -> Result<Measured, EdgeError> {
        let (mut completeness, mut parts) = (None, Vec::new());
        let effects = match self.method {
            EdgeMethod::Exact => half.exact_of_all(self.asked.direction)?,
            EdgeMethod::Eap => half.eap(self.asked.direction)?,
            EdgeMethod::EapIg => {
                let most = if self.is_large() {
                    MOST_STEPS_OF_LARGE
                } else {
                    MOST_STEPS
                };
                let (effects, complete) = half.eap_ig(self.asked.direction, most)?;
                completeness = Some(complete);
                effects
            }
            EdgeMethod::AtpStar => {
                let found = half.atp_star(self.asked.direction)?;
                parts = found.parts;
                found.edges
            }
        };
        if let EdgeMethod::Eap | EdgeMethod::EapIg = self.method {
            parts = effects.by_source(self.graph());
        }
        Ok(Measured {
            effects,
            completeness,
            parts,
        })
    }

    /// What each part does through all its readers at once. Patched, it is known in the direction of
    /// noise.
    fn parts(&self, shown: &Measured) -> Result<Vec<MeasuredPart>, EdgeError> {
        if self.asked.is_brief {
            return Ok(Vec::new());
        }
        let is_noise = self.asked.direction == PatchDirection::Noise;
        let is_exact = self.method == EdgeMethod::Exact;
        let mut patched = Vec::new();
        if is_noise && (is_exact || self.compares_with_patching()) {
            patched = self.reporting.exact_of_sources()?;
        }
        let parts = if is_exact { &patched } else { &shown.parts };
        let mut measured = Vec::with_capacity(parts.len());
        for &(source, effect) in parts {
            let of_source = patched.iter().find(|(known, _)| *known == source);
            measured.push(MeasuredPart {
                source,
                effect,
                exact: of_source.filter(|_| !is_exact).map(|(_, exact)| *exact),
            });
        }
        Ok(measured)
    }

    /// Whether all that gradients estimate is patched besides: it shows how far they can be trusted.
    fn compares_with_patching(&self) -> bool {
        let is_asked = !self.asked.effects_only && !self.asked.is_brief;
        is_asked && self.method != EdgeMethod::Exact && !self.is_large()
    }

    /// The fewest edges that carry enough. `shown` are the effects on the half that is reported.
    fn search_edges(&self, shown: &Effects) -> Result<Searched, EdgeError> {
        let chosen = self.measured(&self.finding)?.effects;
        let found = find_circuit(&self.finding, &self.reporting, &chosen, ENOUGH, self.sets)?;
        let other = if self.asked.is_brief {
            None
        } else {
            find_edges(&self.reporting, shown, ENOUGH)?
        };
        let count = found
            .as_ref()
            .map_or(FIRST_EDGES, |found| found.edges.len());
        let mut exact = None;
        if self.compares_with_patching() {
            exact = Some(self.reporting.exact_of_all(self.asked.direction)?);
        }
        Ok(Searched {
            exact,
            circuit: found.map(|circuit| CircuitOfHalves {
                circuit,
                on_other_half: other.unwrap_or_default(),
            }),
            curve: curve(&self.reporting, &chosen, self.sets)?,
            stability: Some(self.stability(&chosen, count)),
            ..Searched::default()
        })
    }

    /// Shares of a large graph, and its first edges patched.
    fn search_shares(&self) -> Result<Searched, EdgeError> {
        let chosen = self.measured(&self.finding)?.effects;
        let mut first = ranked(&chosen);
        first.truncate(EXACT_OF_LARGE);
        Ok(Searched {
            exact: Some(self.reporting.exact(&first, self.asked.direction)?),
            shares: Some(share_curve(&self.reporting, &chosen, self.sets.seed)?),
            stability: Some(self.stability(&chosen, EXACT_OF_LARGE)),
            ..Searched::default()
        })
    }

    /// How far the first edges depend on the pairs.
    fn stability(&self, chosen: &Effects, count: usize) -> Stability {
        let all = self.graph().edges().len();
        let count = count.min(all);
        Stability {
            edges: count,
            jaccard: stability(chosen, count),
            random: count as f64 / (2 * all - count) as f64,
        }
    }
}

/// The method that was asked for, or the one that the size of the graph allows.
fn method_for(asked: CircuitQuestion, graph: &EdgeGraph) -> Result<EdgeMethod, Error> {
    let edges = graph.edges().len();
    let is_large = edges > LARGE;
    if asked.metric == Metric::Kl
        && asked.direction == PatchDirection::Noise
        && let Some(method @ (EdgeMethod::Eap | EdgeMethod::AtpStar)) = asked.method
    {
        let message = format!(
            "has a gradient of 0 at the clean prompt, so that {method} finds nothing; take another --metric or --method"
        );
        return Err(Error::new("--metric", message).value(asked.metric));
    }
    match asked.method {
        None if is_large => Ok(EdgeMethod::EapIg),
        None => Ok(EdgeMethod::Exact),
        Some(method @ (EdgeMethod::Exact | EdgeMethod::AtpStar)) if is_large => {
            let message = format!(
                "takes a pass for each of {edges} edges; take eap-ig, which patches the {EXACT_OF_LARGE} best"
            );
            Err(Error::new("--method", message).value(method))
        }
        Some(method) => Ok(method),
    }
}

fn named(pair: &PromptPair, vocabulary: &[String]) -> NamedPair {
    let name = |token: u32| vocabulary[token as usize].clone();
    NamedPair {
        clean: pair.clean.iter().copied().map(name).collect(),
        corrupted: pair.corrupted.iter().copied().map(name).collect(),
        answer: name(pair.answer),
        wrong: name(pair.wrong),
    }
}

/// Every edge with its effect, the largest first.
fn edges_of(graph: &EdgeGraph, effects: &Effects, searched: &Searched) -> Vec<MeasuredEdge> {
    let mut chosen = BTreeSet::new();
    if let Some(found) = &searched.circuit {
        chosen.extend(found.circuit.edges.iter().copied());
    }
    let mut edges = Vec::with_capacity(effects.edges.len());
    for index in ranked(effects) {
        let Edge {
            source,
            destination,
        } = graph.edges()[index];
        edges.push(MeasuredEdge {
            source,
            destination,
            source_layer: source.layer(),
            destination_layer: destination.layer(),
            effect: effects.estimate(index),
            importance: effects.importance(index),
            in_circuit: chosen.contains(&index),
            exact: searched
                .exact
                .as_ref()
                .and_then(|exact| effect_of(exact, index)),
        });
    }
    edges
}

/// The effect of an edge, if it is among these.
fn effect_of(effects: &Effects, edge: usize) -> Option<Estimate> {
    let place = effects.edges.iter().position(|known| *known == edge)?;
    Some(effects.estimate(place))
}

fn circuit_edges(graph: &EdgeGraph, found: CircuitOfHalves, group: usize) -> CircuitEdges {
    let CircuitOfHalves {
        circuit,
        on_other_half,
    } = found;
    let edges = edges_at(graph, &circuit.edges);
    CircuitEdges {
        sentences: sentences(&edges, group),
        edges,
        found: circuit.found,
        faithfulness: circuit.reported,
        random: circuit.random,
        random_same_layers: circuit.random_same_layers,
        on_other_half: edges_at(graph, &on_other_half),
        shared: jaccard(
            &circuit.edges.into_iter().collect(),
            &on_other_half.into_iter().collect(),
        ),
    }
}

fn edges_at(graph: &EdgeGraph, indices: &[usize]) -> Vec<Edge> {
    indices.iter().map(|&index| graph.edges()[index]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
