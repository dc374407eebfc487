//! The measurements at one step: of the model as it is, and of its heads.

use std::time::{Duration, Instant};

use burn::module::Module;
use headlight_heads::{Ablation, HeadName};
use headlight_residual::Decoder;
use headlight_run::{Error, FORMAT, MetricsRow, RunDirectory, Summary, UsesRow};
use headlight_tasks::Sequence;
use headlight_watch::{Cores, Evaluation, Observation, Watched, evaluate, interchange, uses};

use crate::{Setup, step::Update};

/// The measurements at one step.
pub(crate) struct Measured {
    pub evaluation: Evaluation,
    pub training_accuracy: Option<f64>,
    /// On the probe, on the task.
    pub observations: Vec<Observation>,
    /// The time that the observations took.
    pub watching: Duration,
}

/// An update and its learning rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MadeUpdate {
    pub update: Update,
    pub learning_rate: f64,
}

impl Measured {
    /// On the probe, where roles are read.
    pub fn probe(&self) -> &Observation {
        &self.observations[0]
    }

    /// The same of some heads alone.
    pub fn only(mut self, heads: &[HeadName]) -> Self {
        let of_heads = |seen: Observation| seen.only(heads);
        self.observations = self.observations.into_iter().map(of_heads).collect();
        self
    }

    /// Writes the rows of this step; the first step of all has no update before it.
    pub fn write(
        &self,
        run: &RunDirectory,
        step: usize,
        made: Option<MadeUpdate>,
    ) -> Result<(), Error> {
        run.append_metrics(&MetricsRow {
            step,
            loss: made.map(|made| made.update.loss),
            validation: self.evaluation.loss,
            accuracy: self.evaluation.accuracy,
            exact: self.evaluation.exact,
            in_context: self.evaluation.in_context,
            training_accuracy: self.training_accuracy,
            breakdown: self.evaluation.breakdown.clone(),
            learning_rate: made.map(|made| made.learning_rate),
            gradient_norm: made.map(|made| made.update.gradient_norm),
        })?;
        for observation in &self.observations {
            run.append_heads(&observation.rows(step))?;
        }
        Ok(())
    }
}

impl Setup {
    /// Measures the model on the validation sequences, and watches its heads on probe and task.
    pub(crate) fn measure(&self, model: &Decoder, cores: &Cores) -> Result<Measured, Error> {
        let model = model.valid();
        let mut evaluation = evaluate(
            &model,
            &self.validation.sequences,
            &self.validation.questions,
            &self.device,
            cores,
        );
        if let Some(interchange) = &self.interchange {
            let sequences = &self.validation.sequences;
            let swapped = interchange.measure(&model, sequences, &self.device, cores)?;
            evaluation
                .breakdown
                .extend(interchange::breakdown(&swapped));
        }
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
    pub(crate) fn uses(
        &self,
        model: &Decoder,
        measured: &Measured,
        step: usize,
        at_the_end: bool,
        cores: &Cores,
    ) -> Result<UsesRow, Error> {
        let (model, probe) = (model.valid(), measured.probe());
        if self.config.log.heads.is_some() {
            let behaviour = uses::behaviour(
                &self.validation.sequences,
                uses::OF_A_LARGE_MODEL,
                &self.device,
            );
            return uses::uses_of_some_heads(&model, &behaviour, probe, step, cores);
        }
        if at_the_end {
            let behaviour =
                uses::behaviour(&self.validation.sequences, uses::SEQUENCES, &self.device);
            return uses::all_uses(&model, &behaviour, probe, step, Ablation::Mean, cores);
        }
        let sequences = uses::sequences_while_training(&self.config);
        uses::watch_uses(
            &model,
            &uses::behaviour(&self.validation.sequences, sequences, &self.device),
            probe,
            step,
            cores,
        )
    }

    /// `summary.json` after `steps` updates, which took so many seconds.
    pub(crate) fn summary(&self, measured: &Measured, steps: usize, seconds: f64) -> Summary {
        Summary {
            format: FORMAT,
            task: self.config.task.name().to_owned(),
            device: self.device_name.clone(),
            steps,
            seconds,
            tokens_per_second: self.tokens_per_step() * steps as f64 / seconds,
            loss: measured.evaluation.loss,
            accuracy: measured.evaluation.accuracy,
            exact: measured.evaluation.exact,
            floor: self.floor,
            bayes: self.bayes,
            best_accuracy: self.validation.best_accuracy(),
            chance: self.task.chance(),
            breakdown: measured.evaluation.breakdown.clone(),
            heads: measured.probe().summaries(),
        }
    }
}
