//! `inspect RUN circuit --over-training`: when did each edge appear?

use headlight_heads::{Corruption, Edge, Metric, PatchDirection};
use headlight_lens::{EdgeError, EdgePatching, Estimate, PromptPair, find_edges};
use headlight_report::{Printout, Table};
use headlight_residual::Decoder;
use headlight_run::Error;
use headlight_watch::model;
use serde::Serialize;

use super::{
    ModelParts, Subject,
    circuit::{CircuitQuestion, ENOUGH},
    circuit_pairs::pairs_in_words,
};

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

impl Subject {
    /// The edges of the circuit of the last weights, patched at every kept checkpoint.
    ///
    /// # Errors
    /// If the subject is no run, has a large graph, or its last weights have no circuit.
    pub fn circuit_over_training(
        &self,
        asked: CircuitQuestion,
    ) -> Result<CircuitOverTraining, Error> {
        let run = self.trained()?;
        let ModelParts { model, .. } = self.model()?;
        let wrong = |error| self.edge_error(error);
        self.check_small(&model)?;
        let (made, corruption) = self.circuit_pairs(&model, 0, asked.corruption)?;
        let (finding, reporting) = made.pairs.split_at(made.pairs.len() / 2);
        let found_on = EdgePatching::new(&model, finding, asked.metric).map_err(wrong)?;
        let effects = found_on
            .exact_of_all(PatchDirection::Noise)
            .map_err(wrong)?;
        let circuit = find_edges(&found_on, &effects, ENOUGH)
            .map_err(wrong)?
            .ok_or_else(|| {
                let message = format!("has no circuit that carries {ENOUGH} of the behaviour");
                Error::new(self.path().display(), message)
            })?;
        let mut checkpoints = Vec::new();
        let mut of_edges = vec![Vec::new(); circuit.len()];
        let mut kept = run.directory.checkpoints();
        kept.reverse();
        for weights in kept {
            let step = run.directory.state(weights)?.step;
            let is_known = checkpoints
                .iter()
                .any(|known: &CircuitAtStep| known.step == step);
            // The last weights may be those of the newest checkpoint.
            if is_known {
                continue;
            }
            let model = model::load(&run.directory, &run.config, weights, self.device())?;
            let (at_step, effects) =
                effects_at(&model, reporting, asked.metric, &circuit, step).map_err(wrong)?;
            checkpoints.push(at_step);
            for (of_edge, effect) in of_edges.iter_mut().zip(effects) {
                of_edge.push(effect);
            }
        }
        let steps: Vec<usize> = checkpoints.iter().map(|at| at.step).collect();
        let graph = found_on.graph();
        let edge = |(edge, effects): (&usize, Vec<Estimate>)| {
            let [after, by] = appeared(&steps, &effects);
            EdgeOverTraining {
                edge: graph.edges()[*edge],
                effects,
                after,
                by,
            }
        };
        Ok(CircuitOverTraining {
            corruption,
            metric: asked.metric,
            pairs: reporting.len(),
            edges: circuit.iter().zip(of_edges).map(edge).collect(),
            checkpoints,
        })
    }
}

/// The behaviour and the effects of some edges in one model.
fn effects_at(
    model: &Decoder,
    pairs: &[PromptPair],
    metric: Metric,
    edges: &[usize],
    step: usize,
) -> Result<(CircuitAtStep, Vec<Estimate>), EdgeError> {
    let patching = EdgePatching::new(model, pairs, metric)?;
    let effects = patching.exact(edges, PatchDirection::Noise)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let at_step = CircuitAtStep {
        step,
        clean: mean(patching.at_clean()),
        corrupted: mean(patching.at_corrupted()),
    };
    Ok((
        at_step,
        (0..edges.len())
            .map(|place| effects.estimate(place))
            .collect(),
    ))
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
