//! Circuits for the report and the live explorer.

use headlight_heads::Corruption;
use headlight_lens::{EdgeGraph, Estimate, RandomBand};
use headlight_report::{
    CircuitCurvePoint, CircuitData, CircuitEdge, CircuitEdgeOverSteps, CircuitShares, CircuitSteps,
    EdgesFacts,
};
use headlight_residual::{Decoder, NormPlacement};
use headlight_run::{Error, ErrorKind};
use headlight_watch::Cores;

use super::{
    CircuitOverTraining, CircuitQuestion, FoundCircuit,
    found::{MeasuredEdge, NamedPair},
    over_training::{EdgeOverTraining, kept_weights},
    pairs::LARGE,
};
use crate::{ModelParts, Subject};

/// Of more edges a report tells nothing unless it is asked to: its circuits take longer than all
/// else of it.
const MOST_EDGES: usize = 250;
/// Edges of a large graph on a page.
const MOST_EDGES_OF_PAGE: usize = 300;

impl Subject {
    /// The circuits of all kinds of pairs, with the effects of their edges over training. Nothing
    /// where the stream is no sum, and of a graph of more than 250 edges only if `is_asked_for`.
    ///
    /// # Errors
    /// If the activations do not fit into memory.
    pub(crate) fn circuits_of_page(
        &self,
        is_asked_for: bool,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<CircuitData>, Error> {
        let ModelParts { model, .. } = self.model()?;
        if !has_edges(&model) {
            return Ok(Vec::new());
        }
        let edges = self.count_edges(&model)?;
        if edges > MOST_EDGES && !is_asked_for {
            left_out.push(format!(
                "circuits, whose {edges} edges take minutes: inspect {} report --circuits puts them here",
                self.path().display()
            ));
            return Ok(Vec::new());
        }
        let found = Cores::all().map(Corruption::ALL.to_vec(), |pairs| {
            self.circuit_of_page(pairs)
        });
        let mut circuits = Vec::new();
        for (pairs, circuit) in Corruption::ALL.into_iter().zip(found) {
            match circuit {
                Ok(circuit) => circuits.push(circuit),
                // The model does not do what the pairs ask for.
                Err(error) if error.kind() == ErrorKind::Missing => {
                    left_out.push(format!("the circuit of {pairs} pairs: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(circuits)
    }

    fn circuit_of_page(&self, pairs: Corruption) -> Result<CircuitData, Error> {
        let asked = CircuitQuestion::for_page(pairs);
        let found = self.circuit(asked)?;
        let mut over_training = None;
        // One checkpoint is no training.
        if let (Ok(run), Some(circuit)) = (self.trained(), &found.circuit)
            && kept_weights(run)?.len() > 1
        {
            over_training = Some(self.over_training(asked, &found.reporting, &circuit.edges)?);
        }
        Ok(data_of(&found, pairs, over_training))
    }

    /// The circuit of one kind of pairs, without training.
    pub(crate) fn circuit_for_explorer(&self, pairs: Corruption) -> Result<CircuitData, Error> {
        let found = self.circuit(CircuitQuestion::for_page(pairs))?;
        Ok(data_of(&found, pairs, None))
    }

    fn count_edges(&self, model: &Decoder) -> Result<usize, Error> {
        let graph = EdgeGraph::of(model).map_err(|error| self.edge_error(error))?;
        Ok(graph.edges().len())
    }
}

/// What the live explorer offers; nothing where the stream is no sum.
pub(crate) fn edges_facts(model: &Decoder) -> Option<EdgesFacts> {
    let edges = EdgeGraph::of(model).ok()?.edges().len();
    Some(EdgesFacts {
        kinds: Corruption::ALL
            .map(|pairs| (pairs, pairs.in_words()))
            .into(),
        edges,
        is_large: edges > LARGE,
    })
}

fn has_edges(model: &Decoder) -> bool {
    model.config().norm_placement != NormPlacement::Post
}

fn data_of(
    found: &FoundCircuit,
    pairs: Corruption,
    over_training: Option<CircuitOverTraining>,
) -> CircuitData {
    let [n_layers, n_heads] = found.sizes;
    let (mut sentences, mut curve) = (Vec::new(), Vec::new());
    if let Some(circuit) = &found.circuit {
        sentences.clone_from(&circuit.sentences);
    }
    for point in &found.curve {
        curve.push(CircuitCurvePoint {
            edges: point.edges,
            share: rounded(point.faithfulness.share),
            low: rounded(point.faithfulness.interval.low),
            high: rounded(point.faithfulness.interval.high),
            random: band(point.random),
            same_layers: band(point.random_same_layers),
        });
    }
    CircuitData {
        pairs,
        replaced: pairs.in_words().to_owned(),
        name: format!("{pairs} pairs"),
        finding: found.circuit_in_a_sentence(),
        about: format!("{} {}", found.about_pairs(), example(&found.prompts)),
        n_layers,
        n_heads,
        sentences,
        edges: found
            .edges
            .iter()
            .take(MOST_EDGES_OF_PAGE)
            .map(edge_of)
            .collect(),
        has_exact: found.edges.iter().any(|edge| edge.exact.is_some()),
        curve,
        shares: found.shares.as_ref().map(|shares| CircuitShares {
            shares: shares.shares.clone(),
            by_importance: all_rounded(&shares.by_importance),
            by_size: all_rounded(&shares.by_size),
            random: all_rounded(&shares.random),
            cpr: rounded(shares.cpr),
            cmd: rounded(shares.cmd),
        }),
        over_training: over_training.map(|measured| CircuitSteps {
            steps: measured.checkpoints.iter().map(|at| at.step).collect(),
            edges: measured.edges.iter().map(edge_over_steps).collect(),
        }),
    }
}

/// One pair, as an example.
fn example(prompts: &[NamedPair]) -> String {
    /// Tokens of a prompt that are shown: what differs may stand anywhere before.
    const MOST: usize = 24;
    let Some(shortest) = prompts.iter().min_by_key(|pair| pair.clean.len()) else {
        return String::new();
    };
    if shortest.clean.len() > MOST {
        return String::new();
    }
    format!(
        "For example, clean: {} → {}; corrupted: {} → {}.",
        shortest.clean.join(" "),
        shortest.answer,
        shortest.corrupted.join(" "),
        shortest.wrong,
    )
}

fn edge_of(edge: &MeasuredEdge) -> CircuitEdge {
    CircuitEdge {
        source: edge.source.to_string(),
        destination: edge.destination.to_string(),
        effect: rounded(edge.effect.mean),
        low: rounded(edge.effect.interval.low),
        high: rounded(edge.effect.interval.high),
        importance: rounded(edge.importance),
        in_circuit: edge.in_circuit,
        exact: edge.exact.map(|exact| rounded(exact.mean)),
    }
}

fn edge_over_steps(edge: &EdgeOverTraining) -> CircuitEdgeOverSteps {
    let ends = |effect: &Estimate| {
        [
            rounded(effect.mean),
            rounded(effect.interval.low),
            rounded(effect.interval.high),
        ]
    };
    CircuitEdgeOverSteps {
        source: edge.edge.source.to_string(),
        destination: edge.edge.destination.to_string(),
        after: edge.after,
        by: edge.by,
        effects: edge.effects.iter().map(ends).collect(),
    }
}

fn band(band: RandomBand) -> [f64; 3] {
    [rounded(band.least), rounded(band.mean), rounded(band.most)]
}

fn all_rounded(values: &[f64]) -> Vec<f64> {
    values.iter().copied().map(rounded).collect()
}

/// To what a page shows, with a digit to spare; what is no number is 0.
fn rounded(value: f64) -> f64 {
    if value.is_finite() {
        (value * 1000.0).round() / 1000.0
    } else {
        0.0
    }
}
