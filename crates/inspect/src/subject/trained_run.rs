//! A run of this trainer at one point of its training.

use std::path::Path;

use headlight_heads::{Measure, ScoreName};
use headlight_run::{Config, Error, ErrorKind, MetricsRow, RunDirectory, Weights};

/// A run, and the point of its training that is looked at.
pub(crate) struct TrainedRun {
    pub directory: RunDirectory,
    pub config: Config,
    /// `None` for a run without any weights.
    at: Option<Weights>,
    /// Whether somebody named the point.
    is_chosen: bool,
}

impl TrainedRun {
    /// The run at `path`: with the weights of the end, with those of the newest checkpoint if it was
    /// stopped, or with the best if it diverged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let directory = RunDirectory::open(path)?;
        let mut run = Self {
            config: directory.config()?,
            at: directory.newest_weights(),
            is_chosen: false,
            directory,
        };
        // What a run kept last before it diverged may be far from anything.
        let best = Weights::Best;
        let diverged = !run.directory.is_finished() && matches!(run.diverged(), Ok(Some(_)));
        if diverged && run.directory.weights(best).is_ok() {
            run.at = Some(best);
        }
        Ok(run)
    }

    /// The run with the weights of one point of its training.
    pub fn open_at(path: &Path, at: Weights) -> Result<Self, Error> {
        let run = Self::open(path)?;
        run.directory.weights(at)?;
        Ok(Self {
            at: Some(at),
            is_chosen: true,
            ..run
        })
    }

    /// A sentence for a person, where the weights are not those of the end of training.
    pub fn note(&self) -> Option<String> {
        if self.is_chosen || self.directory.is_finished() {
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
        let path = self.directory.path().display();
        let state = match self.diverged() {
            Ok(Some(step)) => format!("diverged: its loss at step {step} is no number"),
            _ => "has not ended".to_owned(),
        };
        Some(format!("{path} {state}; {which}"))
    }

    /// Whether the weights are those of a run that has ended, and its summary and its last rows
    /// speak of them and of every measure. Otherwise the model is measured anew.
    pub fn is_at_the_end(&self) -> bool {
        !self.is_chosen && self.directory.is_finished() && self.has_measured_all()
    }

    /// Whether the run was measured with every measure that the program has added.
    fn has_measured_all(&self) -> bool {
        let measures = Measure::all();
        let own = &measures[Measure::BUILT_IN.len()..];
        if own.is_empty() {
            return true;
        }
        let Ok(summary) = self.directory.summary() else {
            return true;
        };
        let known = |measure: &Measure| {
            let name = ScoreName::from(*measure);
            summary
                .heads
                .iter()
                .any(|head| head.scores.contains_key(&name))
        };
        own.iter().all(known)
    }

    /// The name of a point that somebody chose, as in `--at`.
    pub fn chosen(&self) -> Option<Weights> {
        self.at.filter(|_| self.is_chosen)
    }

    /// The updates that the weights had.
    pub fn step(&self) -> Result<usize, Error> {
        let at = self.at()?;
        let state = self.directory.state(at)?;
        Ok(match (at, state.best) {
            (Weights::Best, Some(best)) => best.step,
            _ => state.step,
        })
    }

    /// The point.
    pub fn at(&self) -> Result<Weights, Error> {
        let none = || {
            let message = format_args!(
                "has no weights: training stopped before its first checkpoint (checkpoint.every = {})",
                self.config.checkpoint.every
            );
            Error::of(ErrorKind::Missing, self.directory.path().display(), message)
        };
        self.at.ok_or_else(none)
    }

    /// The step at which training stopped because the loss was no number; `None` if it did not.
    pub fn diverged(&self) -> Result<Option<usize>, Error> {
        let rows = self.directory.metrics()?;
        let bad = rows.iter().find(|row: &&MetricsRow| !row.is_finite());
        Ok(bad.map(|row| row.step))
    }
}
