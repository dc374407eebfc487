//! Every head of a model ablated alone, which takes long with hundreds of heads: how long is said
//! first, and what is done is kept.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use headlight_heads::{Ablation, HeadName};
use headlight_lens::{Behaviour, LayerAblations, Performance, at_each_layer};
use headlight_residual::{ActivationsError, Decoder};
use headlight_run::{Error, ErrorKind};
use headlight_tasks::Cache;
use headlight_watch::{Cores, interrupt, no_room};

use super::{Subject, kept_ablations::KeptAblations, progress::Progress};

/// What is done is written when it took so long.
const WRITTEN_EVERY: Duration = Duration::from_secs(5);
/// Tokens in a batch, at least: a shorter one waits for the weights.
const TOKENS_AT_ONCE: usize = 1024;

impl Subject {
    /// What is left without each of `heads` alone.
    ///
    /// # Errors
    /// If the activations of a layer do not fit into memory, or a signal came: then the heads that are
    /// done are kept for the next time.
    pub(super) fn each_alone(
        &self,
        model: &Decoder,
        behaviour: &Behaviour,
        heads: &[HeadName],
        by: Ablation,
    ) -> Result<Vec<Performance>, Error> {
        let cache = Cache::of_environment();
        let test = EachAlone {
            model,
            behaviour,
            by,
            written_every: WRITTEN_EVERY,
            is_stopped: &interrupt::requested,
        };
        let left = test.of(heads, &cache)?;
        left.map_err(|done| {
            let message = format!(
                "by a signal after {done} of {} heads; the same command goes on from there",
                heads.len()
            );
            Error::of(ErrorKind::Interrupted, self.path().display(), message)
        })
    }
}

struct EachAlone<'a> {
    model: &'a Decoder,
    behaviour: &'a Behaviour,
    by: Ablation,
    written_every: Duration,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// How many heads were done when it was stopped.
type Stopped = usize;

impl EachAlone<'_> {
    fn of(
        &self,
        heads: &[HeadName],
        cache: &Cache,
    ) -> Result<Result<Vec<Performance>, Stopped>, Error> {
        let mut kept = KeptAblations::open(cache, self.model, self.behaviour, self.by);
        let is_new = |head: &&HeadName| !kept.found.contains_key(*head);
        let new: Vec<HeadName> = heads.iter().filter(is_new).copied().collect();
        let layers: BTreeSet<usize> = new.iter().map(|head| head.layer).collect();
        let layers: Vec<usize> = layers.into_iter().collect();
        let mut progress = self.progress(&new);
        let mut written = Instant::now();
        let mut failed = None;
        let passed = at_each_layer(self.model, self.behaviour, self.by, &layers, &mut |layer| {
            let of_layer = new.iter().filter(|head| head.layer == layer.layer());
            let of_layer: Vec<usize> = of_layer.map(|head| head.head).collect();
            let measured = Cores::all().map_batches(&of_layer, self.heads_at_once(), |heads| {
                self.measured(layer, heads)
            });
            for measured in measured {
                for (head, left) in measured? {
                    kept.found.insert(head, left);
                    progress.add(1, self.work(head.layer));
                }
            }
            if written.elapsed() >= self.written_every {
                failed = failed.take().or(kept.write().err());
                written = Instant::now();
            }
            Ok(())
        });
        drop(progress);
        passed.map_err(no_room)?;
        if (self.is_stopped)() {
            kept.write()?;
        }
        if let Some(error) = failed {
            tracing::warn!("{error}; heads that are done are not kept");
        }
        let done = |head| kept.found.get(head).copied();
        let left: Option<Vec<Performance>> = heads.iter().map(done).collect();
        Ok(left.ok_or_else(|| heads.iter().filter(|head| done(*head).is_some()).count()))
    }

    /// How many heads of a layer pass as one batch on a core: few with many tokens each, or many with few.
    fn heads_at_once(&self) -> usize {
        let [batch, length] = self.behaviour.inputs().dims();
        TOKENS_AT_ONCE.div_ceil((batch * length).max(1))
    }

    /// The heads of a batch; none once it was stopped.
    fn measured(
        &self,
        layer: &LayerAblations,
        heads: &[usize],
    ) -> Result<Vec<(HeadName, Performance)>, ActivationsError> {
        if (self.is_stopped)() {
            return Ok(Vec::new());
        }
        let left = layer.without_each(heads)?;
        let named = heads.iter().map(|&head| HeadName {
            layer: layer.layer(),
            head,
        });
        Ok(named.zip(left).collect())
    }

    fn progress(&self, heads: &[HeadName]) -> Progress {
        let [batch, length] = self.behaviour.inputs().dims();
        let all = heads.iter().map(|head| self.work(head.layer)).sum();
        let what = format!(
            "{} heads alone on {batch} sequences of {length} tokens",
            heads.len()
        );
        Progress::new(what, "heads", heads.len(), all)
    }

    /// A head's share of all work: the layers that are computed without it, and the logits.
    fn work(&self, layer: usize) -> f64 {
        (self.model.blocks.len() - layer + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use burn::tensor::Device;
    use headlight_lens::{ablate, all_heads};
    use headlight_residual::{DecoderConfig, token_tensor};

    use super::*;

    #[test]
    fn what_was_stopped_goes_on_from_the_heads_that_are_done() {
        let device = Device::flex();
        let model = DecoderConfig::default().try_init(0, &device).unwrap();
        let rows = [[1, 2, 3, 1, 2], [4, 5, 4, 5, 6]];
        let targets = vec![vec![2, 3, 1, 2, 3], vec![5, 4, 5, 6, 4]];
        let scored = vec![vec![false, true, true, false, true]; 2];
        let behaviour = Behaviour::new(token_tensor(&rows, &device), targets, scored);
        let heads = all_heads(&model);
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let asked = AtomicUsize::new(0);
        let after = |most: usize| {
            let asked = &asked;
            asked.store(0, Ordering::Relaxed);
            move || asked.fetch_add(1, Ordering::Relaxed) >= most
        };
        for by in [Ablation::Zero, Ablation::Mean, Ablation::Resample] {
            let run = |is_stopped: &(dyn Fn() -> bool + Sync)| {
                let test = EachAlone {
                    model: &model,
                    behaviour: &behaviour,
                    by,
                    written_every: Duration::ZERO,
                    is_stopped,
                };
                test.of(&heads, &cache).unwrap()
            };
            let first = run(&after(1)).unwrap_err();
            assert!(0 < first && first < heads.len(), "{first}");
            let all = run(&after(usize::MAX)).unwrap();
            for (head, left) in heads.iter().zip(&all) {
                let expected = ablate(&model, &behaviour, &[*head], by).unwrap();
                assert!((left.loss - expected.loss).abs() < 1e-6, "{head} {by}");
                assert_eq!(left.accuracy, expected.accuracy, "{head} {by}");
                let elsewhere = |left: &Performance| left.loss_elsewhere.unwrap();
                assert!(
                    (elsewhere(left) - elsewhere(&expected)).abs() < 1e-6,
                    "{head} {by}"
                );
            }
            // What is kept is believed: nothing is measured twice.
            let mut kept = KeptAblations::open(&cache, &model, &behaviour, by);
            kept.found.get_mut(&heads[0]).unwrap().loss = 77.0;
            kept.write().unwrap();
            assert_eq!(run(&after(usize::MAX)).unwrap()[0].loss, 77.0);
        }
        // Other weights are another model.
        let other = DecoderConfig::default().try_init(1, &device).unwrap();
        let by = Ablation::Zero;
        assert!(
            KeptAblations::open(&cache, &other, &behaviour, by)
                .found
                .is_empty()
        );
    }
}
