//! The rows a run writes, one JSON object a line.

use std::collections::BTreeMap;

use headlight_heads::{
    HeadName, RelationScores, Role, RoleCheck, RoleEvent, RoleRange, Scores, SequenceKind, number,
};
use serde::{Deserialize, Serialize};

/// A line of `metrics.jsonl`. Losses in nats over the positions that the task scores.
///
/// A run that diverges has a last row whose loss is no number. It stands there as
/// [text](headlight_heads::number), since JSON has no NaN, and so do all accuracies of that row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRow {
    /// Updates done.
    pub step: usize,
    /// On the batch of this step, before its update; at step 0 there is none.
    #[serde(default, with = "number::optional")]
    pub loss: Option<f64>,
    /// On the validation batch, always the same.
    #[serde(with = "number")]
    pub validation: f64,
    /// The share of scored positions of the validation batch whose likeliest token is right.
    #[serde(with = "number")]
    pub accuracy: f64,
    /// The share of validation sequences whose scored targets are all right.
    #[serde(default, with = "number")]
    pub exact: f64,
    /// The in-context score: the loss on the last quarter of the scored positions minus that on the
    /// first, where there are enough.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub in_context: Option<f64>,
    /// The accuracy on the training set, where that is finite.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub training_accuracy: Option<f64>,
    /// Accuracy on the task's own kinds of questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breakdown: Breakdown,
    /// Of this step's update.
    #[serde(default, with = "number::optional")]
    pub learning_rate: Option<f64>,
    /// The norm of the whole gradient before clipping.
    #[serde(default, with = "number::optional")]
    pub gradient_norm: Option<f64>,
}

impl MetricsRow {
    /// Whether the model was one: with weights that are no numbers, its loss is none either.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.validation.is_finite()
    }
}

/// A line of `timing.jsonl`: what depends on the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingRow {
    /// Updates done.
    pub step: usize,
    /// Since the process started training.
    pub seconds: f64,
    /// Since the row before.
    pub tokens_per_second: f64,
    /// Seconds since the row before that went into watching heads: their patterns, their scores,
    /// what they are used as.
    pub watching: f64,
}

/// The share of right answers to one kind of question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Questions answered rightly, over all.
    #[serde(with = "number")]
    pub accuracy: f64,
    /// Questions.
    pub count: usize,
}

/// Answers by the kind of question.
pub type Breakdown = BTreeMap<String, Answers>;

/// A line of `heads.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadRow {
    /// Updates done.
    pub step: usize,
    /// The sequences.
    pub on: SequenceKind,
    /// The head.
    pub head: HeadName,
    /// Its role, read on the probe only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Every score that the sequences allow.
    pub scores: Scores,
    /// The positions at which the head holds a role, on the probe only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RoleRange>,
    /// How sure the role is, where the head has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<RoleCheck>,
    /// The root mean square of what the head writes, its mean taken off, over that of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<f64>,
    /// Scores against the gold relations that the sequences have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: RelationScores,
}

/// A line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Updates done when it was seen.
    pub step: usize,
    /// What happened.
    pub event: RoleEvent,
    /// To which head.
    pub head: HeadName,
    /// The role it took on or lost.
    pub role: Role,
    /// The score of that role at this step.
    #[serde(with = "number")]
    pub value: f64,
    /// The first and the last query of the range, where only a range of positions emerged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<(usize, usize)>,
}

/// `summary.json`: what other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The [format](crate::FORMAT) of the run.
    #[serde(default = "crate::directory::first_format")]
    pub format: u32,
    /// The task's name.
    pub task: String,
    /// Where it was trained.
    pub device: String,
    /// Updates done.
    pub steps: usize,
    /// Wall time of training.
    pub seconds: f64,
    /// Tokens trained on per second.
    pub tokens_per_second: f64,
    /// Validation loss at the end, nats.
    #[serde(with = "number")]
    pub loss: f64,
    /// Validation accuracy at the end, on the positions the task scores.
    #[serde(with = "number")]
    pub accuracy: f64,
    /// The share of validation sequences whose scored targets are all right.
    #[serde(default, with = "number")]
    pub exact: f64,
    /// What the best predictor pays on the validation batch that knows the task and which positions
    /// are scored, nats; none where nobody knows it, as for natural text.
    #[serde(default, with = "number::optional")]
    pub floor: Option<f64>,
    /// What the best predictor pays that knows the task only, nats; none where nobody knows it.
    #[serde(default, with = "number::optional")]
    pub bayes: Option<f64>,
    /// The accuracy that the best predictor is expected to reach on the validation batch which knows
    /// the task and which positions are scored; none where nobody knows it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub best_accuracy: Option<f64>,
    /// The accuracy of guessing.
    pub chance: f64,
    /// Accuracy at the end on the task's own kinds of questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breakdown: Breakdown,
    /// The heads at the end, on the probe.
    pub heads: Vec<HeadSummary>,
}

/// A head in `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadSummary {
    /// The head.
    pub head: HeadName,
    /// Its role.
    pub role: Role,
    /// Its scores on the probe.
    pub scores: Scores,
    /// The positions at which it holds a role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RoleRange>,
    /// How sure its role is, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<RoleCheck>,
    /// The root mean square of what it writes, its mean taken off, over that of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<f64>,
}
