//! What `inspect` looks at.

mod opened_model;
mod pairs;
mod pairs_file;
mod text_sequences;
mod trained_run;

use std::{path::Path, sync::OnceLock};

use burn::tensor::Device;
use headlight_residual::Decoder;
use headlight_run::{
    CheckpointState, Config, Error, ErrorKind, FORMAT, HeadRow, MetricsRow, Summary, TaskConfig,
    UsesRow, Weights,
};
use headlight_tasks::{Sequence, Tasks, Validation, Vocabulary};
use headlight_watch::{Cores, Interchange, ModelFiles, Watched, evaluate, interchange, model};

pub use self::pairs::Pairs;
pub(crate) use self::trained_run::TrainedRun;
use self::{
    opened_model::{MOST_INPUTS, OpenedModel, SEED},
    pairs::NamedPairs,
    text_sequences::sequences_of,
};

/// A trained model with its vocabulary, the sequences that it is measured on and, if it was trained
/// here, its logs.
pub struct Subject {
    source: Source,
    pub(crate) device: Device,
    /// The tasks of the program.
    pub(crate) tasks: Tasks,
    /// The text that stands in place of the subject's own sequences, as it is called.
    text: Option<String>,
    /// The pairs of prompts that causal tests are measured on in place of sequences.
    pairs: Option<NamedPairs>,
    /// Read when a verb first asks.
    validation: OnceLock<Validation>,
}

/// Where a subject comes from.
enum Source {
    /// All comes from the run's own files: the data that the run was made from may be gone.
    Run(Box<TrainedRun>),
    Model(Box<OpenedModel>),
}

impl Subject {
    /// Opens what is at `path`: a run, a folder of `transformers`, or a GGUF file. A run opens with
    /// the weights of the end, with those of the newest checkpoint if it was stopped, or with the
    /// best if it diverged.
    ///
    /// # Errors
    /// If it is none of them, or its model has parts that are not supported.
    pub fn open(path: &Path, device: &str) -> Result<Self, Error> {
        let device = headlight_watch::device::open(device)?;
        let source = if ModelFiles::is_at(path) {
            Source::Model(Box::new(OpenedModel::open(path, &device)?))
        } else {
            Source::Run(Box::new(TrainedRun::open(path)?))
        };
        Ok(Self::new(source, device))
    }

    /// Opens the run at `path` with the weights of one point of its training.
    ///
    /// # Errors
    /// If it is not a run, or has no whole weights of that point.
    pub fn open_at(path: &Path, device: &str, at: Weights) -> Result<Self, Error> {
        let device = headlight_watch::device::open(device)?;
        if ModelFiles::is_at(path) {
            let message = format!("{} is a model, which has one point", path.display());
            return Err(Error::new(format_args!("--at {at}"), message));
        }
        let source = Source::Run(Box::new(TrainedRun::open_at(path, at)?));
        Ok(Self::new(source, device))
    }

    fn new(source: Source, device: Device) -> Self {
        Self {
            source,
            device,
            tasks: Tasks::built_in(""),
            text: None,
            pairs: None,
            validation: OnceLock::new(),
        }
    }

    /// The same for a program that has these tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: Tasks) -> Self {
        Self { tasks, ..self }
    }

    /// The same, measured on sequences of a text in place of its own.
    ///
    /// # Errors
    /// If the text cannot be read, has other tokens than the model, or is too short.
    pub fn on_text(self, path: &Path) -> Result<Self, Error> {
        let inputs = self.n_ctx().min(MOST_INPUTS);
        let validation = sequences_of(path, &self.vocabulary()?, inputs)?;
        Ok(Self {
            text: Some(format!("the text {}", path.display())),
            validation: validation.into(),
            ..self
        })
    }

    /// A sentence for a person, where the program does not have the task of the run.
    #[must_use]
    pub fn task_note(&self) -> Option<String> {
        let run = self.trained().ok()?;
        let TaskConfig::Own(task) = &run.config.task else {
            return None;
        };
        if self.tasks.has(&run.config.task) {
            return None;
        }
        let config = self.path().join("config.toml");
        Some(task.not_built_in().at(config.display()).to_string())
    }

    /// The run, for what only a run has: its configuration and its logs.
    pub(crate) fn trained(&self) -> Result<&TrainedRun, Error> {
        match &self.source {
            Source::Run(run) => Ok(run),
            Source::Model(model) => {
                let message = "is a model without a log of its training; this verb needs a run";
                Err(Error::of(ErrorKind::Missing, model.path.display(), message))
            }
        }
    }

    /// The folder or file.
    pub(crate) fn path(&self) -> &Path {
        match &self.source {
            Source::Run(run) => run.directory.path(),
            Source::Model(model) => &model.path,
        }
    }

    /// The name of what the model is measured on.
    pub(crate) fn task_name(&self) -> &str {
        match (&self.pairs, &self.text, &self.source) {
            (Some(pairs), ..) => &pairs.name,
            (None, Some(text), _) => text,
            (None, None, Source::Run(run)) => run.config.task.name(),
            (None, None, Source::Model(_)) => "random tokens that come back",
        }
    }

    /// In a sentence, what the model is measured on.
    pub(crate) fn own_sequences(&self) -> String {
        match (self.is_on_its_own(), &self.source) {
            (true, Source::Run(_)) => format!("the run's own task, {}", self.task_name()),
            _ => self.task_name().to_owned(),
        }
    }

    /// The number of positions that the model is built for.
    pub(crate) fn n_ctx(&self) -> usize {
        match &self.source {
            Source::Run(run) => run.config.model.n_ctx,
            Source::Model(model) => model.model.config().n_ctx,
        }
    }

    /// The number of tokens that a token sees in a layer; `None`: all before it.
    pub(crate) fn window_of(&self, layer: usize) -> Option<usize> {
        match &self.source {
            Source::Run(run) => run.config.model.window_of(layer),
            Source::Model(model) => model.model.config().window_of(layer),
        }
    }

    /// The same if it is that of all layers.
    pub(crate) fn window(&self) -> Option<usize> {
        match &self.source {
            Source::Run(run) => run.config.model.window_of_all_layers(),
            Source::Model(model) => model.model.config().window_of_all_layers(),
        }
    }

    /// What the draws of controls and nulls follow from.
    pub(crate) fn seed(&self) -> u64 {
        match &self.source {
            Source::Run(run) => run.config.seed,
            Source::Model(_) => SEED,
        }
    }

    /// A sentence for a person, where the weights are not those of the end of training.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.trained().ok()?.note()
    }

    /// Whether the subject is measured on its own sequences: neither on a text nor on pairs.
    fn is_on_its_own(&self) -> bool {
        self.text.is_none() && self.pairs.is_none()
    }

    /// Whether sequences of a text stand in place of the subject's own.
    pub(crate) fn is_on_text(&self) -> bool {
        self.text.is_some()
    }

    /// Whether the weights are those of a run that has ended, and its summary and its last rows
    /// speak of them and of every measure. Otherwise the model is measured anew.
    pub(crate) fn is_at_the_end(&self) -> bool {
        self.text.is_none() && self.trained().is_ok_and(TrainedRun::is_at_the_end)
    }

    /// The updates that the weights had; `None` where nobody knows.
    pub(crate) fn step(&self) -> Result<Option<usize>, Error> {
        match &self.source {
            Source::Run(run) => run.step().map(Some),
            Source::Model(_) => Ok(None),
        }
    }

    /// What training found heads to be used as on the subject's own sequences; nothing where nothing
    /// was trained here.
    pub(crate) fn logged_uses(&self) -> Result<Vec<UsesRow>, Error> {
        match &self.source {
            Source::Run(run) if self.is_on_its_own() => run.directory.uses(),
            _ => Ok(Vec::new()),
        }
    }

    /// The result of training: as training wrote it or, of a run that has not ended and at a point
    /// that somebody chose, measured now.
    ///
    /// # Errors
    /// If a file of the run cannot be read.
    pub fn summary(&self) -> Result<Summary, Error> {
        let run = self.trained()?;
        if run.is_at_the_end() {
            run.directory.summary()
        } else {
            self.measured_summary(run)
        }
    }

    fn measured_summary(&self, run: &TrainedRun) -> Result<Summary, Error> {
        let ModelParts { model, .. } = self.model()?;
        let validation = self.validation()?;
        let mut evaluation = evaluate(
            &model,
            &validation.sequences,
            &validation.questions,
            &self.device,
            Cores::all(),
        );
        if let Some(interchange) = Interchange::of(&run.config)? {
            let sequences = &validation.sequences;
            let swapped = interchange.measure(&model, sequences, &self.device, Cores::all())?;
            evaluation
                .breakdown
                .extend(interchange::breakdown(&swapped));
        }
        let probe = self.probe()?.observe(&model, &self.device)?;
        let CheckpointState {
            device,
            step,
            seconds,
            ..
        } = run.directory.state(run.at()?)?;
        let tokens = run.config.train.batch_size * run.config.model.n_ctx * step;
        Ok(Summary {
            format: FORMAT,
            task: run.config.task.name().to_owned(),
            device,
            steps: run.step()?,
            seconds,
            tokens_per_second: tokens as f64 / seconds,
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            exact: evaluation.exact,
            floor: validation.floor(),
            bayes: validation.bayes(),
            best_accuracy: validation.best_accuracy(),
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
        self.trained()?.directory.metrics()
    }

    /// What was measured while the loss was a number.
    pub(crate) fn finite_metrics(&self) -> Result<Vec<MetricsRow>, Error> {
        let mut rows = self.metrics()?;
        rows.retain(MetricsRow::is_finite);
        Ok(rows)
    }

    /// The step at which training stopped because the loss was no number; `None` if it did not.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn diverged(&self) -> Result<Option<usize>, Error> {
        self.trained()?.diverged()
    }

    /// Every score of every head while training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>, Error> {
        self.trained()?.directory.heads()
    }

    /// Where the model is.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The run's configuration.
    ///
    /// # Errors
    /// If the subject is no run.
    pub fn config(&self) -> Result<&Config, Error> {
        Ok(&self.trained()?.config)
    }

    /// The tokens, and how text is cut into them.
    ///
    /// # Errors
    /// If a file of the run cannot be read.
    pub fn vocabulary(&self) -> Result<Vocabulary, Error> {
        let run = match &self.source {
            Source::Run(run) => run,
            Source::Model(model) => return Ok(model.vocabulary.clone()),
        };
        let tokenizer = run.directory.tokenizer()?;
        let names = run.directory.vocabulary()?;
        Vocabulary::of_run(&run.config.task, names, tokenizer.as_deref())
    }

    /// The model at this point, and the names of its tokens.
    ///
    /// # Errors
    /// If the run has no weights, or they cannot be read.
    pub fn model(&self) -> Result<ModelParts, Error> {
        match &self.source {
            Source::Run(run) => Ok(ModelParts {
                model: model::load(&run.directory, &run.config, run.at()?, &self.device)?,
                vocabulary: run.directory.vocabulary()?,
            }),
            Source::Model(opened) => Ok(ModelParts {
                model: opened.model.clone(),
                vocabulary: opened.names.clone(),
            }),
        }
    }

    /// The sequences that the model is measured on, and what their task knows about them.
    ///
    /// # Errors
    /// If the file of the run cannot be read.
    pub fn validation(&self) -> Result<&Validation, Error> {
        if let Some(validation) = self.validation.get() {
            return Ok(validation);
        }
        let read = match &self.source {
            Source::Run(run) => Validation::of_rows(run.directory.validation()?),
            Source::Model(model) => model.validation(),
        };
        Ok(self.validation.get_or_init(|| read))
    }

    /// The sequences on which roles are read.
    ///
    /// # Errors
    /// If the file of the run cannot be read.
    pub fn probe(&self) -> Result<Watched, Error> {
        let sequences: Vec<Sequence> = match &self.source {
            Source::Run(run) => run
                .directory
                .probe()?
                .into_iter()
                .map(Sequence::from)
                .collect(),
            Source::Model(model) => model.probe(),
        };
        Ok(Watched::probe(&sequences).with_start(self.has_start()?))
    }

    /// The token that begins every sequence and stands nowhere else.
    pub(crate) fn start(&self) -> Result<Option<u32>, Error> {
        match &self.source {
            Source::Run(run) => Ok(run.directory.data()?.start),
            Source::Model(_) => Ok(None),
        }
    }

    /// Whether there is such a token.
    pub(crate) fn has_start(&self) -> Result<bool, Error> {
        Ok(self.start()?.is_some())
    }

    /// The sequences of the task on which heads are scored.
    pub(crate) fn on_task(&self) -> Result<Watched, Error> {
        Ok(Watched::task(self.validation()?).with_start(self.has_start()?))
    }

    /// The accuracy of guessing on the task.
    pub(crate) fn chance(&self) -> Result<f64, Error> {
        match &self.source {
            Source::Run(run) if self.text.is_none() => Ok(run.directory.data()?.chance),
            Source::Run(run) => Ok(1.0 / run.directory.vocabulary()?.len() as f64),
            Source::Model(model) => Ok(model.chance()),
        }
    }
}

/// A model and the names of its tokens.
pub struct ModelParts {
    /// The model.
    pub model: Decoder,
    /// The names of its tokens, by id.
    pub vocabulary: Vec<String>,
}
