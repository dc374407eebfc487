//! What `inspect SUBJECT circuit` found.

use headlight_heads::{Corruption, Destination, Edge, EdgeMethod, Metric, PatchDirection, Source};
use headlight_lens::{
    Completeness, CurvePoint, Estimate, Faithfulness, PromptPair, RandomBand, ShareCurve,
};
use serde::Serialize;

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
    /// How far effects that gradients estimate agree with patching, where both are known.
    pub agreement: Option<Agreement>,
    /// The pairs that all this is of.
    pub prompts: Vec<NamedPair>,
    /// The same as tokens.
    #[serde(skip)]
    pub(super) reporting: Vec<PromptPair>,
    /// Layers of the model, and query heads in each.
    #[serde(skip)]
    pub(super) sizes: [usize; 2],
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
    /// Its effect when it is patched, where gradients estimate that of all parts.
    pub exact: Option<Estimate>,
}

/// How far estimated effects agree with patched ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Of the edges that are patched.
    pub edges: Similarity,
    /// Of whole parts; none where they are not patched.
    pub parts: Option<Similarity>,
}

/// How alike the sizes of estimated and of patched effects are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Similarity {
    /// Of how many things both are known.
    pub count: usize,
    /// Spearman's rank correlation; none where all sizes are equal.
    pub rank_correlation: Option<f64>,
    /// How many things move m by 0.01 of its difference between the prompts or more, patched.
    pub important: usize,
    /// How well the estimates tell these from the others; none where there are no others.
    pub auroc: Option<f64>,
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
