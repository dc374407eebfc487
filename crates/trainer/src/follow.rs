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
        let data = self.data(self.task.files());
        let (mut step, mut model) = match told(&*ranks, &data).map_err(Stopped::Refused)? {
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
                updater.gradient_over(&*ranks, &model, &self.batch_of(step), self.pass_of(step));
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

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::VecDeque, fs, rc::Rc};

    use headlight_run::{Config, Data, DataFile};

    use super::*;
    use crate::restore;

    /// One of two ranks: what the first shares waits for the second.
    struct OneOfTwo {
        rank: usize,
        shared: Rc<RefCell<VecDeque<Vec<u8>>>>,
    }

    impl Ranks for OneOfTwo {
        fn rank(&self) -> usize {
            self.rank
        }

        fn size(&self) -> usize {
            2
        }

        fn sum(&self, _: &mut [f32]) {}

        fn share(&self, bytes: &mut Vec<u8>) {
            let mut shared = self.shared.borrow_mut();
            if self.rank == 0 {
                shared.push_back(bytes.clone());
            } else {
                *bytes = shared.pop_front().unwrap();
            }
        }

        fn leave(self: Box<Self>) {}
    }

    #[test]
    fn a_rank_with_another_text_does_not_train() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sea.txt");
        fs::write(&path, "the sea and the lamp ".repeat(50)).unwrap();
        let text = format!(
            "
            task = {{ name = 'text', path = '{}' }}
            model = {{ n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 8 }}
            train = {{ steps = 1, batch_size = 1, learning_rate = 1e-3 }}
            ",
            path.display()
        );
        let config = Config::parse(&text, "test", &[]).unwrap();
        let setup = Setup::prepare(config, "flex").unwrap();
        let shared = Rc::default();
        let [first, second] = [0, 1].map(|rank| OneOfTwo {
            rank,
            shared: Rc::clone(&shared),
        });
        let files = vec![DataFile {
            sha256: "0".repeat(64),
            ..setup.task.files().swap_remove(0)
        }];
        let other = Data {
            files,
            ..Data::default()
        };
        restore::share(&first, other, None).unwrap();
        let refused = setup.follow(Box::new(second)).unwrap_err();
        assert!(matches!(refused, Stopped::Refused(_)), "{refused:?}");
        let line = refused.to_string();
        assert!(
            line.starts_with("rank 1: ") && line.contains("sea.txt: has 1050 bytes"),
            "{line}"
        );
    }
}
