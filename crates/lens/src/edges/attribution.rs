//! The effects of all edges at once, estimated from gradients.

use burn::tensor::{Gradients, Int, Tensor};
use headlight_heads::{Metric, PatchDirection, Source};
use headlight_residual::{Interest, KeptTensor, Leaves, NoProbe, Probe, Site};

use super::{
    Completeness, EdgeError, EdgePatching, Effects,
    batch::{Batch, by_source, one_source, written},
};

/// Points on the way from one run to the other, at first.
const FEWEST_STEPS: usize = 5;
/// How far the sum over the edges of the embedding may be from the whole difference.
const COMPLETE: f64 = 0.01;

impl EdgePatching<'_> {
    /// Edge attribution patching (Syed et al. 2023, section 3): the effect of every edge to first
    /// order, `Σ (s_other − s_base)·∂m/∂d` with the gradient at the base run, where `d` is the
    /// input of the destination.
    ///
    /// # Errors
    /// If the metric is [`Metric::Kl`] in the direction of noise, whose gradient is 0 at the clean
    /// run, or the activations of a batch do not fit into memory.
    pub fn eap(&self, direction: PatchDirection) -> Result<Effects, EdgeError> {
        self.check_gradient(direction)?;
        let mut effects = self.no_effects(direction);
        for index in 0..self.batches.len() {
            let ends = self.two_runs(index, direction)?;
            let batch = &self.batches[index];
            let gradients = self.gradients(batch, &ends.base, ends.embedding(1.0))?;
            self.add_up(
                batch,
                &ends.differences,
                &gradients,
                1.0,
                &mut effects.by_pair,
            );
        }
        Ok(effects)
    }

    /// EAP with integrated gradients (Hanna et al. 2024, section 3): the gradient is the mean over
    /// runs whose embedding is `other + k/n·(base − other)`, `k = 0 … n − 1`.
    ///
    /// `n` starts at 5 and doubles until the effects of the embedding's edges add up to
    /// `m(other) − m(base)` within 1 %, or `n` would exceed `most_steps`. Each batch has an `n` of
    /// its own; the largest is given back.
    ///
    /// # Errors
    /// If the activations of a batch do not fit into memory.
    pub fn eap_ig(
        &self,
        direction: PatchDirection,
        most_steps: usize,
    ) -> Result<(Effects, Completeness), EdgeError> {
        let mut effects = self.no_effects(direction);
        let (mut most, mut sum) = (0, 0.0);
        let [base, other] = self.ends(direction);
        for index in 0..self.batches.len() {
            let ends = self.two_runs(index, direction)?;
            let batch = &self.batches[index];
            let range = batch.range.clone();
            let whole: f64 = range.clone().map(|pair| other[pair] - base[pair]).sum();
            let mut steps = FEWEST_STEPS.min(most_steps.max(1));
            let mut gradients = self.gradients_at(batch, &ends, 0..steps, steps)?;
            loop {
                self.add_up(
                    batch,
                    &ends.differences,
                    &gradients,
                    1.0 / steps as f64,
                    &mut effects.by_pair,
                );
                let of_embedding = self.of_embedding(&effects, range.clone());
                if (of_embedding / whole - 1.0).abs() <= COMPLETE || 2 * steps > most_steps {
                    most = most.max(steps);
                    sum += of_embedding;
                    break;
                }
                // The points of n steps are every other point of 2n steps.
                let between = (0..steps).map(|k| 2 * k + 1);
                steps *= 2;
                let more = self.gradients_at(batch, &ends, between, steps)?;
                gradients = added(Some(gradients), more);
            }
        }
        let whole: f64 = other
            .iter()
            .zip(base)
            .map(|(other, base)| other - base)
            .sum();
        let completeness = Completeness {
            steps: most,
            share: sum / whole,
        };
        Ok((effects, completeness))
    }

    /// An error where the gradient at the base run is 0 whatever the model does.
    pub(super) fn check_gradient(&self, direction: PatchDirection) -> Result<(), EdgeError> {
        if self.metric == Metric::Kl && direction == PatchDirection::Noise {
            return Err(EdgeError::NoGradient);
        }
        Ok(())
    }

    pub(super) fn no_effects(&self, direction: PatchDirection) -> Effects {
        let edges = self.graph.edges().len();
        Effects {
            edges: (0..edges).collect(),
            by_pair: vec![vec![0.0; self.clean_len()]; edges],
            metric: self.metric,
            direction,
        }
    }

    /// What sources write in both runs.
    pub(super) fn two_runs(
        &self,
        index: usize,
        direction: PatchDirection,
    ) -> Result<TwoRuns, EdgeError> {
        let batch = &self.batches[index];
        let (base, other) = match direction {
            PatchDirection::Noise => (&batch.clean, &batch.corrupted),
            PatchDirection::Denoise => (&batch.corrupted, &batch.clean),
        };
        let sites = self.source_sites();
        let pass = |tokens: &Tensor<2, Int>| {
            self.model
                .activations_probed(tokens.clone(), &sites, &mut NoProbe)
        };
        let (own, others) = (pass(base)?, pass(other)?);
        let differences = written(&self.graph, &others)
            .into_iter()
            .zip(written(&self.graph, &own))
            .map(|(other, own)| other - own);
        Ok(TwoRuns {
            base: base.clone(),
            differences: differences.collect(),
            embeddings: [own.tensor(Site::Embed), others.tensor(Site::Embed)],
        })
    }

    /// The sum of the gradients at some of `of` points between the runs.
    fn gradients_at(
        &self,
        batch: &Batch,
        ends: &TwoRuns,
        points: impl Iterator<Item = usize>,
        of: usize,
    ) -> Result<Vec<Tensor<3>>, EdgeError> {
        let mut sum = None;
        for point in points {
            let embedding = ends.embedding(point as f64 / of as f64);
            sum = Some(added(sum, self.gradients(batch, &ends.base, embedding)?));
        }
        Ok(sum.unwrap_or_default())
    }

    /// The gradient of the sum of the metric at the input of every destination, by site:
    /// `[batch, destinations, pos·d_model]`.
    fn gradients(
        &self,
        batch: &Batch,
        tokens: &Tensor<2, Int>,
        embedding: Tensor<3>,
    ) -> Result<Vec<Tensor<3>>, EdgeError> {
        let (leaves, gradients) = self.backward(batch, tokens, embedding, &[], &mut NoProbe)?;
        Ok(self.at_destinations(batch, &leaves, &gradients))
    }

    /// A run from `embedding` on past `probe`, and the gradient of the sum of the metric at the
    /// inputs of the destinations and at `more` sites.
    pub(super) fn backward<P: Probe>(
        &self,
        batch: &Batch,
        tokens: &Tensor<2, Int>,
        embedding: Tensor<3>,
        more: &[Site],
        probe: &mut P,
    ) -> Result<(Leaves, Gradients), EdgeError> {
        let mut sites: Vec<Site> = self.graph.destinations.iter().map(|at| at.site).collect();
        sites.extend_from_slice(more);
        let (mut start, mut leaves) = (Tracked(embedding.into()), Leaves::new(&sites));
        let last = [self.last];
        let mut all = (&mut start, (probe, &mut leaves));
        let seen = self
            .model
            .activations_probed(tokens.clone(), &last, &mut all)?;
        let measured = batch.metric(self.metric, &self.readout, seen.tensor(self.last));
        let gradients = measured.sum().backward();
        Ok((leaves, gradients))
    }

    /// The gradients at the inputs of the destinations, by site: `[batch, destinations,
    /// pos·d_model]`.
    pub(super) fn at_destinations(
        &self,
        batch: &Batch,
        leaves: &Leaves,
        gradients: &Gradients,
    ) -> Vec<Tensor<3>> {
        let [rows, positions] = batch.clean.dims();
        let width = positions * self.model.sizes().d_model;
        let mut at_sites = Vec::with_capacity(self.graph.destinations.len());
        for destinations in &self.graph.destinations {
            let site = destinations.site;
            let gradient = match site.head_axis() {
                Some(_) => leaves.gradient::<4>(site, gradients).map(by_source),
                None => leaves.gradient::<3>(site, gradients).map(one_source),
            };
            // The metric may not depend on an input: on keys of which only one can be seen.
            let zeros = [rows, destinations.names.len(), width];
            at_sites.push(gradient.unwrap_or_else(|| Tensor::zeros(zeros, &batch.clean.device())));
        }
        at_sites
    }

    /// Sets the effects of every edge on the pairs of a batch.
    pub(super) fn add_up(
        &self,
        batch: &Batch,
        differences: &[Tensor<3>],
        gradients: &[Tensor<3>],
        factor: f64,
        by_pair: &mut [Vec<f64>],
    ) {
        for (destinations, gradients) in self.graph.destinations.iter().zip(gradients) {
            for (read, &site) in destinations.reads.iter().enumerate() {
                let (first, apart) = destinations.edges_from(&self.graph, read);
                let products = gradients
                    .clone()
                    .matmul(differences[site].clone().swap_dims(1, 2)); // [batch, destinations, sources]
                let [_, count, sources] = products.dims();
                let products: Vec<f64> = products.into_data().iter::<f64>().collect();
                for (at, product) in products.iter().enumerate() {
                    let (pair, edge) = (at / (count * sources), at % (count * sources));
                    let edge = first + edge / sources * apart + edge % sources;
                    by_pair[edge][batch.range.start + pair] = product * factor;
                }
            }
        }
    }

    /// The sum of the effects of all edges out of the embedding over some pairs.
    fn of_embedding(&self, effects: &Effects, pairs: std::ops::Range<usize>) -> f64 {
        let mut sum = 0.0;
        for (edge, by_pair) in self.graph.edges().iter().zip(&effects.by_pair) {
            if edge.source == Source::Embedding {
                sum += by_pair[pairs.clone()].iter().sum::<f64>();
            }
        }
        sum
    }
}

/// Two runs over the pairs of a batch.
pub(super) struct TwoRuns {
    /// The tokens of the run that is changed.
    pub base: Tensor<2, Int>,
    /// What sources write more in the other run, by site: `[batch, sources, pos·d_model]`.
    pub differences: Vec<Tensor<3>>,
    /// Of the base run and of the other, `[batch, pos, d_model]`.
    embeddings: [Tensor<3>; 2],
}

impl TwoRuns {
    /// On the way from the other run (0) to the base run (1).
    pub fn embedding(&self, share: f64) -> Tensor<3> {
        let [base, other] = &self.embeddings;
        other.clone() + (base.clone() - other.clone()).mul_scalar(share)
    }
}

fn added(sum: Option<Vec<Tensor<3>>>, more: Vec<Tensor<3>>) -> Vec<Tensor<3>> {
    match sum {
        Some(sum) => sum
            .into_iter()
            .zip(more)
            .map(|(sum, more)| sum + more)
            .collect(),
        None => more,
    }
}

/// Puts an embedding in the place of a pass's own, and turns gradients on from there. The weights
/// stay constants, so no gradient of a weight is computed.
struct Tracked(KeptTensor);

impl Probe for Tracked {
    fn interest(&self, site: Site) -> Interest {
        if site == Site::Embed {
            Interest::Change
        } else {
            Interest::Skip
        }
    }

    fn at<const D: usize>(&mut self, _: Site, _: Tensor<D>) -> Tensor<D> {
        self.0.tensor::<D>().autodiff()
    }
}
