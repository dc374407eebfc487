//! The effects of edges, pair by pair.

use headlight_heads::{Metric, PatchDirection, Source};
use serde::Serialize;

use super::EdgeGraph;
use crate::Estimate;

/// The effects of some edges of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    /// Which edges: indices of [`EdgeGraph::edges`](super::EdgeGraph::edges).
    pub edges: Vec<usize>,
    /// `[edge][pair]`, in the units of the metric.
    pub by_pair: Vec<Vec<f64>>,
    /// What the effects are of.
    pub metric: Metric,
    /// Which run was changed.
    pub direction: PatchDirection,
}

/// How well gradients on the way between two runs add up to the difference between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Completeness {
    /// At how many points of the way gradients were taken.
    pub steps: usize,
    /// The sum of the effects of all edges out of the embedding, as a share of
    /// `m(other run) − m(base run)`: 1 if they add up.
    pub share: f64,
}

impl Effects {
    /// The mean effect of the edge at `place`, with its interval over pairs.
    #[must_use]
    pub fn estimate(&self, place: usize) -> Estimate {
        Estimate::of_values(&self.by_pair[place])
    }

    /// The mean effect of each edge.
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        self.by_pair.iter().map(|values| mean(values)).collect()
    }

    /// The sums over the edges out of each source of `graph`. Of effects that gradients estimate,
    /// this is attribution patching of whole parts (`AtP`, Kramár et al. 2024, section 2): a part's
    /// gradient is the sum of those of its readers. Of exact effects it is not the effect of the
    /// part.
    #[must_use]
    pub fn by_source(&self, graph: &EdgeGraph) -> Vec<(Source, Estimate)> {
        let mut sums: Vec<(Source, Vec<f64>)> = Vec::new();
        for (&edge, by_pair) in self.edges.iter().zip(&self.by_pair) {
            let source = graph.edges()[edge].source;
            match sums.iter_mut().find(|(known, _)| *known == source) {
                Some((_, sum)) => {
                    for (sum, effect) in sum.iter_mut().zip(by_pair) {
                        *sum += effect;
                    }
                }
                None => sums.push((source, by_pair.clone())),
            }
        }
        let estimate = |(source, sum): (Source, Vec<f64>)| (source, Estimate::of_values(&sum));
        sums.into_iter().map(estimate).collect()
    }

    /// How much the edge at `place` matters: what is lost where its destination gets the corrupted
    /// value, or what comes back where it gets the clean one. Below 0, the edge works against the
    /// answer.
    #[must_use]
    pub fn importance(&self, place: usize) -> f64 {
        let lost = self.metric.importance(mean(&self.by_pair[place]));
        match self.direction {
            PatchDirection::Noise => lost,
            PatchDirection::Denoise => -lost,
        }
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
