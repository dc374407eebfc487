//! One update: the batch in shards, each with its own copy of the graph and its own thread.

use burn::{
    module::Module,
    optim::{GradientsParams, ModuleOptimizer},
    tensor::Device,
};
use headlight_residual::Decoder;
use headlight_run::TrainConfig;

use crate::{
    batch::{Batch, count_scored, summed_loss},
    gradients,
    optimizer::AdamW,
    tasks::Sequence,
};

/// Updates a model batch by batch.
pub struct Updater {
    device: Device,
    optimizer: ModuleOptimizer,
    clip: f64,
    accumulate: usize,
    pools: Vec<rayon::ThreadPool>,
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// Mean over the scored positions before the update, nats.
    pub loss: f64,
    /// The norm of the whole gradient before clipping.
    pub gradient_norm: f64,
}

impl Updater {
    /// `AdamW` as configured, on an autodiff `device`.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn new(train: &TrainConfig, device: Device) -> Result<Self, rayon::ThreadPoolBuildError> {
        let optimizer = ModuleOptimizer::from(AdamW::new(train));
        // Burn's operations use the pool they are called from. With a pool of one thread each, shards do not wait
        // for each other's pieces.
        let pool = |_| rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pools = (0..train.shards).map(pool).collect::<Result<_, _>>()?;
        Ok(Self { device, optimizer, clip: train.clip, accumulate: train.accumulate, pools })
    }

    /// Moves `model` one step down the gradient of the mean loss over the scored positions of `sequences`.
    ///
    /// # Panics
    /// If a shard's thread panics.
    pub fn update(&mut self, model: Decoder, sequences: &[Sequence], learning_rate: f64) -> (Decoder, Update) {
        let scored = count_scored(sequences).max(1) as f64;
        let (losses, shards) = self.shards(&model, sequences, scored);
        let gradients = gradients::sum(&model, shards);
        let gradient_norm = gradients::norm(&model, &gradients);
        let gradients = gradients::clip(&model, gradients, gradient_norm, self.clip);
        let model = self.optimizer.step(learning_rate, model, gradients);
        (model, Update { loss: losses.iter().sum(), gradient_norm })
    }

    /// Each shard's part of the loss and of the gradient; parts are divided by the whole batch's count, so that they
    /// add up to the mean.
    fn shards(&self, model: &Decoder, sequences: &[Sequence], scored: f64) -> (Vec<f64>, Vec<GradientsParams>) {
        let rows_at_once = sequences.len().div_ceil(self.pools.len() * self.accumulate);
        let work = |model: &Decoder, rows: &[Sequence]| {
            let batch = Batch::new(rows, &self.device);
            let loss = summed_loss(model.forward(batch.inputs.clone()), &batch).div_scalar(scored);
            let gradients = GradientsParams::from_grads(loss.backward(), model);
            (f64::from(loss.into_scalar::<f32>()), gradients)
        };
        // One part after the other: only the sum of their gradients is kept.
        let shard = |model: Decoder, rows: &[Sequence]| {
            let parts = rows.chunks(rows_at_once).map(|rows| work(&model, rows));
            let add = |(loss, gradients), (more_loss, more)| {
                (loss + more_loss, gradients::sum(&model, vec![gradients, more]))
            };
            parts.reduce(add).unwrap_or_else(|| (0.0, GradientsParams::new()))
        };
        let rows_each = sequences.len().div_ceil(self.pools.len());
        std::thread::scope(|scope| {
            let shards: Vec<_> = self
                .pools
                .iter()
                .zip(sequences.chunks(rows_each))
                .map(|(pool, rows)| {
                    // Parameters shared between graphs would tie the shards together under one lock.
                    let own = model.clone().fork(&self.device);
                    let shard = &shard;
                    scope.spawn(move || pool.install(|| shard(own, rows)))
                })
                .collect();
            shards.into_iter().map(|shard| shard.join().expect("a shard panicked")).unzip()
        })
    }
}
