//! One update: the batch in shards, each with its own copy of the graph and its own thread.

use burn::{module::Module, optim::GradientsParams, tensor::Device};
use headlight_residual::Decoder;
use headlight_run::TrainConfig;

use crate::{
    batch::{Batch, count_scored, summed_loss},
    cores::Cores,
    dropout::Dropout,
    gradients,
    optimizer::{Memory, Optimizer},
    ranks::{Alone, Ranks, flat, rows_of},
    tasks::Sequence,
};

/// Updates a model batch by batch.
pub struct Updater {
    device: Device,
    optimizer: Optimizer,
    clip: f64,
    accumulate: usize,
    shards: Cores,
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
        let gradient = self.gradient(&model, sequences, None);
        let update = gradient.update;
        (self.apply(model, gradient, learning_rate), update)
    }

    /// The gradient at `model`, with dropout if some is given.
    ///
    /// # Panics
    /// If a shard's thread panics.
    #[must_use]
    pub fn gradient(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        dropout: Option<Dropout>,
    ) -> Gradient {
        self.gradient_over(&Alone, model, sequences, dropout)
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
        dropout: Option<Dropout>,
    ) -> Gradient {
        let scored = count_scored(sequences).max(1) as f64;
        let rows = rows_of(ranks, sequences.len());
        let dropout = dropout.map(|dropout| Dropout {
            first_row: dropout.first_row + rows.start,
            ..dropout
        });
        let (losses, shards) = self.shards(model, &sequences[rows], scored, dropout);
        let (loss, gradients) = flat::sum(
            ranks,
            model,
            losses.iter().sum(),
            gradients::sum(model, shards),
        );
        let gradient_norm = gradients::norm(model, &gradients);
        Gradient {
            update: Update {
                loss,
                gradient_norm,
            },
            gradients,
        }
    }

    /// Moves `model` down its gradient, clipped.
    #[must_use]
    pub fn apply(&mut self, model: Decoder, gradient: Gradient, learning_rate: f64) -> Decoder {
        let gradients = gradients::clip(
            &model,
            gradient.gradients,
            gradient.update.gradient_norm,
            self.clip,
        );
        self.optimizer.step(learning_rate, model, gradients)
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
    pub fn remember(&mut self, model: &Decoder, memory: Memory) -> Result<(), String> {
        self.optimizer
            .remember(model, memory, &self.device.clone().inner())
    }

    /// Each shard's part of the loss and of the gradient; parts are divided by the whole batch's
    /// count, so that they add up to the mean.
    fn shards(
        &self,
        model: &Decoder,
        sequences: &[Sequence],
        scored: f64,
        dropout: Option<Dropout>,
    ) -> (Vec<f64>, Vec<GradientsParams>) {
        let rows_at_once = sequences
            .len()
            .div_ceil(self.shards.count() * self.accumulate);
        let work = |model: &Decoder, first_row: usize, rows: &[Sequence]| {
            let batch = Batch::new(rows, &self.device);
            let logits = match dropout {
                Some(dropout) => {
                    let own = Dropout {
                        first_row: dropout.first_row + first_row,
                        ..dropout
                    };
                    own.forward(model, batch.inputs.clone())
                }
                None => model.forward(batch.inputs.clone()),
            };
            let loss = summed_loss(logits, &batch).div_scalar(scored);
            let gradients = GradientsParams::from_grads(loss.backward(), model);
            (f64::from(loss.into_scalar::<f32>()), gradients)
        };
        // One part after the other: only the sum of their gradients is kept.
        let shard = |(first_row, rows): (usize, &[Sequence])| {
            // Parameters shared between graphs would tie the shards together under one lock.
            let model = model.clone().fork(&self.device);
            let first_rows = (first_row..).step_by(rows_at_once);
            let parts = first_rows
                .zip(rows.chunks(rows_at_once))
                .map(|(first, rows)| work(&model, first, rows));
            let add = |(loss, gradients), (more_loss, more)| {
                (
                    loss + more_loss,
                    gradients::sum(&model, vec![gradients, more]),
                )
            };
            parts
                .reduce(add)
                .unwrap_or_else(|| (0.0, GradientsParams::new()))
        };
        let rows_each = sequences.len().div_ceil(self.shards.count());
        let shards = (0..)
            .step_by(rows_each)
            .zip(sequences.chunks(rows_each))
            .collect();
        self.shards.map(shards, shard).into_iter().unzip()
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
    use crate::{
        model,
        tasks::{self, Use},
    };

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
            format!("train.attention_dropout={weights:?}"),
        ];
        let config = Config::parse(text, "test", &parts).unwrap();
        let device = Device::flex().autodiff();
        let task = tasks::build(&config.task, config.model.n_ctx, 0).unwrap();
        let model = model::build(&config, task.vocabulary().len(), &device).unwrap();
        let sequences = tasks::batch(&*task, 0, Use::Training, 1, 8);
        let updater = Updater::new(&config.train, device).unwrap();
        let dropout = Dropout {
            probability: added,
            seed: 0,
            step: 1,
            first_row: 0,
        };
        let dropout = (added + weights > 0.0).then_some(dropout);
        let gradients = updater.gradient(&model, &sequences, dropout).gradients;
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
