//! `inspect RUN evaluate`: a trained model on its own task or on another.

use std::path::{Path, PathBuf};

use headlight_report::{HeadLine, Printout, Table, heads_table};
use headlight_residual::Decoder;
use headlight_run::{Answers, Breakdown, Error, ErrorKind, HeadSummary};
use headlight_tasks::Validation;
use headlight_watch::{Cores, Watched, evaluate, task};
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb, heads::score_names};

/// The trained model on its own task, or on the task of another configuration
#[derive(Debug, clap::Args)]
pub struct EvaluateVerb {
    /// The configuration that names the other task
    #[arg(long)]
    on: Option<PathBuf>,
}

impl Verb for EvaluateVerb {
    const NAME: &'static str = "evaluate";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.evaluate(self.on.as_deref())?, Elsewhere::printout)
    }
}

/// A trained model on another task, as `inspect evaluate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Elsewhere {
    /// The configuration that names the task.
    pub on: String,
    /// The task's name.
    pub task: String,
    /// Mean over scored positions, nats.
    pub loss: f64,
    /// On scored positions.
    pub accuracy: f64,
    /// The share of sequences whose scored targets are all right.
    pub exact: f64,
    /// The lowest loss any predictor can reach on these sequences, where it is known.
    pub floor: Option<f64>,
    /// The accuracy of guessing.
    pub chance: f64,
    /// The accuracy that the best predictor is expected to reach on these sequences, where it is
    /// known.
    pub best_accuracy: Option<f64>,
    /// Accuracy on the task's own kinds of questions.
    pub breakdown: Breakdown,
    /// The heads' scores on that task; roles are read on the probe.
    pub heads: Vec<HeadSummary>,
}

impl Subject {
    /// Runs the trained model on the task of another configuration or, without one, on the run's
    /// own validation sequences.
    ///
    /// # Errors
    /// If that task has other tokens or longer sequences than the model knows, or its data is not
    /// there.
    pub fn evaluate(&self, on: Option<&Path>) -> Result<Elsewhere, Error> {
        if let Some(on) = on {
            return self.evaluate_on(on);
        }
        let measured = (self.validation()?, self.chance()?);
        let ModelParts { model, .. } = self.model()?;
        self.measured_on(&model, self.path(), self.task_name(), measured)
    }

    fn evaluate_on(&self, on: &Path) -> Result<Elsewhere, Error> {
        let other = self.tasks.load(on, &[])?;
        let ModelParts { model, vocabulary } = self.model()?;
        let task = task::build(&other, &self.tasks)?;
        if task.vocabulary().names_for(vocabulary.len()) != vocabulary {
            let message = format!(
                "has {} tokens, the model was trained on {} others",
                task.vocabulary().len(),
                vocabulary.len()
            );
            return Err(Error::of(ErrorKind::Config, on.display(), message)
                .key("task")
                .value(other.task.name()));
        }
        if other.model.n_ctx > self.n_ctx() {
            let message = format!("is longer than the model's {}", self.n_ctx());
            return Err(Error::of(ErrorKind::Config, on.display(), message)
                .key("model.n_ctx")
                .value(other.model.n_ctx));
        }
        let validation = task.validation(other.seed);
        self.measured_on(&model, on, other.task.name(), (&validation, task.chance()))
    }

    fn measured_on(
        &self,
        model: &Decoder,
        on: &Path,
        task: &str,
        (validation, chance): (&Validation, f64),
    ) -> Result<Elsewhere, Error> {
        let evaluation = evaluate(
            model,
            &validation.sequences,
            &validation.questions,
            &self.device,
            Cores::all(),
        );
        let on_task = Watched::task(validation)
            .with_start(self.has_start()?)
            .observe(model, &self.device)?;
        let on_probe = self.probe()?.observe(model, &self.device)?;
        let mut heads = on_probe.summaries();
        for (summary, (_, on_task)) in heads.iter_mut().zip(on_task.heads) {
            summary.scores = on_task;
        }
        Ok(Elsewhere {
            on: on.display().to_string(),
            task: task.to_owned(),
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            exact: evaluation.exact,
            floor: validation.floor(),
            chance,
            best_accuracy: validation.best_accuracy(),
            breakdown: evaluation.breakdown,
            heads,
        })
    }
}

impl Elsewhere {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let line = |head: &HeadSummary| HeadLine {
            head: head.head,
            role: Some(head.role),
            used_as: None,
            scores: head.scores.clone(),
            ranges: head.ranges.clone(),
            check: head.check,
            writes: head.writes,
        };
        let lines: Vec<HeadLine> = self.heads.iter().map(line).collect();
        let answers = format!(
            "On {} ({}): {}, {}",
            self.on,
            self.task,
            accuracy_text(self.accuracy, self.chance, self.best_accuracy),
            loss_text(self.loss, self.floor)
        );
        Printout::new()
            .prose(answers)
            .printout(breakdown_printout(&self.breakdown))
            .table(heads_table(&score_names(), &lines, &[]))
            .prose("Scores are on this task, roles are read on the probe.")
    }
}

/// `accuracy 0.9963 (chance 0.0156, best possible 0.9993)`
#[must_use]
pub fn accuracy_text(accuracy: f64, chance: f64, best: Option<f64>) -> String {
    let best = best.map_or_else(String::new, |best| format!(", best possible {best:.4}"));
    format!("accuracy {accuracy:.4} (chance {chance:.4}{best})")
}

/// `loss 1.8000 nats, perplexity 6.05 (floor 1.7000 nats, perplexity 5.47)`
#[must_use]
pub fn loss_text(loss: f64, floor: Option<f64>) -> String {
    let floor = match floor {
        Some(floor) => format!("floor {floor:.4} nats, perplexity {:.2}", floor.exp()),
        None => "floor unknown".to_owned(),
    };
    format!(
        "loss {loss:.4} nats, perplexity {:.2} ({floor})",
        loss.exp()
    )
}

/// A line for each kind of question, or nothing.
#[must_use]
pub fn breakdown_printout(breakdown: &Breakdown) -> Printout {
    let line = |(kind, answers): (&String, &Answers)| {
        vec![
            kind.clone(),
            format!("{:.4}", answers.accuracy),
            answers.count.to_string(),
        ]
    };
    Printout::new().table(Table::new(
        &["right answers", "share", "of"],
        breakdown.iter().map(line),
    ))
}
