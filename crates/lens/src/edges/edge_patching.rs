//! A model between two prompts, edge by edge.

use burn::tensor::Tensor;
use headlight_heads::{Metric, PatchDirection};
use headlight_residual::{Activations, NoProbe, Probed, Readout, Site};

use super::{
    EdgeError, EdgeGraph,
    batch::{Batch, numbers, written},
};
use crate::{
    PromptPair,
    given::{last_stream, readout_of},
};

/// Numbers that sources write in the passes of one batch: bounds memory.
const NUMBERS_AT_ONCE: usize = 1 << 26;
/// What the sources wrote on the corrupted prompts is kept up to this many numbers, and computed
/// again beyond it.
const MOST_KEPT: usize = 1 << 28;

/// A model between clean and corrupted prompts.
///
/// The effect of an edge is `m(base run in which the destination gets what the source wrote in the
/// other run) − m(base run)`, where the base run is the clean one ([`PatchDirection::Noise`]) or
/// the corrupted one ([`PatchDirection::Denoise`]).
///
/// A source that writes the same on both prompts has edges of effect 0, whatever it is used for.
/// Redundancy hides from single edges: two inputs that can replace each other lose little alone
/// ([`joint`](Self::joint)).
#[derive(Debug)]
pub struct EdgePatching<'a> {
    pub(super) model: &'a dyn Probed,
    pub(super) graph: EdgeGraph,
    pub(super) metric: Metric,
    pub(super) readout: Readout,
    pub(super) last: Site,
    pub(super) batches: Vec<Batch>,
    /// By batch, what the sources wrote on the corrupted prompts; empty if it takes too much.
    corrupted: Vec<Vec<Tensor<3>>>,
    clean: Vec<f64>,
    at_corrupted: Vec<f64>,
}

impl<'a> EdgePatching<'a> {
    /// Runs `model` over both prompts of each pair.
    ///
    /// # Errors
    /// If the model has no [`EdgeGraph`], a pair does not fit together or into the model, or the
    /// activations of a batch do not fit into memory.
    pub fn new(
        model: &'a dyn Probed,
        pairs: &[PromptPair],
        metric: Metric,
    ) -> Result<Self, EdgeError> {
        check(model, pairs)?;
        let graph = EdgeGraph::of(model)?;
        let length = pairs.iter().map(|pair| pair.clean.len()).max().unwrap_or(0);
        let sources: usize = graph.sources.iter().map(|site| site.names.len()).sum();
        let of_pair = length * model.sizes().d_model * sources;
        let at_once = (NUMBERS_AT_ONCE / of_pair.max(1) / 2).max(1);
        let batches = (0..pairs.len()).step_by(at_once).map(|first| {
            let range = first..(first + at_once).min(pairs.len());
            Batch::new(pairs, range, &model.device())
        });
        let mut patching = Self {
            model,
            readout: readout_of(model)?,
            last: last_stream(model)?,
            graph,
            metric,
            batches: batches.collect(),
            corrupted: Vec::new(),
            clean: Vec::new(),
            at_corrupted: Vec::new(),
        };
        let keeps_corrupted = of_pair.saturating_mul(pairs.len()) <= MOST_KEPT;
        for index in 0..patching.batches.len() {
            let tokens = patching.batches[index].clean.clone();
            let seen = model.activations(tokens, &[patching.last])?;
            let stream = seen.tensor::<3>(patching.last);
            if metric == Metric::Kl {
                patching.batches[index].remember_clean(&patching.readout, stream.clone());
            }
            let clean = patching.measured(&patching.batches[index], stream);
            patching.clean.extend(clean);
            let seen = patching.pass_over_corrupted(&patching.batches[index])?;
            let stream = seen.tensor::<3>(patching.last);
            let at_corrupted = patching.measured(&patching.batches[index], stream);
            patching.at_corrupted.extend(at_corrupted);
            if keeps_corrupted {
                patching.corrupted.push(written(&patching.graph, &seen));
            }
        }
        Ok(patching)
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &EdgeGraph {
        &self.graph
    }

    /// What is measured.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The metric of each pair in the clean run.
    #[must_use]
    pub fn at_clean(&self) -> &[f64] {
        &self.clean
    }

    /// The metric of each pair in the corrupted run.
    #[must_use]
    pub fn at_corrupted(&self) -> &[f64] {
        &self.at_corrupted
    }

    /// The metric of each pair in the run that is changed, and in the other one.
    pub(super) fn ends(&self, direction: PatchDirection) -> [&[f64]; 2] {
        match direction {
            PatchDirection::Noise => [&self.clean, &self.at_corrupted],
            PatchDirection::Denoise => [&self.at_corrupted, &self.clean],
        }
    }

    /// The metric of every row of a stream at the last site.
    pub(super) fn measured(&self, batch: &Batch, stream: Tensor<3>) -> Vec<f64> {
        numbers(batch.metric(self.metric, &self.readout, stream))
    }

    /// What the sources write on the corrupted prompts of a batch.
    pub(super) fn written_on_corrupted(&self, index: usize) -> Result<Vec<Tensor<3>>, EdgeError> {
        if let Some(kept) = self.corrupted.get(index) {
            return Ok(kept.clone());
        }
        let seen = self.pass_over_corrupted(&self.batches[index])?;
        Ok(written(&self.graph, &seen))
    }

    /// The sites at which sources write.
    pub(super) fn source_sites(&self) -> Vec<Site> {
        self.graph.sources.iter().map(|site| site.site).collect()
    }

    fn pass_over_corrupted(&self, batch: &Batch) -> Result<Activations, EdgeError> {
        let sites = [&self.source_sites()[..], &[self.last]].concat();
        let tokens = batch.corrupted.clone();
        Ok(self
            .model
            .activations_probed(tokens, &sites, &mut NoProbe)?)
    }
}

/// Checks that pairs fit together and into the model.
fn check(model: &dyn Probed, pairs: &[PromptPair]) -> Result<(), EdgeError> {
    let sizes = model.sizes();
    let wrong = |message: String| Err(EdgeError::Pair(message));
    if pairs.is_empty() {
        return wrong("there are no pairs of prompts".to_owned());
    }
    for (index, pair) in pairs.iter().enumerate() {
        let (clean, corrupted) = (pair.clean.len(), pair.corrupted.len());
        if clean != corrupted {
            return wrong(format!(
                "pair {index}: the clean prompt has {clean} tokens, the corrupted one {corrupted}"
            ));
        }
        if clean == 0 {
            return wrong(format!("pair {index}: the prompts have no tokens"));
        }
        if let Some(most) = sizes.n_ctx.filter(|&most| clean > most) {
            return wrong(format!("pair {index}: {clean} tokens in a model of {most}"));
        }
        let asked = [pair.answer, pair.wrong];
        let tokens = pair.clean.iter().chain(&pair.corrupted).chain(&asked);
        if let (Some(&token), Some(most)) = (tokens.max(), sizes.vocabulary)
            && token as usize >= most
        {
            return wrong(format!("pair {index}: token {token} of {most}"));
        }
    }
    Ok(())
}
