//! The setup of a run: everything that it is made of, before the first step.

use std::path::Path;

use burn::tensor::Device;
use headlight_heads::MayAttend;
use headlight_report::{State, say};
use headlight_residual::Decoder;
use headlight_run::{Config, Data, DataFile, Error, RunData, RunDirectory, SequenceRow, Summary};
use headlight_tasks as tasks;
use headlight_tasks::{Sequence, Task, Tasks, Use, Validation};
use headlight_watch::{Interchange, Watched, model, probe, task};

use crate::{
    Pass, StepDropout, StepSwaps, Stopped,
    progress::{Progress, View},
    ranks::{Alone, Ranks, flat},
    restore,
    training::Training,
};

/// Everything that a run is made of, before the first step. [`run`](Self::run) trains it.
pub struct Setup {
    pub(crate) config: Config,
    pub(crate) device_name: String,
    pub(crate) device: Device,
    pub(crate) task: Box<dyn Task>,
    /// The same at every step.
    pub(crate) validation: Validation,
    /// Where roles are read.
    probe: Vec<Sequence>,
    /// The training set, where it is finite.
    pub(crate) trained_on: Option<Vec<Sequence>>,
    pub(crate) watched: [Watched; 2],
    /// Which part of the model is to compute which variable, if the run says so.
    pub(crate) interchange: Option<Interchange>,
    pub(crate) model: Decoder,
    pub(crate) floor: Option<f64>,
    pub(crate) bayes: Option<f64>,
    pub(crate) view: View,
}

impl Setup {
    /// Builds task, model and fixed batches. Nothing is written yet.
    ///
    /// # Errors
    /// If the configuration does not make a task and a model.
    pub fn prepare(config: Config, device_name: &str) -> Result<Self, Error> {
        let task = task::build(&config, &Tasks::built_in(""))?;
        Self::prepare_with(config, task, device_name)
    }

    /// [`prepare`](Self::prepare) with a task that was built from the configuration, by a program
    /// that has more than the built-in tasks.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_with(
        config: Config,
        task: Box<dyn Task>,
        device_name: &str,
    ) -> Result<Self, Error> {
        let device = headlight_watch::device::open(device_name)?;
        let vocabulary = task.vocabulary().len();
        let model = model::build(&config, vocabulary, &device.clone().autodiff())?;
        let interchange = Interchange::of(&config)?;
        let validation = task.validation(config.seed);
        let probe = probe(&*task, config.model.n_ctx, config.seed);
        let trained_on = match task.training_rows() {
            Some(rows) if rows != config.train.batch_size => {
                let message = format!(
                    "must be {rows}: {} trains on its whole training set at once",
                    config.task.name()
                );
                return Err(Error::config(message)
                    .key("train.batch_size")
                    .value(config.train.batch_size));
            }
            None if config.train.overfit_one_batch => Some(tasks::batch(
                &*task,
                config.seed,
                Use::Training,
                1,
                config.train.batch_size,
            )),
            rows => rows.map(|rows| tasks::batch(&*task, config.seed, Use::Training, 0, rows)),
        };
        let has_start = task.start().is_some();
        let watched = [Watched::probe(&probe), Watched::task(&validation)]
            .map(|watched| watched.with_start(has_start));
        Ok(Self {
            device_name: device_name.to_owned(),
            floor: validation.floor(),
            bayes: validation.bayes(),
            config,
            device,
            task,
            validation,
            probe,
            trained_on,
            watched,
            interchange,
            model,
            view: View::default(),
        })
    }

    /// Makes the directory of the run, with all that it depends on in it.
    ///
    /// # Errors
    /// As [`RunDirectory::create`].
    pub fn create(&self, path: &Path, overwrite: bool) -> Result<RunDirectory, Error> {
        let vocabulary = self.task.vocabulary();
        let data = RunData {
            data: self.data(self.task.files()),
            vocabulary: vocabulary.names_for(self.model.vocabulary()),
            tokenizer: vocabulary.tokenizer_json().map(String::into_bytes),
            validation: self.validation.rows(),
            probe: self.probe.iter().map(SequenceRow::from).collect(),
        };
        RunDirectory::create(path, &self.config, &data, overwrite)
    }

    /// Opens the directory of a run of this configuration and data, to go on with it.
    ///
    /// # Errors
    /// As [`RunDirectory::resume`].
    pub fn resume(&self, path: &Path) -> Result<RunDirectory, Error> {
        // What is known of a file by its size and date is not enough here.
        let files = self.task.files();
        let files = files.iter().map(|file| DataFile::read(&file.path));
        let data = self.data(files.collect::<Result<_, _>>()?);
        RunDirectory::resume(path, &self.config, &data)
    }

    pub(crate) fn data(&self, files: Vec<DataFile>) -> Data {
        Data {
            files,
            training_share: self.task.training_share(),
            chance: self.task.chance(),
            start: self.task.start(),
        }
    }

    /// Shows the run this way while it trains.
    #[must_use]
    pub fn shown(self, view: View) -> Self {
        Self { view, ..self }
    }

    pub(crate) fn progress(&self) -> Progress {
        let steps = self.config.train.steps;
        match &self.view {
            View::Bar => Progress::new(steps),
            View::Lines(name) => Progress::lines(steps, name),
            View::Screen(page) => {
                let window = self.config.model.window_of_all_layers();
                let may_attend = MayAttend::causal(window);
                let state = State::new(self.config.task.name(), steps, self.floor, may_attend);
                Progress::on_screen(
                    steps,
                    State {
                        page: *page,
                        ..state
                    },
                )
            }
        }
    }

    /// What was decided, line by line.
    #[must_use]
    pub fn decisions(&self) -> Vec<String> {
        let Config {
            model,
            train,
            seed,
            task,
            ..
        } = &self.config;
        let optimum = self
            .task
            .optimum()
            .map(|optimum| format!("; {} {:.4}", optimum.name, optimum.nats))
            .unwrap_or_default();
        let mut lines = vec![format!(
            "task        {}, {} tokens, sequences of {}",
            task.name(),
            self.task.vocabulary().len(),
            model.n_ctx
        )];
        lines.extend(model::describe(self.model.config()));
        lines.extend([
            match self.floor {
                Some(floor) => {
                    format!("floor       {floor:.4} nats on the validation batch, knowing the task and what is scored")
                }
                None => "floor       unknown: nobody knows the best predictor of this task".to_owned(),
            },
            match self.bayes {
                Some(bayes) => {
                    format!("bayes       {bayes:.4} nats on the validation batch, knowing the task alone{optimum}")
                }
                None => format!("validation  {} sequences", self.validation.sequences.len()),
            },
            match self.validation.best_accuracy() {
                Some(best) => format!(
                    "accuracy    {:.4} by chance, {best:.4} expected of the best predictor",
                    self.task.chance()
                ),
                None => format!("chance      accuracy {:.4}", self.task.chance()),
            },
        ]);
        if let Some(tokens) = self.task.training_tokens() {
            let (drawn, all) = (tokens.len(), self.task.vocabulary().len());
            lines.push(format!(
                "probe       draws {drawn} of the {all} tokens; the other {} do not occur in the training data",
                all - drawn
            ));
        }
        if let Some((name, loss)) = self.validation.shortcut() {
            lines.push(format!(
                "shortcut    {loss:.4} nats on the validation batch: {name}"
            ));
        }
        lines.extend(self.interchange.as_ref().map(Interchange::in_words));
        lines.extend([format!(
            "training    {} steps of {} tokens in {} shard{}, seed {seed}, device {}",
            train.steps,
            train.batch_size * model.n_ctx,
            train.shards,
            if train.shards == 1 { "" } else { "s" },
            self.device_name
        )]);
        lines
    }

    /// Trains to the end and writes everything into `run`, from its newest checkpoint on if it has
    /// any.
    ///
    /// # Errors
    /// If the run cannot be written, the loss or the gradient is no longer finite, or a signal asks
    /// to stop.
    pub fn run(self, run: &RunDirectory) -> Result<Summary, Stopped> {
        self.lead(run, Box::new(Alone))
    }

    /// [`run`](Self::run) on the first of several ranks, while the others [`follow`](Self::follow).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn lead(self, run: &RunDirectory, ranks: Box<dyn Ranks>) -> Result<Summary, Stopped> {
        if run.is_finished() {
            say(&format!(
                "{} is finished, there is nothing to resume",
                run.path().display()
            ));
            restore::share_nothing(&*ranks);
            ranks.leave();
            return Ok(run.summary()?);
        }
        tracing::info!(run = %run.path().display(), device = self.device_name, ranks = ranks.size(), "training starts");
        let (training, model) = Training::begin(&self, run, &*ranks)?;
        let ended = training.run(model);
        if matches!(ended, Ok(_) | Err(Stopped::Interrupted { .. })) {
            flat::dismiss(&*ranks, &self.model);
        }
        // An `mpirun` that was asked to stop no longer brings the ranks together.
        if ended.is_ok() {
            ranks.leave();
        }
        ended
    }

    /// What step `step` learns from.
    pub(crate) fn batch_of(&self, step: usize) -> Vec<Sequence> {
        let Config { train, seed, .. } = &self.config;
        let step = if train.overfit_one_batch { 1 } else { step };
        tasks::batch(&*self.task, *seed, Use::Training, step, train.batch_size)
    }

    /// How the batch of step `step` passes through the model.
    pub(crate) fn pass_of(&self, step: usize) -> Pass<'_> {
        let Config { train, seed, .. } = &self.config;
        if let Some(interchange) = &self.interchange {
            return Pass::Swapping(StepSwaps { interchange, step });
        }
        if train.dropout == 0.0 && train.attention_dropout == 0.0 {
            return Pass::Plain;
        }
        Pass::Dropping(StepDropout {
            stream: train.dropout,
            weights: train.attention_dropout,
            seed: *seed,
            step,
            first_row: 0,
        })
    }

    pub(crate) fn tokens_per_step(&self) -> f64 {
        (self.config.train.batch_size * self.config.model.n_ctx) as f64
    }
}
