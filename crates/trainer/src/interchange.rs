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

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use headlight_run::Config;
    use headlight_tasks::{self as tasks, Use};
    use headlight_watch::{count_scored, model};

    use super::*;
    use crate::{Pass, Updater};

    const INDUCTION: &str = r#"
        task = { name = "program", program = "induction", length = 6 }
        model = { n_layers = 2, n_heads = 2, d_model = 16, n_ctx = 7, init_std = 0.3 }
        train = { steps = 10, batch_size = 16, learning_rate = 1e-3, optimizer = "sgd", momentum = 0.0, clip = 1e9 }
        interchange = { alignment = { previous = "L0H1", next = "L1H0" } }
    "#;

    struct Case {
        config: Config,
        interchange: Interchange,
        model: Decoder,
        rows: Vec<Sequence>,
        device: Device,
    }

    impl Case {
        fn of(assignments: &[&str]) -> Self {
            let assignments: Vec<String> = assignments.iter().map(ToString::to_string).collect();
            let config = Config::parse(INDUCTION, "test", &assignments).unwrap();
            let device = Device::flex().autodiff();
            let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
            Self {
                interchange: Interchange::of(&config).unwrap().unwrap(),
                model: model::build(&config, task.vocabulary().len(), &device).unwrap(),
                rows: tasks::batch(&*task, 0, Use::Training, 1, 16),
                config,
                device,
            }
        }

        fn swaps(&self, step: usize) -> StepSwaps<'_> {
            StepSwaps {
                interchange: &self.interchange,
                step,
            }
        }

        /// All that is trained: the task's loss and those of the swaps.
        fn loss(&self, model: &Decoder, step: usize) -> f64 {
            let batch = Batch::new(&self.rows, &self.device);
            let (stream, of_swaps) = self.swaps(step).run(model, &self.rows, &batch);
            let own = model.summed_loss(stream, batch.targets, batch.scored);
            let sum = of_swaps.map_or(own.clone(), |of_swaps| own + of_swaps);
            f64::from(sum.into_scalar::<f32>()) / count_scored(&self.rows) as f64
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_task_and_the_swaps_together() {
        let case = Case::of(&[]);
        for step in [1, 2] {
            let moved = |rate: f64| {
                let mut updater = Updater::new(&case.config.train, case.device.clone()).unwrap();
                let pass = Pass::Swapping(case.swaps(step));
                let gradient = updater.gradient(&case.model, &case.rows, pass);
                let norm = gradient.update.gradient_norm;
                let model = updater.apply(case.model.clone(), gradient, rate);
                (case.loss(&model, step), norm)
            };
            // Down and up the gradient g by h·g, the loss changes by 2h·‖g‖².
            let h = 2e-3;
            let ((down, norm), (up, _)) = (moved(h), moved(-h));
            let slope = (up - down) / (2.0 * h);
            let relative = slope / (norm * norm) - 1.0;
            assert!(
                relative.abs() < 0.01,
                "step {step}: {slope} for {}",
                norm * norm
            );
        }
    }

    #[test]
    fn pairs_stay_together_in_shards_and_parts() {
        let norm_of = |assignments: &[&str]| {
            let case = Case::of(assignments);
            let updater = Updater::new(&case.config.train, case.device.clone()).unwrap();
            let gradient = updater.gradient(&case.model, &case.rows, Pass::Swapping(case.swaps(1)));
            gradient.update
        };
        let whole = norm_of(&["train.shards=1"]);
        let parts = norm_of(&["train.shards=2", "train.accumulate=4"]);
        let relative = |a: f64, b: f64| (a / b - 1.0).abs();
        assert!(
            relative(parts.gradient_norm, whole.gradient_norm) < 1e-5,
            "{parts:?} {whole:?}"
        );
        assert!(
            relative(parts.loss, whole.loss) < 1e-5,
            "{parts:?} {whole:?}"
        );
        // Without the swaps the gradient is another one.
        let none = norm_of(&["interchange.weight=0", "interchange.strictness=0"]);
        assert!(
            relative(none.gradient_norm, whole.gradient_norm) > 0.01,
            "{none:?} {whole:?}"
        );
        assert!(
            relative(none.loss, whole.loss) < 1e-5,
            "the loss is the task's alone"
        );
    }

    #[test]
    fn each_part_has_its_turn() {
        assert_eq!(
            [0, 1, 2, 3].map(|step| in_turn(&['a', 'b', 'c'], step)),
            [Some(&'a'), Some(&'b'), Some(&'c'), Some(&'a')]
        );
        assert_eq!(in_turn::<char>(&[], 1), None);
    }
}
