//! The rows a run writes, one JSON object a line.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A head, written `L0H1`: the second head of the first layer.
///
/// ```
/// use headlight_run::HeadName;
///
/// let head: HeadName = "L1H2".parse()?;
/// assert_eq!((head.layer, head.head), (1, 2));
/// assert_eq!("H2".parse::<HeadName>().unwrap_err().to_string(), "H2 is no head, heads are written L0H1");
/// # Ok::<(), headlight_run::NotAHead>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadName {
    /// The block, counted from 0.
    pub layer: usize,
    /// The head in it, counted from 0.
    pub head: usize,
}

impl fmt::Display for HeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("L{}H{}", self.layer, self.head))
    }
}

/// A text that names no head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no head, heads are written L0H1")]
pub struct NotAHead(String);

impl FromStr for HeadName {
    type Err = NotAHead;

    fn from_str(text: &str) -> Result<Self, NotAHead> {
        let parse = || {
            let (layer, head) = text.strip_prefix('L')?.split_once('H')?;
            Some(Self {
                layer: layer.parse().ok()?,
                head: head.parse().ok()?,
            })
        };
        // One spelling for each head: no L0H01, no L+0H1.
        parse()
            .filter(|head| head.to_string() == text)
            .ok_or_else(|| NotAHead(text.to_owned()))
    }
}

impl Serialize for HeadName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HeadName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A line of `metrics.jsonl`. Losses in nats over the positions that the task scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsRow {
    /// Updates done.
    pub step: usize,
    /// On the batch of this step, before its update; at step 0 there is none.
    pub loss: Option<f64>,
    /// On the validation batch, always the same.
    pub validation: f64,
    /// The share of scored positions of the validation batch whose likeliest token is right.
    pub accuracy: f64,
    /// The share of validation sequences whose scored targets are all right.
    #[serde(default)]
    pub exact: f64,
    /// The in-context score: the loss on the last quarter of the scored positions minus that on the
    /// first, where there are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_context: Option<f64>,
    /// The accuracy on the training set, where that is finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_accuracy: Option<f64>,
    /// Accuracy on the task's own kinds of questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breakdown: Breakdown,
    /// Of this step's update.
    pub learning_rate: Option<f64>,
    /// The norm of the whole gradient before clipping.
    pub gradient_norm: Option<f64>,
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

/// A head score: never a number alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The mean over all rows the score speaks of.
    pub value: f64,
    /// What uniform attention scores on the same rows.
    pub null: f64,
    /// The largest value there is.
    pub ceiling: f64,
    /// The lower end of the 95 % interval, by bootstrap over sequences.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Scores by name.
pub type Scores = BTreeMap<String, Score>;

/// A score against a gold relation, beside both of its nulls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelationScore {
    /// The weight from the dependent word to its source; its null is uniform attention.
    #[serde(flatten)]
    pub score: Score,
    /// What the same head gives at the same distance to words that are no source.
    pub distance_null: f64,
    /// How many pairs of words the means are over.
    pub rows: usize,
}

/// Relation scores by name.
pub type RelationScores = BTreeMap<String, RelationScore>;

/// The share of right answers to one kind of question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Questions answered rightly, over all.
    pub accuracy: f64,
    /// Questions.
    pub count: usize,
}

/// Answers by the kind of question.
pub type Breakdown = BTreeMap<String, Answers>;

/// On which sequences a head was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceKind {
    /// The jittered `repeat` task over the model's own vocabulary: here roles are read.
    Probe,
    /// The model's own task.
    Task,
}

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
    pub role: Option<String>,
    /// Every score that the sequences allow.
    pub scores: Scores,
    /// Scores against the gold relations that the sequences have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: RelationScores,
}

/// A line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Updates done when it was seen.
    pub step: usize,
    /// What happened: `role_emerged` or `role_lost`.
    pub event: String,
    /// To which head.
    pub head: HeadName,
    /// The role it took on or lost.
    pub role: String,
    /// The score of that role at this step.
    pub value: f64,
}

/// `summary.json`: what other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
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
    pub loss: f64,
    /// Validation accuracy at the end, on the positions the task scores.
    pub accuracy: f64,
    /// The share of validation sequences whose scored targets are all right.
    #[serde(default)]
    pub exact: f64,
    /// What the best predictor pays on the validation batch that knows the task and which positions
    /// are scored, nats; none where nobody knows it, as for natural text.
    pub floor: Option<f64>,
    /// What the best predictor pays that knows the task only, nats; none where nobody knows it.
    pub bayes: Option<f64>,
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
    pub role: String,
    /// Its scores on the probe.
    pub scores: Scores,
}
