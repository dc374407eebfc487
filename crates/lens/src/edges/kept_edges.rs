//! Some edges carry what this run writes, all others what the corrupted run wrote.

use std::collections::BTreeSet;

use burn::tensor::{Tensor, TensorData};
use headlight_heads::{Destination, Source};
use headlight_residual::{Interest, KeptTensor, Probe, Site};

use super::{
    EdgeError, EdgeGraph, EdgePatching,
    batch::{by_source, one_source},
};
use crate::Estimate;

impl EdgePatching<'_> {
    /// The metric of each pair in the clean run in which only some edges carry what the run writes,
    /// and all others what the source wrote in the corrupted run. `kept` has a flag for each edge of
    /// the graph.
    ///
    /// With all edges this is the clean run, and with none the metric is that of the corrupted run:
    /// every destination then sees the corrupted stream.
    ///
    /// # Errors
    /// If the activations of a batch do not fit into memory.
    ///
    /// # Panics
    /// If there are not as many flags as edges.
    pub fn with_edges(&self, kept: &[bool]) -> Result<Vec<f64>, EdgeError> {
        assert_eq!(
            kept.len(),
            self.graph.edges().len(),
            "flags (left) for edges (right)"
        );
        if !leads_to_the_logits(&self.graph, kept) {
            return Ok(self.at_corrupted().to_vec());
        }
        let cuts = cuts(&self.graph, kept);
        let mut measured = Vec::with_capacity(self.clean_len());
        for (index, batch) in self.batches.iter().enumerate() {
            let device = batch.clean.device();
            let mut probe = KeptEdges {
                graph: &self.graph,
                corrupted: self.written_on_corrupted(index)?,
                cuts: cuts
                    .iter()
                    .map(|of_site| of_site.iter().map(|cut| cut.on(&device)).collect())
                    .collect(),
                differences: vec![None; self.graph.sources.len()],
            };
            let tokens = batch.clean.clone();
            let seen = self
                .model
                .activations_probed(tokens, &[self.last], &mut probe)?;
            measured.extend(self.measured(batch, seen.tensor(self.last)));
        }
        Ok(measured)
    }

    /// The effect of each source, whose value in the corrupted run all its readers get at once in
    /// the clean run.
    ///
    /// # Errors
    /// As [`with_edges`](Self::with_edges).
    pub fn exact_of_sources(&self) -> Result<Vec<(Source, Estimate)>, EdgeError> {
        let edges = self.graph.edges();
        let mut effects = Vec::new();
        for site in &self.graph.sources {
            for &source in &site.names {
                let kept: Vec<bool> = edges.iter().map(|edge| edge.source != source).collect();
                let measured = self.with_edges(&kept)?;
                let effect: Vec<f64> = measured
                    .iter()
                    .zip(self.at_clean())
                    .map(|(with, clean)| with - clean)
                    .collect();
                effects.push((source, Estimate::of_values(&effect)));
            }
        }
        Ok(effects)
    }
}

/// Whether a path of kept edges leads from the embedding to the logits. Without one, every part on the
/// way to the logits reads what it reads in the corrupted run. Positions are the same in both.
fn leads_to_the_logits(graph: &EdgeGraph, kept: &[bool]) -> bool {
    let mut reached = BTreeSet::from([Source::Embedding]);
    // Edges stand in the order of their destinations, so that a part is reached before it is read.
    for (edge, _) in graph.edges().iter().zip(kept).filter(|(_, kept)| **kept) {
        if !reached.contains(&edge.source) {
            continue;
        }
        match edge.destination {
            Destination::Logits => return true,
            Destination::FeedForward(layer) => {
                reached.insert(Source::FeedForward(layer));
            }
            Destination::Queries(head) => {
                reached.insert(Source::Head(head));
            }
            Destination::Keys(first) | Destination::Values(first) => {
                reached.extend(graph.heads_that_share(first).map(Source::Head));
            }
        }
    }
    false
}

/// The edges between a site of sources and a site of destinations that carry the corrupted value.
struct Cut {
    source_site: usize,
    sources: usize,
    /// `[destinations][sources]`: 1 where the edge is cut.
    flags: Vec<f32>,
}

/// [`Cut`] as a matrix, `[1, destinations, sources]`.
type Matrix = (usize, Tensor<3>);

impl Cut {
    fn on(&self, device: &burn::tensor::Device) -> Matrix {
        let shape = [1, self.flags.len() / self.sources, self.sources];
        let data = TensorData::new(self.flags.clone(), shape);
        (self.source_site, Tensor::from_data(data, device))
    }
}

/// For each site of destinations, what it does not see of this run.
fn cuts(graph: &EdgeGraph, kept: &[bool]) -> Vec<Vec<Cut>> {
    let mut all = Vec::with_capacity(graph.destinations.len());
    for destinations in &graph.destinations {
        let mut cuts = Vec::new();
        for (read, &source_site) in destinations.reads.iter().enumerate() {
            let (first, apart) = destinations.edges_from(graph, read);
            let sources = graph.sources[source_site].names.len();
            let mut flags = Vec::with_capacity(destinations.names.len() * sources);
            for destination in 0..destinations.names.len() {
                let first = first + destination * apart;
                let is_cut = kept[first..first + sources].iter().map(|kept| !kept);
                flags.extend(is_cut.map(|is_cut| f32::from(u8::from(is_cut))));
            }
            if flags.contains(&1.0) {
                cuts.push(Cut {
                    source_site,
                    sources,
                    flags,
                });
            }
        }
        all.push(cuts);
    }
    all
}

/// Lets each destination see the corrupted value of the sources that are cut from it.
struct KeptEdges<'a> {
    graph: &'a EdgeGraph,
    /// What sources wrote in the corrupted run, by site.
    corrupted: Vec<Tensor<3>>,
    /// By site of destinations.
    cuts: Vec<Vec<Matrix>>,
    /// Corrupted − this run, by site of sources that were met: `[batch, sources, pos·d_model]`.
    differences: Vec<Option<Tensor<3>>>,
}

impl KeptEdges<'_> {
    fn source_site(&self, site: Site) -> Option<usize> {
        self.graph
            .sources
            .iter()
            .position(|known| known.site == site)
    }

    fn cuts_at(&self, site: Site) -> &[Matrix] {
        let destinations = &self.graph.destinations;
        let at = destinations.iter().position(|known| known.site == site);
        at.map_or(&[], |at| &self.cuts[at])
    }
}

impl Probe for KeptEdges<'_> {
    fn interest(&self, site: Site) -> Interest {
        if !self.cuts_at(site).is_empty() {
            return Interest::Change;
        }
        match self.source_site(site) {
            Some(_) => Interest::Read,
            None => Interest::Skip,
        }
    }

    fn at<const D: usize>(&mut self, site: Site, activation: Tensor<D>) -> Tensor<D> {
        if let Some(index) = self.source_site(site) {
            let written = KeptTensor::from(activation.clone());
            let written = match site.head_axis() {
                Some(_) => by_source(written.into_tensor()),
                None => one_source(written.into_tensor()),
            };
            self.differences[index] = Some(self.corrupted[index].clone() - written);
        }
        let mut delta: Option<Tensor<3>> = None;
        for (source_site, cut) in self.cuts_at(site) {
            let difference = self.differences[*source_site].clone();
            let hidden = cut.clone().matmul(difference.expect("sources come first"));
            delta = Some(match delta {
                Some(delta) => delta + hidden,
                None => hidden,
            });
        }
        let Some(delta) = delta else {
            return activation;
        };
        // [batch, destinations, pos·d_model]
        let dims = activation.dims();
        let delta = match site.head_axis() {
            Some(_) => {
                let (batch, positions, heads, d_model) = (dims[0], dims[1], dims[2], dims[3]);
                let delta = delta.reshape([batch, heads, positions, d_model]);
                KeptTensor::from(delta.swap_dims(1, 2)) // [batch, pos, head, d_model]
            }
            None => KeptTensor::from(delta.reshape(dims)), // [batch, pos, d_model]
        };
        activation + delta.into_tensor()
    }
}
