//! The training loop.

use std::{collections::HashMap, time::Instant};

use burn::{module::Module, tensor::Device};
use headlight_lens::{Measure, Role};
use headlight_residual::{Decoder, weights_to_bytes};
use headlight_run::{
    Config, EventRow, HeadName, HeadSummary, InputError, MetricsRow, RunDirectory, SequenceKind, Summary, TimingRow,
    UsesRow, Weights,
};

use crate::{
    evaluate::{Evaluation, evaluate, questions},
    learning_rate, model,
    progress::Progress,
    screen::State,
    step::{Update, Updater},
    tasks::{self, Question, Sequence, Task, Use},
    uses,
    watch::{Observation, Watched},
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
    on_screen: bool,
}

/// The measurements at one step.
struct Measured {
    evaluation: Evaluation,
    training_accuracy: Option<f64>,
    observations: [Observation; 2],
}

impl Training {
    /// Builds task, model and fixed batches. Nothing is written yet.
    ///
    /// # Errors
    /// If the configuration does not make a task and a model.
    pub fn prepare(config: Config, device_name: &str) -> Result<Self, InputError> {
        let device = crate::device::open(device_name)?;
        let task = tasks::build(&config.task, config.model.n_ctx, config.seed)?;
        let vocabulary = task.vocabulary().len();
        let model = model::build(&config, vocabulary, &device.clone().autodiff())?;
        let validation = tasks::validation(&*task, config.seed);
        let trained_on = match task.training_rows() {
            Some(rows) if rows != config.train.batch_size => {
                let message =
                    format!("must be {rows}: {} trains on its whole training set at once", config.task.name());
                return Err(InputError::new("config", message).key("train.batch_size").value(config.train.batch_size));
            }
            rows => rows.map(|rows| tasks::batch(&*task, config.seed, Use::Training, 0, rows)),
        };
        let watched = [Watched::probe(vocabulary, config.model.n_ctx, config.seed), Watched::task(&*task, &validation)];
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
            on_screen: false,
        })
    }

    /// Shows the run on the whole terminal while it trains.
    #[must_use]
    pub fn on_screen(self) -> Self {
        Self { on_screen: true, ..self }
    }

    fn progress(&self) -> Progress {
        let steps = self.config.train.steps;
        if self.on_screen {
            return Progress::on_screen(steps, State::new(self.config.task.name(), steps, self.floor));
        }
        Progress::new(steps)
    }

    /// What was decided, line by line.
    #[must_use]
    pub fn decisions(&self) -> Vec<String> {
        let Config { model, train, seed, task, .. } = &self.config;
        let optimum = self.task.optimum().map(|(name, nats)| format!("; {name} {nats:.4}")).unwrap_or_default();
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
        let shortcut = self.validation.first().and_then(|sequence| self.task.shortcut_losses(sequence));
        lines.extend(shortcut.map(|(name, _)| {
            let paid =
                |sequence: &Sequence| self.task.shortcut_losses(sequence).map_or_else(Vec::new, |(_, losses)| losses);
            format!(
                "shortcut    {:.4} nats on the validation batch: {name}",
                tasks::mean_scored(&self.validation, paid)
            )
        }));
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

    /// Trains to the end and writes everything into `run`.
    ///
    /// # Errors
    /// If the run cannot be written, or the loss is no longer finite.
    pub fn run(self, run: &RunDirectory) -> Result<Summary, InputError> {
        let Config { train, log, checkpoint, seed, .. } = self.config.clone();
        run.write_vocabulary(&self.task.vocabulary())?;
        tracing::info!(run = %run.path().display(), device = self.device_name, "training starts");
        let mut updater = Updater::new(&train, self.device.clone().autodiff())
            .map_err(|error| InputError::new("train.shards", error))?;
        let progress = self.progress();
        let tokens_per_step = (train.batch_size * self.config.model.n_ctx) as f64;
        let mut roles = HashMap::new();
        let mut model = self.model.clone();
        let mut measured = self.measure(&model);
        write_measured(run, 0, &measured, None)?;
        write_patterns(run, 0, &measured)?;
        run.append_uses(&self.uses(&model, &measured, 0))?;

        let started = Instant::now();
        let mut last_row = (started, 0);
        for step in 1..=train.steps {
            let sequences = tasks::batch(&*self.task, seed, Use::Training, step, train.batch_size);
            let rate = learning_rate(&train, step);
            let update;
            (model, update) = updater.update(model, &sequences, rate);
            if !(update.loss.is_finite() && update.gradient_norm.is_finite()) {
                progress.finish();
                return Err(InputError::new(
                    run.path().display(),
                    format_args!(
                        "step {step}: loss {} and gradient norm {} are not finite",
                        update.loss, update.gradient_norm
                    ),
                ));
            }
            tracing::debug!(step, loss = update.loss, gradient_norm = update.gradient_norm, learning_rate = rate);
            let is_last = step == train.steps;
            let keep_patterns = is_last || step.is_multiple_of(log.patterns_every);
            if is_last || keep_patterns || step.is_multiple_of(log.every) {
                measured = self.measure(&model);
                write_measured(run, step, &measured, Some((update, rate)))?;
                let elapsed = last_row.0.elapsed().as_secs_f64();
                let tokens_per_second = (step - last_row.1) as f64 * tokens_per_step / elapsed;
                last_row = (Instant::now(), step);
                run.append_timing(&TimingRow { step, seconds: started.elapsed().as_secs_f64(), tokens_per_second })?;
                let Measured { evaluation, observations, .. } = &measured;
                progress.measured(step, update.loss, evaluation, &observations[0], tokens_per_second);
                for event in role_events(&mut roles, step, &measured.observations[0]) {
                    let what = if event.event == "role_lost" { "no longer looks like" } else { "looks like" };
                    progress
                        .say(&format!("step {step}: {} {what}: {} (score {:.2})", event.head, event.role, event.value));
                    run.append_event(&event)?;
                }
                if keep_patterns {
                    write_patterns(run, step, &measured)?;
                    run.append_uses(&self.uses(&model, &measured, step))?;
                }
            }
            if step.is_multiple_of(checkpoint.every) && !is_last {
                write_weights(run, Weights::Step(step), &model)?;
                tracing::info!(step, "checkpoint written");
            }
            progress.step(step);
        }
        let seconds = started.elapsed().as_secs_f64();
        write_weights(run, Weights::Last, &model)?;
        progress.finish();

        let summary = self.summary(&measured, seconds, tokens_per_step * train.steps as f64 / seconds);
        run.write_summary(&summary)?;
        Ok(summary)
    }

    fn measure(&self, model: &Decoder) -> Measured {
        let model = model.valid();
        // Side by side: what is done between the model's operations runs on one core.
        let [probe, task] = &self.watched;
        let (evaluation, (probe, task)) = rayon::join(
            || evaluate(&model, &self.validation, &self.questions, &self.device),
            || rayon::join(|| probe.observe(&model, &self.device), || task.observe(&model, &self.device)),
        );
        let accuracy_on = |rows: &Vec<Sequence>| evaluate(&model, rows, &[], &self.device).accuracy;
        let training_accuracy = self.trained_on.as_ref().map(accuracy_on);
        Measured { evaluation, training_accuracy, observations: [probe, task] }
    }

    /// What heads are used as; everything at the end, before that what is cheap.
    fn uses(&self, model: &Decoder, measured: &Measured, step: usize) -> UsesRow {
        let (model, roles) = (model.valid(), measured.observations[0].roles());
        if step == self.config.train.steps {
            let behaviour = uses::behaviour(&self.validation, uses::SEQUENCES, &self.device);
            return uses::all_uses(&model, &behaviour, &roles, step);
        }
        let sequences = uses::sequences_while_training(&self.config);
        uses::watch_uses(&model, &uses::behaviour(&self.validation, sequences, &self.device), &roles, step)
    }

    fn summary(&self, measured: &Measured, seconds: f64, tokens_per_second: f64) -> Summary {
        let head = |(head, scores): &(HeadName, _)| HeadSummary {
            head: *head,
            role: Role::of(scores).name().to_owned(),
            scores: scores.clone(),
        };
        Summary {
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
) -> Result<(), InputError> {
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
    measured.observations.iter().try_for_each(|observation| run.append_heads(&observation.rows(step)))
}

fn write_patterns(run: &RunDirectory, step: usize, measured: &Measured) -> Result<(), InputError> {
    measured.observations.iter().try_for_each(|observation| {
        let name = match observation.kind {
            SequenceKind::Probe => "probe",
            SequenceKind::Task => "task",
        };
        run.write_patterns(step, name, &observation.patterns)
    })
}

fn write_weights(run: &RunDirectory, which: Weights, model: &Decoder) -> Result<(), InputError> {
    let bytes = weights_to_bytes(&model.valid()).map_err(|error| InputError::new(run.path().display(), error))?;
    run.write_weights(which, &bytes)
}

/// What changed in the heads' roles on the probe: a role that was not there before, or one that is gone.
fn role_events(known: &mut HashMap<HeadName, Measure>, step: usize, probe: &Observation) -> Vec<EventRow> {
    let mut events = Vec::new();
    for (head, scores) in &probe.heads {
        let (event, measure) = match (Role::of(scores), known.get(head).copied()) {
            (Role::Of(now), before) if before != Some(now) => {
                known.insert(*head, now);
                ("role_emerged", now)
            }
            (Role::Mixed, Some(before)) => {
                known.remove(head);
                ("role_lost", before)
            }
            _ => continue,
        };
        events.push(EventRow {
            step,
            event: event.to_owned(),
            head: *head,
            role: measure.name().to_owned(),
            value: scores.get(measure.name()).map_or(f64::NAN, |score| score.value),
        });
    }
    events
}
