//! What `inspect` shows of a finished run.

mod causal;
mod circuits;
mod curves;
mod detect;
mod explorer;
mod export;
mod generate;
mod heads;
mod learn;
mod lens;
mod offsets;
mod patch;
mod pattern;
mod phases;
mod picture_files;
mod relations;
mod report;
mod swap;
mod uses;

use std::path::Path;

use burn::tensor::Device;
use headlight_lens::{MEAN_DISTANCE, Measure, Role};
use headlight_report::{HeadLine, heads_table, relations_table};
use headlight_residual::Decoder;
use headlight_run::{
    Answers, Breakdown, Config, HeadRow, HeadSummary, InputError, MetricsRow, RelationScores, RunDirectory,
    SequenceKind, Summary, Weights,
};
use serde::Serialize;

use crate::{
    evaluate::{evaluate, questions},
    model, tasks,
    watch::{WATCHED_SEQUENCES, Watched},
};

pub use causal::{Ablations, Path as CausalPath, Paths, Without};
pub use circuits::{ChosenHead, CircuitTables, ComposedHeads, HeadCircuits, NamedDirection, TokenTable};
pub use curves::{curves_picture, head_curves_picture, head_curves_text};
pub use detect::{DetectedHead, detect_text};
pub use export::ExportFormat;
pub use generate::Written;
pub use heads::InspectedHead;
pub use learn::write_learn_page;
pub use lens::Lens;
pub use offsets::{HeadOffsets, offsets_text};
pub use patch::Patch;
pub use pattern::HeadPattern;
pub use phases::Phases;
pub use picture_files::{Picture, PictureFiles};
pub use relations::{RelationHead, RelationHeads};
pub use report::report_after_training;
pub use swap::{Swapped, swaps_text};
use uses::uses_text;

/// A run opened to be looked at.
pub struct Inspection {
    run: RunDirectory,
    config: Config,
    device: Device,
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
    /// Accuracy on the task's own kinds of questions.
    pub breakdown: Breakdown,
    /// The heads' scores on that task; roles are read on the probe.
    pub heads: Vec<HeadSummary>,
}

impl Inspection {
    /// Opens the run at `path`.
    ///
    /// # Errors
    /// If it is not a run.
    pub fn open(path: &Path, device: &str) -> Result<Self, InputError> {
        let run = RunDirectory::open(path)?;
        let config = run.config()?;
        Ok(Self { run, config, device: crate::device::open(device)? })
    }

    /// The summary that training wrote.
    ///
    /// # Errors
    /// If training has not ended.
    pub fn summary(&self) -> Result<Summary, InputError> {
        self.run.summary()
    }

    /// The heads as text: on the probe with their roles, and on the run's own task.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn heads_text(&self) -> Result<String, InputError> {
        let rows = self.run.heads()?;
        let last = rows.iter().map(|row| row.step).max().unwrap_or(0);
        let uses = self.run.uses()?.into_iter().rfind(|uses| uses.step == last);
        let lines = |step, kind| {
            let of = |row: &&HeadRow| row.step == step && row.on == kind;
            let line = |row: &HeadRow| HeadLine {
                head: row.head,
                role: row.role.clone(),
                used_as: uses
                    .as_ref()
                    .filter(|uses| row.role.is_some() && uses.step == step)
                    .map(|uses| uses.used_as(row.head)),
                scores: row.scores.clone(),
            };
            rows.iter().filter(of).map(line).collect::<Vec<_>>()
        };
        let shuffled = self.shuffled_heads();
        let table = |kind| {
            let before = if last > 0 { lines(0, kind) } else { Vec::new() };
            let references = [("shuffled", shuffled.lines(kind)), ("step 0", before)];
            heads_table(&score_names(), &lines(last, kind), &references)
        };
        Ok(format!(
            "Heads after {last} steps, on the probe: {WATCHED_SEQUENCES} sequences in which a block of random tokens, of random\n\
             length and start, comes back.\n\n{}\n\n\
             The same heads on the run's own task, {}. A task can make a head look like what it is not.\n\n{}\n\n\
             value±half of the 95 % interval; uniform: what even attention scores on the same rows; shuffled: the\n\
             highest of all heads at the same places when the tokens are shuffled, so that no match is there (with few tokens\n\
             some stay; those are left out); step 0: the highest of all heads before training. A role is the score furthest\n\
             on the way from uniform to ceiling, if past half.\n\n\
             {}\n\n\
             Mean attention distance by layer in tokens, on the probe {}, on the task {}.{}",
            table(SequenceKind::Probe),
            self.config.task.name(),
            table(SequenceKind::Task),
            uses.as_ref().map_or_else(String::new, uses_text),
            distances_text(&lines(last, SequenceKind::Probe)),
            distances_text(&lines(last, SequenceKind::Task)),
            relations_text(&rows, last, &shuffled.relations),
        ))
    }

    /// What was measured while training.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn metrics(&self) -> Result<Vec<MetricsRow>, InputError> {
        self.run.metrics()
    }

    /// Every score of every head while training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>, InputError> {
        self.run.heads()
    }

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
            let message =
                format!("has {} tokens, the model was trained on {} others", task.vocabulary().len(), vocabulary.len());
            return Err(InputError::new(place, message).key("task").value(other.task.name()));
        }
        if other.model.n_ctx > self.config.model.n_ctx {
            let message = format!("is longer than the model's {}", self.config.model.n_ctx);
            return Err(InputError::new(place, message).key("model.n_ctx").value(other.model.n_ctx));
        }
        let sequences = tasks::validation(&*task, other.seed);
        let evaluation = evaluate(&model, &sequences, &questions(&*task, &sequences), &self.device);
        let on_task = Watched::task(&*task, &sequences).observe(&model, &self.device);
        let probe = Watched::probe(vocabulary.len(), self.config.model.n_ctx, self.config.seed);
        let roles = probe.observe(&model, &self.device);
        let heads = on_task.heads.into_iter().zip(&roles.heads).map(|((head, scores), (_, on_probe))| HeadSummary {
            head,
            role: Role::of(on_probe).name().to_owned(),
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

    fn model(&self) -> Result<ModelParts, InputError> {
        let model = model::load(&self.run, &self.config, Weights::Last, &self.device)?;
        Ok(ModelParts { model, vocabulary: self.run.vocabulary()? })
    }
}

struct ModelParts {
    model: Decoder,
    vocabulary: Vec<String>,
}

impl Elsewhere {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |head: &HeadSummary| HeadLine {
            head: head.head,
            role: Some(head.role.clone()),
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
    format!("loss {loss:.4} nats, perplexity {:.2} ({floor})", loss.exp())
}

/// A line for each kind of question, or nothing.
#[must_use]
pub fn breakdown_text(breakdown: &Breakdown) -> String {
    let width = breakdown.keys().map(|kind| kind.chars().count()).max().unwrap_or(0);
    let line =
        |(kind, answers): (&String, &Answers)| format!("\n{kind:width$}  {:.4} of {}", answers.accuracy, answers.count);
    let lines: String = breakdown.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\nRight answers:{lines}\n") }
}

/// `11.2 8.6 12.9 (uniform 15.8)`
fn distances_text(lines: &[HeadLine]) -> String {
    let distances = |layer| -> Vec<f64> {
        let of_layer = lines.iter().filter(|line| line.head.layer == layer);
        of_layer.filter_map(|line| line.scores.get(MEAN_DISTANCE)).map(|score| score.value).collect()
    };
    let layers = (0..).map(distances).take_while(|distances| !distances.is_empty());
    let means: Vec<String> =
        layers.map(|distances| format!("{:.1}", distances.iter().sum::<f64>() / distances.len() as f64)).collect();
    let uniform = lines.iter().find_map(|line| line.scores.get(MEAN_DISTANCE)).map_or(f64::NAN, |score| score.null);
    format!("{} (uniform {uniform:.1})", means.join(" "))
}

/// The heads' scores against the task's gold relations, or nothing.
fn relations_text(rows: &[HeadRow], step: usize, shuffled: &[RelationScores]) -> String {
    let here = rows.iter().filter(|row| row.step == step && row.on == SequenceKind::Task);
    let heads: Vec<_> = here.map(|row| (row.head, &row.relations)).collect();
    match relations_table(&heads, shuffled) {
        table if table.is_empty() => table,
        table => format!(
            "\n\nThe weight from a word, and from the word before it (next …), to the word it depends on:\n\n{table}\n\n\
             distance: the most that any head gives at the same distances to words that are no source; shuffled: the most\n\
             that any head gives to the same places when other words stand there."
        ),
    }
}

fn score_names() -> [&'static str; 5] {
    Measure::ALL.map(Measure::name)
}
