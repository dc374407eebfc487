//! Each edge patched.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::{Int, Tensor};
use headlight_heads::PatchDirection;
use headlight_residual::{Activations, BlockSite, Edit, Edits, KeptTensor, NoProbe, Part, Site};
use serde::Serialize;

use super::{
    EdgeError, EdgePatching, Effects,
    batch::{Batch, written_at},
    graph::{Destinations, EdgeGraph},
};
use crate::Estimate;

/// Numbers of the inputs by head in one pass: bounds memory.
const INPUTS_AT_ONCE: usize = 1 << 23;

/// Some edges patched one by one, and all together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JointEffect {
    /// The sum of the effects of the edges alone.
    pub sum: Estimate,
    /// The effect of all of them at once.
    pub together: Estimate,
    /// `together − sum`. Away from 0, the edges can replace each other, or are links of one chain.
    pub interaction: Estimate,
}

/// An edge as its places in the graph.
pub(super) struct Place {
    /// Index of the edge among those that are asked for.
    pub asked: usize,
    /// Index of the site of the source.
    pub site: usize,
    /// Number of the source at its site.
    pub source: usize,
    /// Number of the destination at its site.
    pub destination: usize,
}

impl EdgePatching<'_> {
    /// The effect of each of `edges` (indices of the graph's edges), each patched alone.
    ///
    /// What stands before the destination is computed once for all edges, and the edges of one
    /// destination go through the model in one batch.
    ///
    /// # Errors
    /// If the activations of a batch do not fit into memory.
    pub fn exact(&self, edges: &[usize], direction: PatchDirection) -> Result<Effects, EdgeError> {
        let mut by_pair = vec![vec![0.0; self.clean_len()]; edges.len()];
        let places = places(&self.graph, edges);
        for index in 0..self.batches.len() {
            self.exact_of_batch(index, direction, &places, &mut by_pair)?;
        }
        let [base, _] = self.ends(direction);
        for effects in &mut by_pair {
            for (effect, base) in effects.iter_mut().zip(base) {
                *effect -= base;
            }
        }
        Ok(Effects {
            edges: edges.to_vec(),
            by_pair,
            metric: self.metric,
            direction,
        })
    }

    /// The effects of all edges, each patched alone.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn exact_of_all(&self, direction: PatchDirection) -> Result<Effects, EdgeError> {
        let all: Vec<usize> = (0..self.graph.edges().len()).collect();
        self.exact(&all, direction)
    }

    /// `edges` patched with corrupted values one by one and all at once: what tests of single edges
    /// miss.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn joint(&self, edges: &[usize]) -> Result<JointEffect, EdgeError> {
        let alone = self.exact(edges, PatchDirection::Noise)?;
        let mut kept = vec![true; self.graph.edges().len()];
        for &edge in edges {
            kept[edge] = false;
        }
        let both = self.with_edges(&kept)?;
        let pairs = 0..self.clean_len();
        let sum = |pair: usize| {
            alone
                .by_pair
                .iter()
                .map(|effects| effects[pair])
                .sum::<f64>()
        };
        let sums: Vec<f64> = pairs.clone().map(sum).collect();
        let together: Vec<f64> = pairs
            .clone()
            .map(|pair| both[pair] - self.at_clean()[pair])
            .collect();
        let interaction: Vec<f64> = pairs.map(|pair| together[pair] - sums[pair]).collect();
        Ok(JointEffect {
            sum: Estimate::of_values(&sums),
            together: Estimate::of_values(&together),
            interaction: Estimate::of_values(&interaction),
        })
    }

    pub(super) fn clean_len(&self) -> usize {
        self.at_clean().len()
    }

    /// Puts the metric of each patched run of a batch in its place.
    fn exact_of_batch(
        &self,
        index: usize,
        direction: PatchDirection,
        places: &BTreeMap<usize, Vec<Place>>,
        by_pair: &mut [Vec<f64>],
    ) -> Result<(), EdgeError> {
        let batch = &self.batches[index];
        let (base, other) = match direction {
            PatchDirection::Noise => (&batch.clean, &batch.corrupted),
            PatchDirection::Denoise => (&batch.corrupted, &batch.clean),
        };
        let mut layers = BTreeSet::new();
        for &at in places.keys() {
            layers.extend(self.graph.destinations[at].layer());
        }
        let streams = layers
            .iter()
            .map(|&layer| Site::Block(layer, BlockSite::ResidPre));
        let needed: BTreeSet<usize> = places.values().flatten().map(|place| place.site).collect();
        let sources: Vec<Site> = needed
            .iter()
            .map(|&site| self.graph.sources[site].site)
            .collect();
        let sites: Vec<Site> = sources
            .iter()
            .copied()
            .chain(streams)
            .chain([self.last])
            .collect();
        let seen = self
            .model
            .activations_probed(base.clone(), &sites, &mut NoProbe)?;
        let others = self
            .model
            .activations_probed(other.clone(), &sources, &mut NoProbe)?;
        let mut differences = BTreeMap::new();
        for &site in &needed {
            let of_site = &self.graph.sources[site];
            let difference = written_at(of_site, &others) - written_at(of_site, &seen);
            differences.insert(site, difference); // [batch, sources, pos·d_model]
        }
        drop(others);
        for (&at, places) in places {
            let destinations = &self.graph.destinations[at];
            let at_once = self.edges_at_once(batch, destinations);
            // Edges of one destination differ in nothing but the source.
            for of_one in places.chunk_by(|a, b| a.destination == b.destination) {
                for places in of_one.chunks(at_once) {
                    let hidden = |place: &Place| {
                        let source = differences[&place.site].clone().narrow(1, place.source, 1);
                        self.as_stream(batch, source)
                    };
                    let deltas = Tensor::cat(places.iter().map(hidden).collect(), 0);
                    let stream = self.last_of(batch, base, &seen, destinations, places, deltas)?;
                    let measured = self.measured(batch, stream);
                    for (place, values) in places.iter().zip(measured.chunks(batch.len())) {
                        by_pair[place.asked][batch.range.clone()].copy_from_slice(values);
                    }
                }
            }
        }
        Ok(())
    }

    /// The last stream of runs in which one destination sees the stream with a difference: a row
    /// for each edge and pair.
    fn last_of(
        &self,
        batch: &Batch,
        tokens: &Tensor<2, Int>,
        seen: &Activations,
        destinations: &Destinations,
        places: &[Place],
        deltas: Tensor<3>,
    ) -> Result<Tensor<3>, EdgeError> {
        let [rows, _, _] = deltas.dims();
        let copies = rows / batch.len();
        let Some(layer) = destinations.layer() else {
            return Ok(seen.tensor::<3>(self.last).repeat_dim(0, copies) + deltas);
        };
        let site = destinations.site;
        let mut edits = match site.head_axis() {
            Some(_) => {
                let delta = KeptTensor::from(deltas.unsqueeze_dim::<4>(2)); // [rows, pos, 1, d_model]
                let head = Part::heads(&[places[0].destination]);
                Edits::default().part(site, head, Edit::Add(delta))
            }
            None => Edits::default().at(site, Edit::Add(deltas.into())),
        };
        let before = seen.tensor::<3>(Site::Block(layer, BlockSite::ResidPre));
        let last = self.model.activations_from(
            layer,
            tokens.clone().repeat_dim(0, copies),
            before.repeat_dim(0, copies),
            &[self.last],
            &mut edits,
        )?;
        Ok(last.tensor(self.last))
    }

    /// `[batch, 1, pos·d_model]` as `[batch, pos, d_model]`.
    pub(super) fn as_stream(&self, batch: &Batch, source: Tensor<3>) -> Tensor<3> {
        let d_model = self.model.sizes().d_model;
        let [_, _, numbers] = source.dims();
        source.reshape([batch.len(), numbers / d_model, d_model])
    }

    /// How many edges of one destination go through the model together.
    pub(super) fn edges_at_once(&self, batch: &Batch, destinations: &Destinations) -> usize {
        let [rows, positions] = batch.clean.dims();
        let copies = destinations.names.len() + 1;
        let of_edge = rows * positions * self.model.sizes().d_model * copies;
        (INPUTS_AT_ONCE / of_edge.max(1)).max(1)
    }
}

/// The places of edges, by the site of their destination and sorted by destination.
pub(super) fn places(graph: &EdgeGraph, edges: &[usize]) -> BTreeMap<usize, Vec<Place>> {
    let asked: BTreeMap<usize, usize> = edges
        .iter()
        .enumerate()
        .map(|(at, &edge)| (edge, at))
        .collect();
    let mut places: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
    for (at, destinations) in graph.destinations.iter().enumerate() {
        for destination in 0..destinations.names.len() {
            for (read, &site) in destinations.reads.iter().enumerate() {
                let (first, apart) = destinations.edges_from(graph, read);
                for source in 0..graph.sources[site].names.len() {
                    let edge = first + destination * apart + source;
                    if let Some(&asked) = asked.get(&edge) {
                        places.entry(at).or_default().push(Place {
                            asked,
                            site,
                            source,
                            destination,
                        });
                    }
                }
            }
        }
    }
    places
}
