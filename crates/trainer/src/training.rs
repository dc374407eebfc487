//! Training: what a run is made of, and what is measured on the way.

mod course;
mod events;
mod follow;
mod live;
mod place;
mod writer;

use std::time::{Duration, Instant};

use burn::{module::Module, tensor::Device};
use course::Course;
use headlight_heads::{HeadName, MayAttend, Role, SequenceKind};
use headlight_report::{State, say};
use headlight_residual::Decoder;
use headlight_run::{
    Config, Error, FORMAT, HeadSummary, MetricsRow, PatternFile, RunDirectory, Summary, UsesRow,
};
use headlight_tasks as tasks;
use headlight_tasks::{Question, Sequence, Task, Use};
use headlight_watch::{Cores, Evaluation, Observation, Watched, evaluate, model, questions, uses};

use crate::{
    StepDropout, Stopped,
    progress::{Progress, View},
    ranks::{Alone, Ranks, flat},
    step::Update,
};

/// Everything a run is made of, before the first step.
pub struct Training {
    config: Config,
    device_name: String,
    device: Device,
    task: Box<dyn Task>,
    /// The same at every step.
    validation: Vec<Sequence>,
    /// The training set, where it is finite.
    trained_on: Option<Vec<Sequence>>,
    questions: Vec<Vec<Question>>,
    watched: [Watched; 2],
    model: Decoder,
    floor: Option<f64>,
    bayes: Option<f64>,
    view: View,
}

/// The measurements at one step.
struct Measured {
    evaluation: Evaluation,
    training_accuracy: Option<f64>,
    /// On the probe, on the task.
    observations: Vec<Observation>,
    /// What the observations took.
    watching: Duration,
}

impl Training {
    /// Builds task, model and fixed batches. Nothing is written yet.
    ///
    /// # Errors
    /// If the configuration does not make a task and a model.
    pub fn prepare(config: Config, device_name: &str) -> Result<Self, Error> {
        let device = headlight_watch::device::open(device_name)?;
        let task = tasks::build(&config.task, config.model.n_ctx, config.seed)?;
        let vocabulary = task.vocabulary().len();
        let model = model::build(&config, vocabulary, &device.clone().autodiff())?;
        let validation = tasks::validation(&*task, config.seed);
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
        let watched = [
            Watched::probe(vocabulary, config.model.n_ctx, config.seed),
            Watched::task(&*task, &validation),
        ];
        Ok(Self {
            device_name: device_name.to_owned(),
            questions: questions(&*task, &validation),
            floor: tasks::mean_known(&validation, |sequence| task.floor_losses(sequence)),
            bayes: tasks::mean_known(&validation, |sequence| task.bayes_losses(sequence)),
            config,
            device,
            task,
            validation,
            trained_on,
            watched,
            model,
            view: View::default(),
        })
    }

    /// Shows the run this way while it trains.
    #[must_use]
    pub fn shown(self, view: View) -> Self {
        Self { view, ..self }
    }

    fn progress(&self) -> Progress {
        let steps = self.config.train.steps;
        match &self.view {
            View::Bar => Progress::new(steps),
            View::Lines(name) => Progress::lines(steps, name),
            View::Screen(page) => {
                let may_attend = MayAttend::causal(self.config.model.window);
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
                None => format!("validation  {} sequences", self.validation.len()),
            },
            format!("chance      accuracy {:.4}", self.task.chance()),
        ]);
        if let Some((name, loss)) = tasks::shortcut_loss(&*self.task, &self.validation) {
            lines.push(format!(
                "shortcut    {loss:.4} nats on the validation batch: {name}"
            ));
        }
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
            place::share_nothing(&*ranks);
            ranks.leave();
            return Ok(run.summary()?);
        }
        tracing::info!(run = %run.path().display(), device = self.device_name, ranks = ranks.size(), "training starts");
        let (course, model) = Course::begin(&self, run, &*ranks)?;
        let ended = course.run(model);
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
    fn batch_of(&self, step: usize) -> Vec<Sequence> {
        let Config { train, seed, .. } = &self.config;
        let step = if train.overfit_one_batch { 1 } else { step };
        tasks::batch(&*self.task, *seed, Use::Training, step, train.batch_size)
    }

    /// The dropout of step `step`, if the run has any.
    fn dropout_of(&self, step: usize) -> Option<StepDropout> {
        let Config { train, seed, .. } = &self.config;
        if train.dropout == 0.0 && train.attention_dropout == 0.0 {
            return None;
        }
        Some(StepDropout {
            stream: train.dropout,
            weights: train.attention_dropout,
            seed: *seed,
            step,
            first_row: 0,
        })
    }

    fn tokens_per_step(&self) -> f64 {
        (self.config.train.batch_size * self.config.model.n_ctx) as f64
    }

    fn measure(&self, model: &Decoder, cores: &Cores) -> Result<Measured, Error> {
        let model = model.valid();
        let evaluation = evaluate(
            &model,
            &self.validation,
            &self.questions,
            &self.device,
            cores,
        );
        let begun = Instant::now();
        let observe = |watched: &Watched| watched.observe(&model, &self.device);
        let observations = cores
            .map(self.watched.iter().collect(), observe)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let watching = begun.elapsed();
        let accuracy_on =
            |rows: &Vec<Sequence>| evaluate(&model, rows, &[], &self.device, cores).accuracy;
        let training_accuracy = self.trained_on.as_ref().map(accuracy_on);
        Ok(Measured {
            evaluation,
            training_accuracy,
            observations,
            watching,
        })
    }

    /// What heads are used as; everything at the end, before that what is cheap.
    fn uses(
        &self,
        model: &Decoder,
        measured: &Measured,
        step: usize,
        at_the_end: bool,
        cores: &Cores,
    ) -> Result<UsesRow, Error> {
        let (model, roles) = (model.valid(), measured.observations[0].roles());
        if at_the_end {
            let behaviour = uses::behaviour(&self.validation, uses::SEQUENCES, &self.device);
            return uses::all_uses(&model, &behaviour, &roles, step, cores);
        }
        let sequences = uses::sequences_while_training(&self.config);
        uses::watch_uses(
            &model,
            &uses::behaviour(&self.validation, sequences, &self.device),
            &roles,
            step,
            cores,
        )
    }

    fn summary(&self, measured: &Measured, seconds: f64, tokens_per_second: f64) -> Summary {
        let head = |(head, scores): &(HeadName, _)| HeadSummary {
            head: *head,
            role: Role::of(scores),
            scores: scores.clone(),
        };
        Summary {
            format: FORMAT,
            task: self.config.task.name().to_owned(),
            device: self.device_name.clone(),
            steps: self.config.train.steps,
            seconds,
            tokens_per_second,
            loss: measured.evaluation.loss,
            accuracy: measured.evaluation.accuracy,
            exact: measured.evaluation.exact,
            floor: self.floor,
            bayes: self.bayes,
            chance: self.task.chance(),
            breakdown: measured.evaluation.breakdown.clone(),
            heads: measured.observations[0].heads.iter().map(head).collect(),
        }
    }
}

fn write_measured(
    run: &RunDirectory,
    step: usize,
    measured: &Measured,
    update: Option<(Update, f64)>,
) -> Result<(), Error> {
    run.append_metrics(&MetricsRow {
        step,
        loss: update.map(|(update, _)| update.loss),
        validation: measured.evaluation.loss,
        accuracy: measured.evaluation.accuracy,
        exact: measured.evaluation.exact,
        in_context: measured.evaluation.in_context,
        training_accuracy: measured.training_accuracy,
        breakdown: measured.evaluation.breakdown.clone(),
        learning_rate: update.map(|(_, rate)| rate),
        gradient_norm: update.map(|(update, _)| update.gradient_norm),
    })?;
    measured
        .observations
        .iter()
        .try_for_each(|observation| run.append_heads(&observation.rows(step)))
}

/// The patterns by what they were seen on.
fn patterns_of(measured: &Measured) -> Vec<(SequenceKind, PatternFile)> {
    let of_kind = |observation: &Observation| (observation.kind, observation.patterns.clone());
    measured.observations.iter().map(of_kind).collect()
}
