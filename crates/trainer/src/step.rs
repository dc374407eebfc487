//! One update: the batch in shards, each with its own copy of the graph and its own thread.

use burn::{
    module::Module,
    optim::GradientsParams,
    tensor::{Device, Tensor},
};
use headlight_residual::{Decoder, NoProbe};
use headlight_run::TrainConfig;
use headlight_tasks::Sequence;
use headlight_watch::{Batch, Cores, count_scored};

use crate::{
    dropout::StepDropout,
    gradients,
    interchange::StepSwaps,
    optimizer::{Memory, MemoryError, Optimizer},
    ranks::{Alone, Ranks, flat, rows_of},
};

/// Updates a model batch by batch.
pub struct Updater {
    device: Device,
    optimizer: Optimizer,
    clip: f64,
    accumulate: usize,
    shards: Cores,
}

/// How the batch of a step passes through the model.
#[derive(Debug, Clone, Copy, Default)]
pub enum Pass<'a> {
    /// Once, as it is.
    #[default]
    Plain,
    /// Some of what flows is dropped.
    Dropping(StepDropout),
    /// Again with what parts of the model write swapped between its rows, and that counts too.
    Swapping(StepSwaps<'a>),
}

impl Pass<'_> {
    /// The same of a part of the batch that begins `rows` later.
    fn later_by(self, rows: usize) -> Self {
        match self {
            Self::Dropping(dropout) => Self::Dropping(StepDropout {
                first_row: dropout.first_row + rows,
                ..dropout
            }),
            Self::Plain | Self::Swapping(_) => self,
        }
    }
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// Mean over the scored positions before the update, nats.
    pub loss: f64,
    /// The norm of the whole gradient before clipping.
    pub gradient_norm: f64,
}

/// The gradient of the mean loss over the scored positions of a batch.
pub struct Gradient {
    /// The loss and the gradient's norm.
    pub update: Update,
    /// By parameter, not clipped.
    pub gradients: GradientsParams,
}

impl Update {
    /// Reads the parts of the loss and each parameter's squared norm back from the device, in one
    /// transfer: a device that computes ahead is waited for once a step.
    fn read(losses: Vec<Tensor<1>>, squared_norms: Vec<Tensor<1>>) -> Self {
        let n_losses = losses.len();
        let numbers = Tensor::cat([losses, squared_norms].concat(), 0).into_data();
        let numbers: Vec<f64> = numbers.iter::<f64>().collect();
        let (losses, squared_norms) = numbers.split_at(n_losses);
        Self {
            loss: losses.iter().sum(),
            gradient_norm: squared_norms.iter().sum::<f64>().sqrt(),
        }
    }
}

impl Gradient {
    /// Whether loss and gradient are numbers.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.update.loss.is_finite() && self.update.gradient_norm.is_finite()
    }
}

impl Updater {
    /// `AdamW` as configured, on an autodiff `device`.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn new(train: &TrainConfig, device: Device) -> Result<Self, rayon::ThreadPoolBuildError> {
        let optimizer = Optimizer::new(train);
        let shards = Cores::new(train.shards)?;
        Ok(Self {
            device,
            optimizer,
            clip: train.clip,
            accumulate: train.accumulate,
            shards,
        })
    }

    /// Moves `model` one step down the gradient of the mean loss over the scored positions of
    /// `sequences`.
    ///
    /// # Panics
    /// If a shard's thread panics.
    pub fn update(
        &mut self,
        model: Decoder,
        sequences: &[Sequence],
        learning_rate: f64,
    ) -> (Decoder, Update) {
        let gradient = self.gradient(&model, sequences, Pass::Plain);
        let update = gradient.update;
        (self.apply(model, gradient, learning_rate), update)
    }

    /// The gradient at `model`.
    ///
    /// # Panics
    /// If a shard's thread panics.
    #[must_use]
    pub fn gradient(&self, model: &Decoder, sequences: &[Sequence], pass: Pass) -> Gradient {
        self.gradient_over(&Alone, model, sequences, pass)
    }

    /// The same gradient, to which each rank adds that of its rows of `sequences`.
    ///
    /// # Panics
    /// If a shard's thread panics.
    #[must_use]
    pub fn gradient_over(
        &self,
        ranks: &dyn Ranks,
        model: &Decoder,
        sequences: &[Sequence],
        pass: Pass,
    ) -> Gradient {
        let scored = count_scored(sequences).max(1) as f64;
        let rows = rows_of(ranks, sequences.len());
        let pass = pass.later_by(rows.start);
        let (losses, parts) = self.shards(model, &sequences[rows], scored, pass);
        // On a thread of the pool: any other thread would fall asleep at each operation.
        let (gradients, squared_norms) = rayon::scope(|_| gradients::sum(model, parts));
        let (losses, gradients, squared_norms) =
            flat::sum(ranks, model, losses, gradients, squared_norms);
        Gradient {
            update: Update::read(losses, squared_norms),
            gradients,
        }
    }

    /// Moves `model` down its gradient, clipped.
    #[must_use]
    pub fn apply(&mut self, model: Decoder, gradient: Gradient, learning_rate: f64) -> Decoder {
        let scale = gradients::clip(gradient.update.gradient_norm, self.clip);
        let optimizer = &mut self.optimizer;
        rayon::scope(|_| optimizer.step(learning_rate, scale, model, gradient.gradients))
    }

    /// The cores that the shards are worked on.
    #[must_use]
    pub fn cores(&self) -> &Cores {
        &self.shards
    }

    /// Everything the optimizer remembers.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.optimizer.memory()
    }

    /// Gives the optimizer what it remembered of `model`.
    ///
    /// # Errors
    /// If that is not everything and nothing else.
    pub fn remember(&mut self, model: &Decoder, memory: Memory) -> Result<(), MemoryError> {
        self.optimizer
            .remember(model, memory, &self.device.clone().inner())
    }

    /// The parts of the loss `[1]`, and each shard's part of the gradient. Parts are divided by the
    /// whole batch's count, so that they add up to the mean.
    fn shards(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        scored: f64,
        pass: Pass,
    ) -> (Vec<Tensor<1>>, Vec<GradientsParams>) {
        let parts = self.shards.count() * self.accumulate;
        let rows_at_once = sequences.len().div_ceil(parts);
        let rows_in_shard = sequences.len().div_ceil(self.shards.count());
        let work = |(first_row, rows): (usize, &[Sequence])| {
            // Parameters shared between graphs would tie the shards together under one lock.
            let model = model.clone().fork(&self.device);
            let mut losses = Vec::new();
            let mut gradients = None;
            // One part after the other: only the sum of their gradients is kept.
            for (part, rows) in rows.chunks(rows_at_once).enumerate() {
                let first_row = first_row + part * rows_at_once;
                let (loss, more) = self.part(&model, rows, scored, pass.later_by(first_row));
                losses.push(loss);
                gradients = Some(match gradients {
                    Some(before) => gradients::sum(&model, vec![before, more]).0,
                    None => more,
                });
            }
            (losses, gradients.unwrap_or_default())
        };
        let shards = (0..)
            .step_by(rows_in_shard)
            .zip(sequences.chunks(rows_in_shard))
            .collect();
        let (losses, gradients): (Vec<_>, Vec<_>) =
            self.shards.map(shards, work).into_iter().unzip();
        (losses.concat(), gradients)
    }

    /// Loss `[1]` and gradient of some rows of the batch. The loss is the task's alone; the gradient
    /// is that of all that is trained.
    fn part(
        &self,
        model: &Decoder,
        rows: &[Sequence],
        scored: f64,
        pass: Pass,
    ) -> (Tensor<1>, GradientsParams) {
        let batch = Batch::new(rows, &self.device);
        let (stream, of_swaps) = match pass {
            Pass::Plain => (model.final_stream(batch.inputs, &mut NoProbe), None),
            Pass::Dropping(dropout) => (dropout.final_stream(model, batch.inputs), None),
            Pass::Swapping(swaps) => swaps.run(model, rows, &batch),
        };
        let loss = model
            .summed_loss(stream, batch.targets, batch.scored)
            .div_scalar(scored);
        let trained = match of_swaps {
            Some(of_swaps) => loss.clone() + of_swaps.div_scalar(scored),
            None => loss.clone(),
        };
        let gradients = GradientsParams::from_grads(trained.backward(), model);
        (loss.inner(), gradients)
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        module::{ModuleVisitor, Param},
        tensor::Tensor,
    };
    use headlight_run::Config;

    use super::*;
    use headlight_tasks as tasks;
    use headlight_tasks::Use;
    use headlight_watch::model;

    /// All numbers of a gradient, in the order of the model's parameters.
    struct Numbers<'a> {
        gradients: &'a GradientsParams,
        numbers: Vec<f64>,
    }

    impl ModuleVisitor for Numbers<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self
                .gradients
                .get::<D>(param.id)
                .expect("a gradient for every parameter");
            self.numbers.extend(gradient.into_data().iter::<f64>());
        }
    }

    /// The gradient of the mean loss of 8 sequences, worked on in `shards` times `accumulate`
    /// parts, while a share of what is added to the stream falls, and one of attention weights.
    fn gradient(shards: usize, accumulate: usize, [added, weights]: [f64; 2]) -> Vec<f64> {
        let text = r#"
            task = { name = "repeat" }
            model = { n_layers = 2, n_heads = 4, d_model = 64, n_ctx = 64, feed_forward = "gelu", init_std = 0.1 }
            train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
        "#;
        let parts = [
            format!("train.shards={shards}"),
            format!("train.accumulate={accumulate}"),
        ];
        let config = Config::parse(text, "test", &parts).unwrap();
        let device = Device::flex().autodiff();
        let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
        let model = model::build(&config, task.vocabulary().len(), &device).unwrap();
        let sequences = tasks::batch(&*task, 0, Use::Training, 1, 8);
        let updater = Updater::new(&config.train, device).unwrap();
        let dropout = StepDropout {
            stream: added,
            weights,
            seed: 0,
            step: 1,
            first_row: 0,
        };
        let pass = if added + weights > 0.0 {
            Pass::Dropping(dropout)
        } else {
            Pass::Plain
        };
        let gradients = updater.gradient(&model, &sequences, pass).gradients;
        let mut numbers = Numbers {
            gradients: &gradients,
            numbers: Vec::new(),
        };
        model.visit(&mut numbers);
        numbers.numbers
    }

    #[test]
    fn a_batch_in_parts_has_the_gradient_of_the_whole() {
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let distance = |a: &[f64], b: &[f64]| {
            let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            norm(&difference) / norm(a)
        };
        let dropouts = [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [0.5, 0.5]];
        let wholes = dropouts.map(|dropout| gradient(1, 1, dropout));
        for (dropout, whole) in dropouts.into_iter().zip(&wholes) {
            for (shards, accumulate) in [(2, 1), (4, 1), (1, 2), (1, 8), (2, 4)] {
                let relative = distance(whole, &gradient(shards, accumulate, dropout));
                assert!(
                    relative < 1e-6,
                    "{dropout:?}, {shards} shards, {accumulate} parts each: {relative:e}"
                );
            }
        }
        for (i, one) in wholes.iter().enumerate() {
            assert!(
                wholes[..i].iter().all(|other| distance(one, other) > 0.1),
                "dropout {:?} changes nothing",
                dropouts[i]
            );
        }
    }
}
