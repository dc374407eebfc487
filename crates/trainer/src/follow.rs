//! What every rank but the first does: the same updates, and nothing is measured or written.

use headlight_run::{Error, ErrorKind};

use crate::{
    Setup, Stopped, learning_rate,
    ranks::Ranks,
    restore::{Told, restored, told},
    step::Updater,
};

impl Setup {
    /// Takes part in every update until the first rank, which [leads](Self::lead), makes no more.
    ///
    /// # Errors
    /// If this process is not like the first.
    pub fn follow(self, ranks: Box<dyn Ranks>) -> Result<(), Stopped> {
        let train = &self.config.train;
        let mut updater = Updater::new(train, self.device.clone().autodiff())
            .map_err(|error| Error::because(ErrorKind::Internal, "train.shards", error))?;
        let rank = ranks.rank();
        let unusable = |source| Stopped::Rank { rank, source };
        let (mut step, mut model) = match told(&*ranks)? {
            Told::Nothing => {
                ranks.leave();
                return Ok(());
            }
            Told::Begin => (0, self.model.clone()),
            Told::GoOn(checkpoint) => (
                checkpoint.state.step,
                restored(&self, &mut updater, &checkpoint).map_err(unusable)?,
            ),
        };
        loop {
            step += 1;
            let gradient =
                updater.gradient_over(&*ranks, &model, &self.batch_of(step), self.dropout_of(step));
            // No number: the first rank makes no more updates, or says what went wrong with this
            // one.
            if !gradient.is_finite() {
                ranks.leave();
                return Ok(());
            }
            let update = gradient.update;
            model = updater.apply(model, gradient, learning_rate(train, step));
            tracing::debug!(
                rank,
                step,
                loss = update.loss,
                gradient_norm = update.gradient_norm
            );
        }
    }
}
