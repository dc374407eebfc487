//! Training: step by step from the beginning, or from a checkpoint, to the end.
//!
//! A checkpoint holds everything that the steps after it depend on; sequences follow from (seed,
//! step, row) alone. So a run that was stopped, by whatever, goes on to the same bits.

use std::{
    collections::BTreeMap,
    mem::take,
    time::{Duration, Instant},
};

use burn::module::Module;
use headlight_residual::{Decoder, tensors_to_bytes, weights_to_bytes};
use headlight_run::{
    Best, Checkpoint, CheckpointState, Error, ErrorKind, FORMAT, MetricsRow, Quantity,
    RunDirectory, Summary, TimingRow, TrainConfig, VERSION, Weights,
};
use headlight_tasks::Sequence;

use crate::{
    NotFinite, Setup, Stopped, UnusableCheckpoint, events, interrupt, learning_rate,
    measure::{MadeUpdate, Measured},
    moments, non_finite,
    optimizer::Memory,
    progress::Progress,
    ranks::Ranks,
    restore::{self, restored},
    step::{Gradient, Pass, Update, Updater},
    watched_heads::HeadsToWatch,
    writer::Writer,
};

/// Setup under way.
pub(crate) struct Training<'a> {
    setup: &'a Setup,
    run: &'a RunDirectory,
    /// What may come late; rows that a reader follows are written at once.
    writer: Writer,
    ranks: &'a dyn Ranks,
    progress: Progress,
    updater: Updater,
    state: CheckpointState,
    /// The model of the lowest validation loss, while `best/` holds an older one.
    unwritten_best: Option<Decoder>,
    /// The heads that are watched.
    heads: HeadsToWatch,
    /// What was measured last.
    measured: Option<Measured>,
    started: Instant,
    /// Wall time of the processes before this one.
    seconds_before: f64,
    /// When `timing.jsonl` got its last row, and at which step.
    timed: Instant,
    timed_step: usize,
    /// Time since then that went into watching heads.
    watching: Duration,
}

impl<'a> Training<'a> {
    /// At the newest checkpoint that is whole, or at step 0; and the model there. The other ranks
    /// are told.
    pub fn begin(
        setup: &'a Setup,
        run: &'a RunDirectory,
        ranks: &'a dyn Ranks,
    ) -> Result<(Self, Decoder), Stopped> {
        let train = &setup.config.train;
        let updater = Updater::new(train, setup.device.clone().autodiff())
            .map_err(|error| Error::because(ErrorKind::Internal, "train.shards", error))?;
        let mut training = Self {
            setup,
            run,
            writer: Writer::new(run),
            ranks,
            progress: setup.progress(),
            updater,
            state: CheckpointState {
                format: FORMAT,
                version: VERSION.to_owned(),
                device: setup.device_name.clone(),
                step: 0,
                ended: train.steps == 0,
                seconds: 0.0,
                best: None,
                measured_since_best: 0,
                roles: BTreeMap::new(),
                ranges: BTreeMap::new(),
                moments: 0,
                counts: BTreeMap::new(),
                logs: BTreeMap::new(),
            },
            unwritten_best: None,
            heads: HeadsToWatch::ALL,
            measured: None,
            started: Instant::now(),
            seconds_before: 0.0,
            timed: Instant::now(),
            timed_step: 0,
            watching: Duration::ZERO,
        };
        let mut found = None;
        for which in run.checkpoints() {
            let restored = run
                .checkpoint(which)
                .and_then(|checkpoint| Ok((training.restore(&checkpoint)?, checkpoint)));
            match restored {
                Ok(restored) => {
                    found = Some(restored);
                    break;
                }
                // A newer program has gone on with this run: what it wrote must not be undone.
                Err(error) if error.kind() == ErrorKind::Version => {
                    return Err(Stopped::Refused(error));
                }
                Err(error) => training
                    .progress
                    .say(&format!("warning: a checkpoint cannot be used: {error}")),
            }
        }
        training.check_origin().map_err(Stopped::Refused)?;
        run.cut_logs(&training.state.logs)?;
        let checkpoint = found.as_ref().map(|(_, checkpoint)| checkpoint);
        restore::share(ranks, setup.data(setup.task.files()), checkpoint)?;
        let asked = setup.config.log.heads.as_ref();
        let model = if let Some((model, _)) = found {
            training.heads = HeadsToWatch::of_run(asked, run)?;
            training
                .progress
                .say(&format!("going on after step {}", training.state.step));
            model
        } else {
            let measured = setup.measure(&setup.model, training.updater.cores())?;
            training.heads = HeadsToWatch::of(asked, measured.probe());
            let measured = training.heads.seen(measured);
            if setup.config.model.from.is_some() {
                // The roles that the heads of the model have do not emerge here.
                let (state, probe) = (&mut training.state, measured.probe());
                let _ = events::role_events(&mut state.roles, 0, probe);
                let _ = events::range_events(&mut state.ranges, 0, probe);
            }
            training.write_measured(&setup.model, measured, None)?;
            training.write_patterns_and_uses(&setup.model)?;
            setup.model.clone()
        };
        // The clock of training starts after the first measurement.
        training.started = Instant::now();
        training.timed = training.started;
        training.timed_step = training.state.step;
        training.watching = Duration::ZERO;
        training.progress.begin_after(training.state.step);
        Ok((training, model))
    }

    /// Takes the place of a checkpoint and gives its model, or changes nothing.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<Decoder, Error> {
        let state = &checkpoint.state;
        let (step, steps) = (state.step, self.setup.config.train.steps);
        let place = self.run.path().display();
        let unusable = |reason: UnusableCheckpoint| {
            let message = format_args!("checkpoint of step {step}: {reason}");
            Error::damaged(&place, message).caused_by(reason)
        };
        if step > steps {
            return Err(unusable(UnusableCheckpoint::TooLate(steps)));
        }
        let model = restored(self.setup, &mut self.updater, checkpoint).map_err(unusable)?;
        self.seconds_before = state.seconds;
        self.state = state.clone();
        Ok(model)
    }

    /// Other programs and other devices compute other bits: they must not go on with this run, nor
    /// begin it again.
    fn check_origin(&self) -> Result<(), Error> {
        let CheckpointState {
            version, device, ..
        } = &self.state;
        for (what, then, now) in [
            ("version", version, VERSION),
            ("device", device, &self.setup.device_name),
        ] {
            if then != now {
                let message = format!(
                    "was begun with {what} {then} and can only be resumed with that, not with {now}"
                );
                let place = self.run.path().display();
                return Err(Error::of(ErrorKind::Version, place, message));
            }
        }
        Ok(())
    }

    /// Trains to the end.
    pub fn run(mut self, mut model: Decoder) -> Result<Summary, Stopped> {
        while !self.state.ended {
            model = self.step(model)?;
            if interrupt::requested() && !self.state.ended {
                self.write_checkpoint(Weights::Step(self.state.step), &model)?;
                self.writer.finish()?;
                self.progress.finish();
                return Err(Stopped::Interrupted {
                    run: self.run.path().to_owned(),
                    step: self.state.step,
                });
            }
        }
        self.write_checkpoint(Weights::Last, &model)?;
        self.writer.finish()?;
        self.progress.finish();
        let measured = match self.measured.take() {
            Some(measured) => measured,
            // The writer is gone, so `self` is no longer whole.
            None => self
                .heads
                .seen(self.setup.measure(&model, self.updater.cores())?),
        };
        // Training may have ended before the last step that was allowed.
        let (steps, seconds) = (self.state.step, self.state.seconds);
        let summary = self.setup.summary(&measured, steps, seconds);
        self.run.write_summary(&summary)?;
        Ok(summary)
    }

    /// One update, and what is due after it.
    fn step(&mut self, mut model: Decoder) -> Result<Decoder, Stopped> {
        let config = &self.setup.config;
        let step = self.state.step + 1;
        let sequences = self.setup.batch_of(step);
        let rate = learning_rate(&config.train, step);
        let gradient =
            self.updater
                .gradient_over(self.ranks, &model, &sequences, self.setup.pass_of(step));
        if !gradient.is_finite() {
            let not_finite = self.not_finite(&model, step, &gradient, &sequences);
            return Err(self.diverged(not_finite, rate));
        }
        let update = gradient.update;
        model = self.updater.apply(model, gradient, rate);
        self.state.step = step;
        tracing::debug!(
            step,
            loss = update.loss,
            gradient_norm = update.gradient_norm,
            learning_rate = rate
        );

        let is_last = step == config.train.steps;
        let patterns_due = is_last || step.is_multiple_of(config.log.patterns_every);
        let mut is_moment = false;
        self.state.ended = is_last;
        if patterns_due || step.is_multiple_of(config.log.every) {
            let made = MadeUpdate {
                update,
                learning_rate: rate,
            };
            let measured = self.measure(&model)?;
            if !measured.evaluation.loss.is_finite() {
                let loss = measured.evaluation.loss;
                let not_finite = self.weights_not_finite(&model, loss, update, &sequences);
                return Err(self.diverged(not_finite, rate));
            }
            let has_events = self.write_measured(&model, measured, Some(made))?;
            is_moment = has_events || moments::is_spaced(step, config.log.every);
            if let Some(reason) = self.reason_to_end() {
                self.progress
                    .say(&format!("step {step}: training ends: {reason}"));
                self.state.ended = true;
            }
        }
        if patterns_due || self.state.ended {
            self.write_patterns_and_uses(&model)?;
        } else if is_moment {
            self.write_moment()?;
        }
        if step.is_multiple_of(config.checkpoint.every) && !self.state.ended {
            if !non_finite::is_finite_model(&model) {
                let not_finite = self.weights_not_finite(&model, update.loss, update, &sequences);
                return Err(self.diverged(not_finite, rate));
            }
            self.write_checkpoint(Weights::Step(step), &model)?;
            tracing::info!(step, "checkpoint");
        }
        self.progress.step(step);
        Ok(model)
    }

    /// Measures the model as it is, and the heads that are watched.
    fn measure(&self, model: &Decoder) -> Result<Measured, Error> {
        let measured = self.setup.measure(model, self.updater.cores())?;
        Ok(self.heads.seen(measured))
    }

    /// Writes what the model is like now, and says whether a head took on a role or lost one.
    fn write_measured(
        &mut self,
        model: &Decoder,
        measured: Measured,
        made: Option<MadeUpdate>,
    ) -> Result<bool, Error> {
        let step = self.state.step;
        let mut has_events = false;
        self.watching += measured.watching;
        measured.write(self.run, step, made)?;
        self.compare_with_best(model, measured.evaluation.loss);
        if let Some(MadeUpdate { update, .. }) = made {
            let tokens = self.setup.tokens_per_step() * (step - self.timed_step) as f64;
            let tokens_per_second = tokens / self.timed.elapsed().as_secs_f64();
            self.timed = Instant::now();
            self.timed_step = step;
            let watching = take(&mut self.watching).as_secs_f64();
            self.run.append_timing(&TimingRow {
                step,
                seconds: self.seconds(),
                tokens_per_second,
                watching,
            })?;
            let probe = measured.probe();
            let evaluation = &measured.evaluation;
            self.progress
                .measured(step, update.loss, evaluation, probe, tokens_per_second);
            let mut happened = events::role_events(&mut self.state.roles, step, probe);
            happened.extend(events::range_events(&mut self.state.ranges, step, probe));
            has_events = !happened.is_empty();
            for event in happened {
                self.progress.say(&events::in_words(&event));
                self.run.append_event(&event)?;
            }
        }
        self.measured = Some(measured);
        Ok(has_events)
    }

    fn compare_with_best(&mut self, model: &Decoder, validation: f64) {
        // Whatever can be measured is better than what could not.
        if self
            .state
            .best
            .is_none_or(|best| validation < best.validation || best.validation.is_nan())
        {
            self.state.best = Some(Best {
                step: self.state.step,
                validation,
            });
            self.state.measured_since_best = 0;
            self.unwritten_best = Some(model.clone());
        } else {
            self.state.measured_since_best += 1;
        }
    }

    /// Why what was just measured is the end of training, if it is.
    fn reason_to_end(&self) -> Option<String> {
        let TrainConfig {
            stop_when,
            patience,
            ..
        } = &self.setup.config.train;
        let evaluation = &self.measured.as_ref()?.evaluation;
        let value_of = |quantity| match quantity {
            Quantity::Accuracy => evaluation.accuracy,
            Quantity::Exact => evaluation.exact,
            Quantity::Validation => evaluation.loss,
        };
        let target = stop_when
            .filter(|target| target.is_reached(value_of))
            .map(|target| target.to_string());
        let waited = patience.filter(|&patience| self.state.measured_since_best >= patience);
        let waited =
            waited.map(|waited| format!("no lower validation loss in {waited} measurements"));
        target.or(waited)
    }

    fn write_patterns_and_uses(&mut self, model: &Decoder) -> Result<(), Stopped> {
        let begun = Instant::now();
        self.write_patterns()?;
        let Some(measured) = &self.measured else {
            return Ok(());
        };
        let (step, cores) = (self.state.step, self.updater.cores());
        let uses = self
            .setup
            .uses(model, measured, step, self.state.ended, cores)?;
        self.run.append_uses(&uses)?;
        self.watching += begun.elapsed();
        Ok(())
    }

    /// Keeps the patterns of what was just measured, if there is room for them.
    fn write_moment(&mut self) -> Result<(), Stopped> {
        let Some(measured) = &self.measured else {
            return Ok(());
        };
        let observations = measured.observations.iter();
        let patterns: Vec<_> = observations.map(|seen| &seen.patterns).collect();
        let most = self.setup.config.log.moments_megabytes;
        if moments::has_room(self.state.moments, &patterns, most) {
            self.state.moments += 1;
            self.write_patterns()?;
        }
        Ok(())
    }

    /// Leaves the patterns of what was measured last to the writer.
    fn write_patterns(&mut self) -> Result<(), Stopped> {
        let Some(measured) = &self.measured else {
            return Ok(());
        };
        let step = self.state.step;
        let mut patterns = Vec::new();
        for observation in &measured.observations {
            patterns.push((observation.kind, observation.patterns.clone()));
        }
        self.writer.write(move |run| {
            for (kind, patterns) in &patterns {
                run.write_patterns(step, *kind, patterns)?;
            }
            Ok(())
        })
    }

    /// Copies everything that training goes on from, and leaves it to the writer.
    fn write_checkpoint(&mut self, which: Weights, model: &Decoder) -> Result<(), Stopped> {
        let Memory { tensors, counts } = self.updater.memory();
        let optimizer = tensors_to_bytes(&tensors).map_err(|error| {
            Error::because(ErrorKind::Internal, self.run.path().display(), error)
        })?;
        self.state.counts = counts;
        self.state.seconds = self.seconds();
        self.state.logs = self.run.log_lengths()?;
        // The best first: whoever is killed between the two goes on from an older checkpoint and
        // writes it again.
        self.write_best()?;
        let checkpoint = Checkpoint {
            state: self.state.clone(),
            weights: self.bytes(model)?,
            optimizer,
        };
        let keep = self.setup.config.checkpoint.keep;
        self.writer.write(move |run| {
            run.write_checkpoint(which, &checkpoint)?;
            keep.map_or(Ok(()), |keep| {
                run.forget_checkpoints(checkpoint.state.step, keep)
            })
        })
    }

    /// Leaves the best weights to the writer, where `best/` holds older ones.
    fn write_best(&mut self) -> Result<(), Stopped> {
        let Some(best) = self.unwritten_best.take() else {
            return Ok(());
        };
        let weights = self.bytes(&best)?;
        let state = CheckpointState {
            seconds: self.seconds(),
            ..self.state.clone()
        };
        self.writer
            .write(move |run| run.write_best(&state, &weights))
    }

    fn bytes(&self, model: &Decoder) -> Result<Vec<u8>, Error> {
        weights_to_bytes(&model.valid())
            .map_err(|error| Error::because(ErrorKind::Internal, self.run.path().display(), error))
    }

    /// Wall time of training so far.
    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    /// Ends training whose numbers went wrong: the last row of the metrics says so, and the best
    /// weights stay to be looked at.
    fn diverged(&mut self, not_finite: NotFinite, learning_rate: f64) -> Stopped {
        self.progress.finish();
        let row = MetricsRow {
            step: not_finite.step,
            loss: Some(not_finite.loss),
            validation: f64::NAN,
            accuracy: f64::NAN,
            exact: f64::NAN,
            in_context: None,
            training_accuracy: None,
            breakdown: BTreeMap::new(),
            learning_rate: Some(learning_rate),
            gradient_norm: Some(not_finite.gradient_norm),
        };
        let written = self.run.append_metrics(&row).map_err(Stopped::from);
        match written.and_then(|()| self.write_best()) {
            Ok(()) => not_finite.into(),
            Err(error) => error,
        }
    }

    /// The weights after the update of `sequences` are no numbers, or lead to none.
    fn weights_not_finite(
        &self,
        model: &Decoder,
        loss: f64,
        update: Update,
        sequences: &[Sequence],
    ) -> NotFinite {
        let activation = non_finite::first_activation(model, sequences, &self.setup.device);
        let (row, tensor) = activation.map_or_else(
            || (None, "a weight or the validation loss".to_owned()),
            |(row, tensor)| (Some(row), tensor),
        );
        NotFinite {
            run: self.run.path().to_owned(),
            step: self.state.step,
            loss,
            gradient_norm: update.gradient_norm,
            tensor,
            seed: self.setup.config.seed,
            row,
        }
    }

    /// Which numbers went wrong, and where.
    fn not_finite(
        &self,
        model: &Decoder,
        step: usize,
        gradient: &Gradient,
        sequences: &[Sequence],
    ) -> NotFinite {
        let Update {
            loss,
            gradient_norm,
        } = gradient.update;
        let activation = non_finite::first_activation(model, sequences, &self.setup.device);
        let (row, tensor) = if let Some((row, tensor)) = activation {
            (Some(row), tensor)
        } else {
            let alone =
                |row: &[Sequence]| !self.updater.gradient(model, row, Pass::Plain).is_finite();
            let tensor = non_finite::first_gradient(model, &gradient.gradients);
            (
                sequences.chunks(1).position(alone),
                tensor.unwrap_or_else(|| "the norm of the gradient".to_owned()),
            )
        };
        NotFinite {
            run: self.run.path().to_owned(),
            step,
            loss,
            gradient_norm,
            tensor,
            seed: self.setup.config.seed,
            row,
        }
    }
}
