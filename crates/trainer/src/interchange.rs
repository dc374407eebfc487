//! The losses of interchange training (Geiger et al. 2022, section 3; Gupta et al. 2024, section
//! 3.2).

use burn::tensor::Tensor;
use headlight_residual::{Decoder, token_tensor};
use headlight_tasks::Sequence;
use headlight_watch::{
    Batch, Interchange,
    interchange::{run, run_swapped},
};

/// One step's swaps: one part of the circuit and one outside, each in its turn.
#[derive(Debug, Clone, Copy)]
pub struct StepSwaps<'a> {
    /// The alignment.
    pub interchange: &'a Interchange,
    /// The step.
    pub step: usize,
}

impl StepSwaps<'_> {
    /// The final stream of some rows, which are pairs, and the losses of the swaps, weighted and
    /// summed over the scored targets `[1]`; no loss where both weights are 0.
    ///
    /// With the swaps `i` of a part of the circuit and `s` of a part outside, this is
    /// `weight · Σ −ln P_i(the program's answer with i) + strictness · Σ −ln P_s(own answer)`.
    /// Gradients flow through both rows of a pair.
    ///
    /// # Shapes
    /// - output: `[rows, positions, d_model]`
    ///
    /// # Panics
    /// If the rows are not of the program, or their number is odd.
    #[must_use]
    pub fn run(
        &self,
        model: &Decoder,
        rows: &[Sequence],
        batch: &Batch,
    ) -> (Tensor<3>, Option<Tensor<1>>) {
        let Self { interchange, step } = *self;
        let aligned =
            in_turn(interchange.aligned(), step).filter(|_| interchange.config.weight > 0.0);
        let outside =
            in_turn(interchange.outside(), step).filter(|_| interchange.config.strictness > 0.0);
        let parts: Vec<_> = aligned
            .map(|aligned| aligned.part)
            .into_iter()
            .chain(outside.copied())
            .collect();
        let (stream, seen) = run(model, batch.inputs.clone(), &parts);
        let loss = |part, targets, weight: f64| {
            let swapped = run_swapped(model, batch.inputs.clone(), &seen, part);
            let loss = model.summed_loss(swapped, targets, batch.scored.clone());
            loss.mul_scalar(weight)
        };
        let mut losses = Vec::new();
        if let Some(aligned) = aligned {
            let targets = interchange
                .swapped_targets(rows, &aligned.variables)
                .expect("the task's sequences are those of its program");
            let targets = token_tensor(&targets, &batch.inputs.device());
            losses.push(loss(aligned.part, targets, interchange.config.weight));
        }
        if let Some(part) = outside {
            let targets = batch.targets.clone();
            losses.push(loss(*part, targets, interchange.config.strictness));
        }
        (stream, losses.into_iter().reduce(|sum, loss| sum + loss))
    }
}

/// The one whose turn it is.
fn in_turn<T>(all: &[T], step: usize) -> Option<&T> {
    all.get(step.checked_rem(all.len())?)
}
