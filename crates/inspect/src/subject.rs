//! What `inspect` looks at.

use std::{path::Path, sync::OnceLock};

use burn::tensor::Device;
use headlight_residual::Decoder;
use headlight_run::{
    CheckpointState, Config, Error, ErrorKind, FORMAT, HeadRow, MetricsRow, RunDirectory, Summary,
    Weights,
};
use headlight_tasks::{Sequence, Validation, Vocabulary};
use headlight_watch::{Cores, Watched, evaluate, model};

/// A trained model at one point of its training, with its vocabulary, its sequences and its logs.
/// All come from the run's own files: the data that the run was made from may be gone.
pub struct Subject {
    pub(crate) run: RunDirectory,
    pub(crate) config: Config,
    pub(crate) device: Device,
    /// The point of training that is looked at; `None` for a run without any weights.
    at: Option<Weights>,
    /// Whether somebody named it.
    chosen: bool,
    /// Read when a verb first asks.
    validation: OnceLock<Validation>,
}

impl Subject {
    /// Opens the run at `path`: with the weights of the end, with those of the newest checkpoint if
    /// it was stopped, or with the best if it diverged.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, Error> {
        let run = RunDirectory::open(path)?;
        let mut subject = Self {
            config: run.config()?,
            device: headlight_watch::device::open(device)?,
            at: run.newest_weights(),
            chosen: false,
            validation: OnceLock::new(),
            run,
        };
        // What a run kept last before it diverged may be far from anything.
        let best = Weights::Best;
        let diverged = !subject.run.is_finished() && matches!(subject.diverged(), Ok(Some(_)));
        if diverged && subject.run.weights(best).is_ok() {
            subject.at = Some(best);
        }
        Ok(subject)
    }

    /// Opens the run at `path` with the weights of one point of its training.
    ///
    /// # Errors
    /// If it is not a run, or has no whole weights of that point.
    pub fn open_at(path: &Path, device: &str, at: Weights) -> Result<Self, Error> {
        let subject = Self::open(path, device)?;
        subject.run.weights(at)?;
        Ok(Self {
            at: Some(at),
            chosen: true,
            ..subject
        })
    }

    /// A sentence for a person, where the weights are not those of the end of training.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if self.chosen || self.run.is_finished() {
            return None;
        }
        let which = match self.at? {
            Weights::Step(step) => format!("this is its checkpoint step-{step}"),
            Weights::Best => format!(
                "these are its best weights, of step {}",
                self.step().unwrap_or_default()
            ),
            Weights::Last => "this is its last checkpoint".to_owned(),
        };
        let path = self.run.path().display();
        let state = match self.diverged() {
            Ok(Some(step)) => format!("diverged: its loss at step {step} is no number"),
            _ => "has not ended".to_owned(),
        };
        Some(format!("{path} {state}; {which}"))
    }

    /// Whether the weights are those of a run that has ended, and its summary and its last rows
    /// speak of them. Otherwise the model is measured anew.
    pub(crate) fn is_at_the_end(&self) -> bool {
        !self.chosen && self.run.is_finished()
    }

    /// The name of a point that somebody chose, as in `--at`.
    pub(crate) fn chosen(&self) -> Option<Weights> {
        self.at.filter(|_| self.chosen)
    }

    /// The updates that the weights had.
    pub(crate) fn step(&self) -> Result<usize, Error> {
        let at = self.at()?;
        let state = self.run.state(at)?;
        Ok(match (at, state.best) {
            (Weights::Best, Some(best)) => best.step,
            _ => state.step,
        })
    }

    fn at(&self) -> Result<Weights, Error> {
        let none = || {
            let message = format_args!(
                "has no weights: training stopped before its first checkpoint (checkpoint.every = {})",
                self.config.checkpoint.every
            );
            Error::of(ErrorKind::Missing, self.run.path().display(), message)
        };
        self.at.ok_or_else(none)
    }

    /// The result of training: as training wrote it or, of a run that has not ended and at a point
    /// that somebody chose, measured now.
    ///
    /// # Errors
    /// If a file of the run cannot be read.
    pub fn summary(&self) -> Result<Summary, Error> {
        if self.is_at_the_end() {
            self.run.summary()
        } else {
            self.measured_summary()
        }
    }

    fn measured_summary(&self) -> Result<Summary, Error> {
        let ModelParts { model, .. } = self.model()?;
        let validation = self.validation()?;
        let evaluation = evaluate(
            &model,
            &validation.sequences,
            &validation.questions,
            &self.device,
            Cores::all(),
        );
        let probe = self.probe()?.observe(&model, &self.device)?;
        let CheckpointState {
            device,
            step,
            seconds,
            ..
        } = self.run.state(self.at()?)?;
        let tokens = self.config.train.batch_size * self.config.model.n_ctx * step;
        Ok(Summary {
            format: FORMAT,
            task: self.config.task.name().to_owned(),
            device,
            steps: self.step()?,
            seconds,
            tokens_per_second: tokens as f64 / seconds,
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            exact: evaluation.exact,
            floor: validation.floor(),
            bayes: validation.bayes(),
            chance: self.chance()?,
            breakdown: evaluation.breakdown,
            heads: probe.summaries(),
        })
    }

    /// What was measured while training.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, Error> {
        self.run.metrics()
    }

    /// What was measured while the loss was a number.
    pub(crate) fn finite_metrics(&self) -> Result<Vec<MetricsRow>, Error> {
        let mut rows = self.run.metrics()?;
        rows.retain(MetricsRow::is_finite);
        Ok(rows)
    }

    /// The step at which training stopped because the loss was no number; `None` if it did not.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn diverged(&self) -> Result<Option<usize>, Error> {
        let rows = self.run.metrics()?;
        let bad = rows.iter().find(|row| !row.is_finite());
        Ok(bad.map(|row| row.step))
    }

    /// Every score of every head while training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>, Error> {
        self.run.heads()
    }

    /// The tokens, and how text is cut into them.
    pub(crate) fn vocabulary(&self) -> Result<Vocabulary, Error> {
        let tokenizer = self.run.tokenizer()?;
        Vocabulary::of_run(
            &self.config.task,
            self.run.vocabulary()?,
            tokenizer.as_deref(),
        )
    }

    /// The model at this point, and the names of its tokens.
    pub(crate) fn model(&self) -> Result<ModelParts, Error> {
        let model = model::load(&self.run, &self.config, self.at()?, &self.device)?;
        Ok(ModelParts {
            model,
            vocabulary: self.run.vocabulary()?,
        })
    }

    /// The sequences that the run is measured on, and what its task knows about them.
    pub(crate) fn validation(&self) -> Result<&Validation, Error> {
        if let Some(validation) = self.validation.get() {
            return Ok(validation);
        }
        let read = Validation::of_rows(self.run.validation()?);
        Ok(self.validation.get_or_init(|| read))
    }

    /// The sequences on which roles are read.
    pub(crate) fn probe(&self) -> Result<Watched, Error> {
        let rows = self.run.probe()?.into_iter();
        let sequences: Vec<Sequence> = rows.map(Sequence::from).collect();
        Ok(Watched::probe(&sequences).with_start(self.has_start()?))
    }

    /// Whether every sequence begins with a token that stands nowhere else.
    pub(crate) fn has_start(&self) -> Result<bool, Error> {
        Ok(self.run.data()?.start.is_some())
    }

    /// The sequences of the task on which heads are scored.
    pub(crate) fn on_task(&self) -> Result<Watched, Error> {
        Ok(Watched::task(self.validation()?).with_start(self.has_start()?))
    }

    /// The accuracy of guessing on the run's task.
    pub(crate) fn chance(&self) -> Result<f64, Error> {
        Ok(self.run.data()?.chance)
    }
}

/// A model and the names of its tokens.
pub(crate) struct ModelParts {
    pub model: Decoder,
    pub vocabulary: Vec<String>,
}
