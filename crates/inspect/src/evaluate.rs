//! `inspect RUN evaluate`: a trained model on its own task or on another.

use std::path::Path;

use headlight_heads::Role;
use headlight_report::{HeadLine, heads_table};
use headlight_run::{Answers, Breakdown, Config, ErrorKind, HeadSummary, InputError};
use headlight_tasks as tasks;
use headlight_watch::{Cores, Watched, evaluate, questions};
use serde::Serialize;

use super::{Inspection, ModelParts, heads::score_names};

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
    /// Accuracy on the task's own kinds of questions.
    pub breakdown: Breakdown,
    /// The heads' scores on that task; roles are read on the probe.
    pub heads: Vec<HeadSummary>,
}

impl Inspection {
    /// Runs the trained model on the task of another configuration or, without one, on its own.
    ///
    /// # Errors
    /// If that task has other tokens or longer sequences than the model knows.
    pub fn evaluate(&self, on: Option<&Path>) -> Result<Elsewhere, InputError> {
        let other = match on {
            Some(on) => Config::load(on, &[])?,
            None => self.config.clone(),
        };
        let ModelParts { model, vocabulary } = self.model()?;
        let task = tasks::build(&other.task, other.model.n_ctx, other.seed)?;
        let place = on.unwrap_or_else(|| self.run.path()).display();
        if task.vocabulary() != vocabulary {
            let message = format!(
                "has {} tokens, the model was trained on {} others",
                task.vocabulary().len(),
                vocabulary.len()
            );
            return Err(InputError::of(ErrorKind::Config, place, message)
                .key("task")
                .value(other.task.name()));
        }
        if other.model.n_ctx > self.config.model.n_ctx {
            let message = format!("is longer than the model's {}", self.config.model.n_ctx);
            return Err(InputError::of(ErrorKind::Config, place, message)
                .key("model.n_ctx")
                .value(other.model.n_ctx));
        }
        let sequences = tasks::validation(&*task, other.seed);
        let evaluation = evaluate(
            &model,
            &sequences,
            &questions(&*task, &sequences),
            &self.device,
            Cores::all(),
        );
        let on_task = Watched::task(&*task, &sequences).observe(&model, &self.device)?;
        let probe = Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed);
        let roles = probe.observe(&model, &self.device)?;
        let heads =
            on_task
                .heads
                .into_iter()
                .zip(&roles.heads)
                .map(|((head, scores), (_, on_probe))| HeadSummary {
                    head,
                    role: Role::of(on_probe),
                    scores,
                });
        Ok(Elsewhere {
            on: place.to_string(),
            task: other.task.name().to_owned(),
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
            exact: evaluation.exact,
            floor: tasks::mean_known(&sequences, |sequence| task.floor_losses(sequence)),
            chance: task.chance(),
            breakdown: evaluation.breakdown,
            heads: heads.collect(),
        })
    }
}

impl Elsewhere {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |head: &HeadSummary| HeadLine {
            head: head.head,
            role: Some(head.role),
            used_as: None,
            scores: head.scores.clone(),
        };
        let lines: Vec<HeadLine> = self.heads.iter().map(line).collect();
        format!(
            "On {} ({}): accuracy {:.4} (chance {:.4}), {}\n{}\n{}\n\n\
             Scores are on this task, roles are read on the probe.",
            self.on,
            self.task,
            self.accuracy,
            self.chance,
            loss_text(self.loss, self.floor),
            breakdown_text(&self.breakdown),
            heads_table(&score_names(), &lines, &[])
        )
    }
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
pub fn breakdown_text(breakdown: &Breakdown) -> String {
    let width = breakdown
        .keys()
        .map(|kind| kind.chars().count())
        .max()
        .unwrap_or(0);
    let line = |(kind, answers): (&String, &Answers)| {
        format!(
            "\n{kind:width$}  {:.4} of {}",
            answers.accuracy, answers.count
        )
    };
    let lines: String = breakdown.iter().map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\nRight answers:{lines}\n")
    }
}
