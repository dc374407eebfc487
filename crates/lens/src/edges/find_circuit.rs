//! The few edges that carry a behaviour, and what chance edges carry.

use std::collections::BTreeMap;

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{
    EdgeError, EdgeGraph, EdgePatching, Effects, Faithfulness,
    effects::mean,
    ranking::{ranked, ranked_by_importance},
};

/// The shares of edges of a large graph (Mueller et al. 2025, section 3).
const SHARES: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Edges that carry a behaviour.
#[derive(Debug, Clone, PartialEq)]
pub struct Circuit {
    /// Indices of the graph's edges, the largest effect first.
    pub edges: Vec<usize>,
    /// On the pairs on which they were chosen.
    pub found: Faithfulness,
    /// On other pairs.
    pub reported: Faithfulness,
    /// Of as many random edges, on other pairs.
    pub random: RandomBand,
    /// Of as many random edges between the same layers, on other pairs.
    pub random_same_layers: RandomBand,
}

/// The faithfulness of the first edges of a ranking, on other pairs than those of the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// How many edges.
    pub edges: usize,
    /// What they carry.
    #[serde(flatten)]
    pub faithfulness: Faithfulness,
    /// What as many random edges carry.
    pub random: RandomBand,
    /// What as many random edges between the same layers carry.
    pub random_same_layers: RandomBand,
}

/// Random sets of edges that stand beside chosen ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomSets {
    /// They follow from it.
    pub seed: u64,
    /// How many for each number of edges.
    pub count: usize,
}

impl RandomSets {
    /// 20 sets.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self { seed, count: 20 }
    }
}

/// The faithfulness of random sets of edges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RandomBand {
    /// How many sets; 1 where there is only one to draw.
    pub sets: usize,
    /// The least.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub most: f64,
}

/// Searches few edges that carry `enough` on the pairs of `finding`. `effects` are those of all edges
/// on these pairs.
///
/// Edges carry enough if the lower end of the 95 % interval of their faithfulness reaches it. The
/// share itself is the largest of many tries, and so would often be below `enough` on other pairs.
///
/// The first 0, 1, 2, 3, 5, 8, 13, … edges by size of effect are kept until they carry it. Then
/// each edge is cut again, the smallest first, and stays cut if the rest, computed anew, carries
/// enough; again and again until no more edge can be cut. `None` if all edges do not carry it. A
/// small circuit is evidence that the behaviour runs there; another small one may exist.
///
/// # Errors
/// If the activations of a batch do not fit into memory.
pub fn find_edges(
    finding: &EdgePatching,
    effects: &Effects,
    enough: f64,
) -> Result<Option<Vec<usize>>, EdgeError> {
    let order = ranked(effects);
    let mut edges = None;
    for count in counts(order.len()) {
        if carries(finding, &order[..count], enough)? {
            edges = Some(order[..count].to_vec());
            break;
        }
    }
    let Some(mut edges) = edges else {
        return Ok(None);
    };
    loop {
        let before = edges.len();
        for edge in edges.clone().into_iter().rev() {
            let mut rest = edges.clone();
            rest.retain(|other| *other != edge);
            if carries(finding, &rest, enough)? {
                edges = rest;
            }
        }
        if edges.len() == before {
            return Ok(Some(edges));
        }
    }
}

/// Whether the lower end of the interval of what some edges carry reaches `enough`.
fn carries(finding: &EdgePatching, edges: &[usize], enough: f64) -> Result<bool, EdgeError> {
    Ok(faithfulness(finding, edges)?.interval.low >= enough)
}

/// The edges that [`find_edges`] finds on the pairs of `finding`, reported on those of `reporting`
/// beside random edges.
///
/// # Errors
/// As [`find_edges`].
pub fn find_circuit(
    finding: &EdgePatching,
    reporting: &EdgePatching,
    effects: &Effects,
    enough: f64,
    sets: RandomSets,
) -> Result<Option<Circuit>, EdgeError> {
    let Some(edges) = find_edges(finding, effects, enough)? else {
        return Ok(None);
    };
    let mut null = Null::new(reporting, sets);
    Ok(Some(Circuit {
        found: faithfulness(finding, &edges)?,
        reported: faithfulness(reporting, &edges)?,
        random: null.of_as_many(edges.len())?,
        random_same_layers: null.of_same_layers(&edges)?,
        edges,
    }))
}

/// The curve of faithfulness over the number of edges, by size of `effects`: at 0, 1, 2, 3, 5, 8,
/// 13, … and all edges, each beside random edges. `reporting` has other pairs than `effects`.
///
/// # Errors
/// As [`find_circuit`].
pub fn curve(
    reporting: &EdgePatching,
    effects: &Effects,
    sets: RandomSets,
) -> Result<Vec<CurvePoint>, EdgeError> {
    let order = ranked(effects);
    let mut null = Null::new(reporting, sets);
    let mut points = Vec::new();
    for count in counts(order.len()) {
        points.push(CurvePoint {
            edges: count,
            faithfulness: faithfulness(reporting, &order[..count])?,
            random: null.of_as_many(count)?,
            random_same_layers: null.of_same_layers(&order[..count])?,
        });
    }
    Ok(points)
}

/// A large graph by shares of its edges (MIB, Mueller et al. 2025, section 3).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShareCurve {
    /// Shares of the edges.
    pub shares: Vec<f64>,
    /// Faithfulness of the most important edges, signed: those that work against the answer last.
    pub by_importance: Vec<f64>,
    /// Faithfulness of the edges of the largest effects, whatever their sign.
    pub by_size: Vec<f64>,
    /// Faithfulness of one set of as many random edges.
    pub random: Vec<f64>,
    /// The area under `by_importance` (circuit performance ratio): the higher, the better.
    pub cpr: f64,
    /// The area of `|1 − by_size|` (circuit–model distance): the lower, the better.
    pub cmd: f64,
}

/// [`ShareCurve`] of the edges ranked by `effects`, on the pairs of `reporting`.
///
/// # Errors
/// As [`find_circuit`].
pub fn share_curve(
    reporting: &EdgePatching,
    effects: &Effects,
    seed: u64,
) -> Result<ShareCurve, EdgeError> {
    let mut at_random = effects.edges.clone();
    at_random.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let of = |order: &[usize]| -> Result<Vec<f64>, EdgeError> {
        let mut found = Vec::with_capacity(SHARES.len());
        for share in SHARES {
            let count = (share * order.len() as f64).round() as usize;
            found.push(faithfulness(reporting, &order[..count])?.share);
        }
        Ok(found)
    };
    let by_importance = of(&ranked_by_importance(effects))?;
    let by_size = of(&ranked(effects))?;
    let distances: Vec<f64> = by_size.iter().map(|share| (1.0 - share).abs()).collect();
    Ok(ShareCurve {
        shares: SHARES.to_vec(),
        random: of(&at_random)?,
        cpr: area(&by_importance),
        cmd: area(&distances),
        by_importance,
        by_size,
    })
}

/// By trapezoids over the shares.
fn area(values: &[f64]) -> f64 {
    let mut area = 0.0;
    for at in 1..SHARES.len() {
        let width = SHARES[at] - SHARES[at - 1];
        area += width * (values[at] + values[at - 1]) / 2.0;
    }
    area
}

/// What some edges carry on the pairs of `patching`.
///
/// # Errors
/// As [`find_circuit`].
pub fn faithfulness(patching: &EdgePatching, edges: &[usize]) -> Result<Faithfulness, EdgeError> {
    let mut kept = vec![false; patching.graph().edges().len()];
    for &edge in edges {
        kept[edge] = true;
    }
    let circuit = patching.with_edges(&kept)?;
    let (clean, corrupted) = (patching.at_clean(), patching.at_corrupted());
    Ok(Faithfulness::of(&circuit, clean, corrupted))
}

/// 0, 1, 2, 3, 5, 8, 13, … up to `most`.
fn counts(most: usize) -> Vec<usize> {
    let (mut counts, mut next) = (vec![0], [1, 2]);
    while next[0] < most {
        counts.push(next[0]);
        next = [next[1], next[0] + next[1]];
    }
    if most > 0 {
        counts.push(most);
    }
    counts
}

/// What chance edges carry.
struct Null<'a> {
    patching: &'a EdgePatching<'a>,
    sets: usize,
    rng: ChaCha8Rng,
}

impl<'a> Null<'a> {
    fn new(patching: &'a EdgePatching<'a>, sets: RandomSets) -> Self {
        Self {
            patching,
            sets: sets.count,
            rng: ChaCha8Rng::seed_from_u64(sets.seed),
        }
    }

    /// Random sets of `count` edges.
    fn of_as_many(&mut self, count: usize) -> Result<RandomBand, EdgeError> {
        let all: Vec<usize> = (0..self.patching.graph().edges().len()).collect();
        if count == 0 || count == all.len() {
            return self.of(vec![all[..count].to_vec()]);
        }
        let mut sets = Vec::with_capacity(self.sets);
        for _ in 0..self.sets {
            let mut drawn = all.clone();
            drawn.shuffle(&mut self.rng);
            drawn.truncate(count);
            sets.push(drawn);
        }
        self.of(sets)
    }

    /// Random sets of as many edges between the same layers.
    fn of_same_layers(&mut self, edges: &[usize]) -> Result<RandomBand, EdgeError> {
        let graph = self.patching.graph();
        if edges.is_empty() || edges.len() == graph.edges().len() {
            return self.of(vec![edges.to_vec()]);
        }
        let mut groups: BTreeMap<Layers, (Vec<usize>, usize)> = BTreeMap::new();
        for edge in 0..graph.edges().len() {
            groups.entry(layers(graph, edge)).or_default().0.push(edge);
        }
        for &edge in edges {
            groups.entry(layers(graph, edge)).or_default().1 += 1;
        }
        let mut sets = Vec::with_capacity(self.sets);
        for _ in 0..self.sets {
            let mut drawn = Vec::with_capacity(edges.len());
            for (group, wanted) in groups.values() {
                let mut group = group.clone();
                group.shuffle(&mut self.rng);
                drawn.extend_from_slice(&group[..*wanted]);
            }
            sets.push(drawn);
        }
        self.of(sets)
    }

    fn of(&self, sets: Vec<Vec<usize>>) -> Result<RandomBand, EdgeError> {
        let mut shares = Vec::with_capacity(sets.len());
        for set in &sets {
            shares.push(faithfulness(self.patching, set)?.share);
        }
        Ok(RandomBand {
            sets: shares.len(),
            least: shares.iter().copied().fold(f64::INFINITY, f64::min),
            mean: mean(&shares),
            most: shares.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// The layers of source and destination.
type Layers = [Option<usize>; 2];

fn layers(graph: &EdgeGraph, edge: usize) -> Layers {
    let edge = graph.edges()[edge];
    [edge.source.layer(), edge.destination.layer()]
}
