//! `AtP*`: gradients with two repairs, for where softmax is saturated and where effects cancel.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor};
use headlight_heads::{PatchDirection, Source};
use headlight_residual::{
    AttentionSite, BlockSite, Edit, Edits, Interest, KeptTensor, Part, Probe, Projection, Site,
};

use super::{
    EdgeError, EdgePatching, Effects,
    attribution::TwoRuns,
    batch::Batch,
    exact::{Place, places},
    graph::Destinations,
};
use crate::Estimate;

/// What `AtP*` says of edges and of whole parts.
#[derive(Debug, Clone, PartialEq)]
pub struct AtpStar {
    /// Of every edge, signed: as [`EdgePatching::eap`], but where the destination is a query or a
    /// key, softmax is recomputed.
    pub edges: Effects,
    /// Of every part, in the order of the graph: the mean of the sizes of its estimates, each with
    /// the gradient of one layer dropped. It has no sign.
    pub parts: Vec<(Source, Estimate)>,
}

/// How patterns change: for each edge into queries or keys, pattern with the other value of the
/// source − pattern of the base run.
type PatternChanges = BTreeMap<usize, PatternChange>;

/// How the pattern of the heads that read one destination changes.
struct PatternChange {
    layer: usize,
    /// The first of these heads.
    head: usize,
    /// `[batch, heads, query, key]`
    change: Tensor<4>,
}

impl EdgePatching<'_> {
    /// `AtP*` (Kramár et al. 2024, section 3) of every edge and every part.
    ///
    /// *Recomputed softmax*. Where softmax is saturated, its gradient is 0 although a large
    /// change of the input moves the pattern. So the effect of an edge into queries or keys is
    /// `Σ (A_other − A_base)·∂m/∂A`, with the pattern `A_other` computed from the changed input.
    /// Edges into values, feed-forwards and logits are those of [`eap`](Self::eap).
    ///
    /// *Dropped gradients* (`GradDrop`). A direct effect and an indirect one of the other sign cancel in
    /// the estimate of a part, while they do not cancel in the model. So the gradient is computed
    /// again for each layer, without what goes through the outputs of this layer. The estimate of a
    /// part is `1/n·Σ |Σ_edges effect|` over the `n` gradients: the whole one, and those without
    /// one layer other than the part's own. The paper leaves the whole gradient out. In a model of
    /// two layers it would then see nothing of a head whose only reader is the other layer.
    ///
    /// A pass for each edge into queries or keys, one forward and one backward for each layer and
    /// one more.
    ///
    /// # Errors
    /// As [`eap`](Self::eap).
    pub fn atp_star(&self, direction: PatchDirection) -> Result<AtpStar, EdgeError> {
        self.check_gradient(direction)?;
        let sources = self.graph.sources.iter().flat_map(|site| &site.names);
        let sources: Vec<Source> = sources.copied().collect();
        let mut edges = self.no_effects(direction);
        let mut sizes = vec![vec![0.0; self.clean_len()]; sources.len()];
        let layers = self.model.sizes().layers.len();
        for index in 0..self.batches.len() {
            let ends = self.two_runs(index, direction)?;
            let batch = &self.batches[index];
            let changes = self.pattern_changes(batch, &ends)?;
            let whole = self.estimates(batch, &ends, &changes, None)?;
            for (edge, values) in edges.by_pair.iter_mut().zip(&whole.by_pair) {
                edge[batch.range.clone()].copy_from_slice(&values[batch.range.clone()]);
            }
            self.add_sizes(batch, &whole, None, &sources, &mut sizes);
            for layer in 0..layers {
                let without = self.estimates(batch, &ends, &changes, Some(layer))?;
                self.add_sizes(batch, &without, Some(layer), &sources, &mut sizes);
            }
        }
        let mut parts = Vec::with_capacity(sources.len());
        for (source, mut sizes) in sources.into_iter().zip(sizes) {
            let gradients = 1 + layers - usize::from(source.layer().is_some());
            for size in &mut sizes {
                *size /= gradients as f64;
            }
            parts.push((source, Estimate::of_values(&sizes)));
        }
        Ok(AtpStar { edges, parts })
    }

    /// Adds the size of each part's estimate. A part's own layer is not dropped for it.
    fn add_sizes(
        &self,
        batch: &Batch,
        estimates: &Effects,
        dropped: Option<usize>,
        sources: &[Source],
        sizes: &mut [Vec<f64>],
    ) {
        let mut sums = vec![vec![0.0; batch.len()]; sources.len()];
        for (edge, by_pair) in self.graph.edges().iter().zip(&estimates.by_pair) {
            let Some(at) = sources.iter().position(|source| *source == edge.source) else {
                continue;
            };
            for (sum, effect) in sums[at].iter_mut().zip(&by_pair[batch.range.clone()]) {
                *sum += effect;
            }
        }
        for (at, source) in sources.iter().enumerate() {
            if dropped.is_some() && source.layer() == dropped {
                continue;
            }
            for (size, sum) in sizes[at][batch.range.clone()].iter_mut().zip(&sums[at]) {
                *size += sum.abs();
            }
        }
    }

    /// The estimate of every edge on the pairs of a batch, with the gradient that does not go
    /// through the outputs of the dropped layer.
    fn estimates(
        &self,
        batch: &Batch,
        ends: &TwoRuns,
        changes: &PatternChanges,
        dropped: Option<usize>,
    ) -> Result<Effects, EdgeError> {
        let layers = 0..self.model.sizes().layers.len();
        let pattern = |layer| Site::Attention(layer, AttentionSite::Pattern);
        let patterns: Vec<Site> = layers.map(pattern).collect();
        let mut dropped = DroppedLayer(dropped);
        let (leaves, gradients) = self.backward(
            batch,
            &ends.base,
            ends.embedding(1.0),
            &patterns,
            &mut dropped,
        )?;
        let mut effects = self.no_effects(PatchDirection::Noise);
        let at_inputs = self.at_destinations(batch, &leaves, &gradients);
        self.add_up(
            batch,
            &ends.differences,
            &at_inputs,
            1.0,
            &mut effects.by_pair,
        );
        let mut at_patterns = Vec::with_capacity(patterns.len());
        for site in patterns {
            at_patterns.push(leaves.gradient::<4>(site, &gradients));
        }
        for (
            &edge,
            PatternChange {
                layer,
                head,
                change,
            },
        ) in changes
        {
            let [rows, heads, _, _] = change.dims();
            let values = match &at_patterns[*layer] {
                Some(gradient) => {
                    let gradient = gradient.clone().narrow(1, *head, heads);
                    let products = (gradient * change.clone()).reshape([rows as i32, -1]);
                    products.sum_dim(1).into_data().iter::<f64>().collect()
                }
                // The metric does not depend on where this layer looks.
                None => vec![0.0; rows],
            };
            effects.by_pair[edge][batch.range.clone()].copy_from_slice(&values);
        }
        Ok(effects)
    }

    /// How each edge into queries or keys changes the pattern of its readers.
    fn pattern_changes(&self, batch: &Batch, ends: &TwoRuns) -> Result<PatternChanges, EdgeError> {
        let layers = self.model.sizes().layers.len();
        let mut sites = Vec::with_capacity(2 * layers);
        for layer in 0..layers {
            sites.push(Site::Attention(layer, AttentionSite::Pattern));
            sites.push(Site::Block(layer, BlockSite::ResidPre));
        }
        let seen = self.model.activations(ends.base.clone(), &sites)?;
        let all: Vec<usize> = (0..self.graph.edges().len()).collect();
        let mut changes = PatternChanges::new();
        for (at, places) in places(&self.graph, &all) {
            let destinations = &self.graph.destinations[at];
            let Site::HeadInput(layer, Projection::Query | Projection::Key) = destinations.site
            else {
                continue;
            };
            let own = seen.tensor::<4>(Site::Attention(layer, AttentionSite::Pattern));
            let stream = seen.tensor::<3>(Site::Block(layer, BlockSite::ResidPre));
            let heads = own.dims()[1] / destinations.names.len();
            let at_once = self.edges_at_once(batch, destinations);
            for of_one in places.chunk_by(|a, b| a.destination == b.destination) {
                for places in of_one.chunks(at_once) {
                    let first = places[0].destination * heads;
                    let own = own.clone().narrow(1, first, heads);
                    let other = self.patterns_with(batch, ends, destinations, places, &stream)?;
                    for (copy, place) in places.iter().enumerate() {
                        let of_edge = other.clone().narrow(0, copy * batch.len(), batch.len());
                        let of_edge = of_edge.narrow(1, first, heads);
                        let change = PatternChange {
                            layer,
                            head: first,
                            change: of_edge - own.clone(),
                        };
                        changes.insert(place.asked, change);
                    }
                }
            }
        }
        Ok(changes)
    }

    /// The patterns of a layer in which one destination sees the stream with a difference: a row for
    /// each edge and pair, `[edges·batch, heads, query, key]`.
    fn patterns_with(
        &self,
        batch: &Batch,
        ends: &TwoRuns,
        destinations: &Destinations,
        places: &[Place],
        stream: &Tensor<3>,
    ) -> Result<Tensor<4>, EdgeError> {
        let Site::HeadInput(layer, _) = destinations.site else {
            unreachable!("queries and keys are inputs of heads");
        };
        let mut deltas = Vec::with_capacity(places.len());
        for place in places {
            let source = ends.differences[place.site].clone();
            deltas.push(self.as_stream(batch, source.narrow(1, place.source, 1)));
        }
        let deltas = Tensor::cat(deltas, 0).unsqueeze_dim::<4>(2); // [rows, pos, 1, d_model]
        let head = Part::heads(&[places[0].destination]);
        let delta = Edit::Add(KeptTensor::from(deltas));
        let mut edits = Edits::default().part(destinations.site, head, delta);
        let pattern = Site::Attention(layer, AttentionSite::Pattern);
        let tokens: Tensor<2, Int> = ends.base.clone().repeat_dim(0, places.len());
        let stream = stream.clone().repeat_dim(0, places.len());
        let seen = self
            .model
            .activations_from(layer, tokens, stream, &[pattern], &mut edits)?;
        Ok(seen.tensor(pattern))
    }
}

/// Lets no gradient through what a layer writes.
pub(super) struct DroppedLayer(pub Option<usize>);

impl DroppedLayer {
    fn is_at(&self, site: Site) -> bool {
        match site {
            Site::Block(layer, BlockSite::AttnOut | BlockSite::MlpOut) => self.0 == Some(layer),
            _ => false,
        }
    }
}

impl Probe for DroppedLayer {
    fn interest(&self, site: Site) -> Interest {
        if self.is_at(site) {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, _: Site, activation: Tensor<D>) -> Tensor<D> {
        activation.detach()
    }
}
