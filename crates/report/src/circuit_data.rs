//! A circuit as a page shows it.

use headlight_heads::Corruption;
use serde::{Deserialize, Serialize};

/// The edges through which a behaviour runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitData {
    /// What differs between the two prompts of a pair.
    pub pairs: Corruption,
    /// The same in words.
    pub replaced: String,
    /// `key pairs`: in names of figures.
    pub name: String,
    /// What came out, in a sentence.
    pub finding: String,
    /// What was measured on what.
    pub about: String,
    /// Layers of the model.
    pub n_layers: usize,
    /// Query heads in each layer.
    pub n_heads: usize,
    /// The edges of the circuit in sentences; nothing where no circuit was searched for.
    pub sentences: Vec<String>,
    /// Every edge, the largest effect first; of a large graph the first of them.
    pub edges: Vec<CircuitEdge>,
    /// Whether edges were patched after gradients had chosen them.
    pub has_exact: bool,
    /// What the first edges of the ranking carry; nothing for a large graph.
    pub curve: Vec<CircuitCurvePoint>,
    /// What shares of a large graph carry.
    pub shares: Option<CircuitShares>,
    /// The edges of the circuit at kept checkpoints, of a run.
    pub over_training: Option<CircuitSteps>,
}

/// An edge and its effect, in the units of the metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitEdge {
    /// Who writes.
    pub source: String,
    /// Who reads.
    pub destination: String,
    /// The mean over pairs.
    pub effect: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What is lost without the edge; below 0 it works against the answer.
    pub importance: f64,
    /// Whether it is one of the circuit.
    pub in_circuit: bool,
    /// Its effect when it is patched, where gradients estimate that of all edges.
    pub exact: Option<f64>,
}

/// The faithfulness of some edges and of as many random ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitCurvePoint {
    /// How many edges.
    pub edges: usize,
    /// What they carry.
    pub share: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Of random edges: least, mean, most.
    pub random: [f64; 3],
    /// Of random edges between the same layers: least, mean, most.
    pub same_layers: [f64; 3],
}

/// What shares of a large graph carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitShares {
    /// Shares of the edges.
    pub shares: Vec<f64>,
    /// Faithfulness of the most important edges.
    pub by_importance: Vec<f64>,
    /// Of the edges of the largest effects.
    pub by_size: Vec<f64>,
    /// Of random edges.
    pub random: Vec<f64>,
    /// The area under `by_importance`.
    pub cpr: f64,
    /// The area of `|1 − by_size|`.
    pub cmd: f64,
}

/// The edges of a circuit over training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitSteps {
    /// The steps whose weights were kept.
    pub steps: Vec<usize>,
    /// The edges of the circuit of the last one.
    pub edges: Vec<CircuitEdgeOverSteps>,
}

/// An edge at each step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircuitEdgeOverSteps {
    /// Who writes.
    pub source: String,
    /// Who reads.
    pub destination: String,
    /// It appeared after this step,
    pub after: usize,
    /// and by this one.
    pub by: usize,
    /// Effect, low, high at each step.
    pub effects: Vec<[f64; 3]>,
}
