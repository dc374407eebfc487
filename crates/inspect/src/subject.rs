//! What `inspect` looks at.

use std::path::Path;

use burn::tensor::Device;
use headlight_residual::Decoder;
use headlight_run::{
    Config, Error, HeadRow, MetricsRow, RunDirectory, Summary, Weights,
    untrusted::{MOST_TOKENIZER_BYTES, read_at_most},
};
use headlight_tasks::{self as tasks, Vocabulary};
use headlight_watch::{Watched, model};

/// A trained model at one point of its training, with its vocabulary, its task and its logs.
pub struct Subject {
    pub(crate) run: RunDirectory,
    pub(crate) config: Config,
    pub(crate) device: Device,
    /// The point of training that is looked at.
    at: Weights,
    /// Whether somebody named it. Logs speak of the end, so the model is measured anew.
    pub(crate) chosen: bool,
}

impl Subject {
    /// Opens the run at `path`: with the weights of the end, or with those of the newest checkpoint
    /// if it was stopped.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, Error> {
        let run = RunDirectory::open(path)?;
        Ok(Self {
            config: run.config()?,
            device: headlight_watch::device::open(device)?,
            at: run.newest_weights().unwrap_or(Weights::Last),
            chosen: false,
            run,
        })
    }

    /// Opens the run at `path` with the weights of one point of its training.
    ///
    /// # Errors
    /// If it is not a run, or has no whole weights of that point.
    pub fn open_at(path: &Path, device: &str, at: Weights) -> Result<Self, Error> {
        let inspection = Self::open(path, device)?;
        inspection.run.weights(at)?;
        Ok(Self {
            at,
            chosen: true,
            ..inspection
        })
    }

    /// A sentence for a person, where the weights are not those of the end of training.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let stopped = !self.chosen && matches!(self.at, Weights::Step(_));
        stopped.then(|| {
            let path = self.run.path().display();
            format!("{path} has not ended; this is its checkpoint {}", self.at)
        })
    }

    /// The updates that the weights had.
    pub(crate) fn step(&self) -> Result<usize, Error> {
        match self.at {
            Weights::Step(step) => Ok(step),
            Weights::Last => Ok(self.run.checkpoint(Weights::Last)?.state.step),
            Weights::Best => {
                let newest = self.run.newest_weights().unwrap_or(Weights::Last);
                let best = self.run.checkpoint(newest)?.state.best;
                Ok(best.map_or(0, |best| best.step))
            }
        }
    }

    /// The summary that training wrote.
    ///
    /// # Errors
    /// If training has not ended.
    pub fn summary(&self) -> Result<Summary, Error> {
        self.run.summary()
    }

    /// What was measured while training.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, Error> {
        self.run.metrics()
    }

    /// Every score of every head while training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>, Error> {
        self.run.heads()
    }

    /// The tokens, and how text is cut into them, from the run's own files.
    pub(crate) fn vocabulary(&self) -> Result<Vocabulary, Error> {
        let path = self.run.path().join("tokenizer.json");
        let tokenizer = if path.is_file() {
            Some(read_at_most(&path, MOST_TOKENIZER_BYTES)?)
        } else {
            None
        };
        let names = self.run.vocabulary()?;
        Vocabulary::of_run(&self.config.task, names, tokenizer.as_deref())
    }

    /// The sequences on which roles are read.
    pub(crate) fn probe(&self) -> Result<Watched, Error> {
        let Config {
            task, model, seed, ..
        } = &self.config;
        let task = tasks::build(task, model.n_ctx, *seed)?;
        Ok(Watched::probe(&*task, model.n_ctx, *seed))
    }

    /// The model at this point, and the names of its tokens.
    pub(crate) fn model(&self) -> Result<ModelParts, Error> {
        let model = model::load(&self.run, &self.config, self.at, &self.device)?;
        Ok(ModelParts {
            model,
            vocabulary: self.run.vocabulary()?,
        })
    }
}

/// A model and the names of its tokens.
pub(crate) struct ModelParts {
    pub model: Decoder,
    pub vocabulary: Vec<String>,
}
