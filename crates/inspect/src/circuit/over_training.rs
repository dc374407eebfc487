//! `inspect RUN circuit --over-training`: when did each edge appear?

use headlight_heads::{Corruption, Edge, Metric, PatchDirection};
use headlight_lens::{EdgeError, EdgePatching, Estimate, PromptPair, find_edges};
use headlight_report::{Printout, Table};
use headlight_residual::Decoder;
use headlight_run::{Error, ErrorKind, Weights};
use headlight_watch::{Cores, model};
use serde::Serialize;

use super::{CircuitQuestion, pairs::pairs_in_words, search::ENOUGH};
use crate::{ModelParts, Subject, subject::TrainedRun};

/// The edges of the last circuit at every kept checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CircuitOverTraining {
    /// What differs between the prompts; none where the pairs were given.
    pub corruption: Option<Corruption>,
    /// What is read from the logits.
    pub metric: Metric,
    /// The pairs that effects are of: not those on which the circuit was found.
    pub pairs: usize,
    /// The checkpoints, first to last.
    pub checkpoints: Vec<CircuitAtStep>,
    /// The edges of the circuit of the last checkpoint.
    pub edges: Vec<EdgeOverTraining>,
}

/// The behaviour at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CircuitAtStep {
    /// Updates so far.
    pub step: usize,
    /// The mean of the metric in the clean run.
    pub clean: f64,
    /// The mean of the metric in the corrupted run.
    pub corrupted: f64,
}

/// An edge at every checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeOverTraining {
    /// The edge.
    #[serde(flatten)]
    pub edge: Edge,
    /// Its effect at each checkpoint, patched.
    pub effects: Vec<Estimate>,
    /// The edge has appeared after this step: at the checkpoint here its effect was below half of
    /// the last one.
    pub after: usize,
    /// And no later than at this step: from here on its effect is at least half of the last one.
    pub by: usize,
}

/// What was measured at one checkpoint.
struct Measured {
    at: CircuitAtStep,
    /// Of each edge.
    effects: Vec<Estimate>,
}

impl Subject {
    /// The edges of the circuit of the last weights, patched at every kept checkpoint.
    ///
    /// # Errors
    /// If the subject is no run, has a large graph, or its last weights have no circuit.
    pub fn circuit_over_training(
        &self,
        asked: CircuitQuestion,
    ) -> Result<CircuitOverTraining, Error> {
        self.trained()?;
        let ModelParts { model, .. } = self.model()?;
        self.check_small(&model)?;
        let pairs = self.circuit_pairs(&model, asked.corruption)?;
        let (finding, reporting) = pairs.halves();
        let edges = circuit_of(&model, finding, asked.metric);
        let edges = edges.map_err(|error| self.edge_error(error))?;
        let edges = edges.ok_or_else(|| {
            let message = format!("has no circuit that carries {ENOUGH} of the behaviour");
            Error::new(self.path().display(), message)
        })?;
        let asked = CircuitQuestion {
            corruption: pairs.corruption,
            ..asked
        };
        self.over_training(asked, reporting, &edges)
    }

    /// Some edges, patched at every kept checkpoint.
    ///
    /// # Errors
    /// If the subject is no run, or weights cannot be read.
    pub(super) fn over_training(
        &self,
        asked: CircuitQuestion,
        pairs: &[PromptPair],
        edges: &[Edge],
    ) -> Result<CircuitOverTraining, Error> {
        let run = self.trained()?;
        let kept = kept_weights(run)?;
        if kept.is_empty() {
            let message = format!("has no checkpoint up to step {}", run.step()?);
            return Err(Error::of(
                ErrorKind::Missing,
                self.path().display(),
                message,
            ));
        }
        let measured = Cores::all().map(kept, |(step, weights)| {
            let model = model::load(&run.directory, &run.config, weights, self.device())?;
            measured_at(&model, pairs, asked.metric, edges, step)
                .map_err(|error| self.edge_error(error))
        });
        let measured: Vec<Measured> = measured.into_iter().collect::<Result<_, Error>>()?;
        let steps: Vec<usize> = measured.iter().map(|measured| measured.at.step).collect();
        let mut over_training = Vec::with_capacity(edges.len());
        for (at, &edge) in edges.iter().enumerate() {
            let effects = measured.iter().map(|measured| measured.effects[at]);
            let effects: Vec<Estimate> = effects.collect();
            let [after, by] = appeared(&steps, &effects);
            over_training.push(EdgeOverTraining {
                edge,
                effects,
                after,
                by,
            });
        }
        Ok(CircuitOverTraining {
            corruption: asked.corruption,
            metric: asked.metric,
            pairs: pairs.len(),
            checkpoints: measured.iter().map(|measured| measured.at).collect(),
            edges: over_training,
        })
    }
}

/// The weights that are kept of each step up to the one that is looked at, first to last.
pub(super) fn kept_weights(run: &TrainedRun) -> Result<Vec<(usize, Weights)>, Error> {
    let end = run.step()?;
    let mut kept: Vec<(usize, Weights)> = Vec::new();
    for weights in run.directory.checkpoints().into_iter().rev() {
        let step = run.directory.state(weights)?.step;
        // The last weights may be those of the newest checkpoint.
        let is_known = kept.iter().any(|(known, _)| *known == step);
        if !is_known && step <= end {
            kept.push((step, weights));
        }
    }
    Ok(kept)
}

/// The fewest edges that carry enough on some pairs; none where all do not.
fn circuit_of(
    model: &Decoder,
    pairs: &[PromptPair],
    metric: Metric,
) -> Result<Option<Vec<Edge>>, EdgeError> {
    let patching = EdgePatching::new(model, pairs, metric)?;
    let effects = patching.exact_of_all(PatchDirection::Noise)?;
    let Some(found) = find_edges(&patching, &effects, ENOUGH)? else {
        return Ok(None);
    };
    let edges = patching.graph().edges();
    Ok(Some(found.iter().map(|&edge| edges[edge]).collect()))
}

/// The behaviour and the effects of some edges in one model.
fn measured_at(
    model: &Decoder,
    pairs: &[PromptPair],
    metric: Metric,
    edges: &[Edge],
    step: usize,
) -> Result<Measured, EdgeError> {
    let patching = EdgePatching::new(model, pairs, metric)?;
    let indices = edges
        .iter()
        .filter_map(|&edge| patching.graph().index(edge));
    let indices: Vec<usize> = indices.collect();
    let effects = patching.exact(&indices, PatchDirection::Noise)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Ok(Measured {
        at: CircuitAtStep {
            step,
            clean: mean(patching.at_clean()),
            corrupted: mean(patching.at_corrupted()),
        },
        effects: (0..indices.len())
            .map(|place| effects.estimate(place))
            .collect(),
    })
}

/// The steps between which an effect came to at least half of the last one, for good.
fn appeared(steps: &[usize], effects: &[Estimate]) -> [usize; 2] {
    let last = effects.last().map_or(0.0, |effect| effect.mean);
    let is_there = |effect: &Estimate| effect.mean * last.signum() >= last.abs() / 2.0;
    let absent = effects.iter().rposition(|effect| !is_there(effect));
    match absent {
        Some(at) => [steps[at], steps[at + 1]],
        None => [0, steps[0]],
    }
}

impl CircuitOverTraining {
    /// A table of edges and checkpoints.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let mut header = vec!["edge".to_owned(), "appeared".to_owned()];
        header.extend(self.checkpoints.iter().map(|at| at.step.to_string()));
        let row = |edge: &EdgeOverTraining| {
            let mut cells = vec![edge.edge.to_string(), format!("{}–{}", edge.after, edge.by)];
            let effects = edge.effects.iter();
            cells.extend(effects.map(|effect| format!("{:.1}", effect.mean)));
            cells
        };
        let end = |name: &str, value: fn(&CircuitAtStep) -> f64| {
            let mut cells = vec![name.to_owned(), String::new()];
            let values = self.checkpoints.iter().map(value);
            cells.extend(values.map(|value| format!("{value:.1}")));
            cells
        };
        let ends = [
            end("m, clean", |at| at.clean),
            end("m, corrupted", |at| at.corrupted),
        ];
        // Of many checkpoints, every second one leaves first.
        let steps = &header[2..];
        let odd: Vec<&String> = steps.iter().rev().skip(1).step_by(2).collect();
        let rows: Vec<Vec<String>> = self.edges.iter().map(row).chain(ends).collect();
        let table = Table::new(&header, rows).first_to_go(&odd);
        Printout::new()
            .prose(format!(
                "Edges of the circuit of the last weights ({}), each patched at every kept checkpoint; the mean \
                 effect on {} over {} pairs, not those on which the circuit was found:",
                pairs_in_words(self.corruption),
                self.metric,
                self.pairs
            ))
            .table(table)
            .prose(
                "appeared: the steps between which the effect came to half of the last one and stayed there. What \
                 happened between two checkpoints is not known (checkpoint.every, checkpoint.keep).",
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_has_appeared_between_the_last_checkpoint_without_it_and_the_next() {
        let effects = |means: &[f64]| -> Vec<Estimate> {
            means
                .iter()
                .map(|&mean| Estimate::of_values(&[mean; 3]))
                .collect()
        };
        let steps = [250, 500, 750, 1000];
        assert_eq!(
            appeared(&steps, &effects(&[0.0, -1.0, -3.0, -4.0])),
            [500, 750]
        );
        // It came, went and came again.
        assert_eq!(
            appeared(&steps, &effects(&[-4.0, 1.0, -2.0, -4.0])),
            [500, 750]
        );
        assert_eq!(appeared(&steps, &effects(&[3.0, 3.0, 3.0, 4.0])), [0, 250]);
    }
}
