//! All that the report of a run shows, as plain rows and numbers.

use headlight_heads::{
    Ablation, HeadName, Interval, Measure, Relation, Role, RoleCheck, RoleRange, RoleRate,
    ScoreName, Scores, SequenceKind, role_rate::POPULATION,
};
use headlight_run::{Answers, Breakdown, EventRow, Left, MetricsRow, SeedsSummary, UsesRow};
use serde::{Deserialize, Serialize};

use crate::{Bytes, CircuitData, Floats, HeadGroup, ProgramData, WalkData, WhyOfHeads};

/// A run as its report shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportData {
    /// What came out, in sentences; the page begins with them.
    pub finding: Vec<String>,
    /// The head that they speak of first.
    pub headline: Option<HeadName>,
    /// The heads that the page begins with; it fills them in.
    pub first: Vec<HeadGroup>,
    /// The run.
    pub run: RunFacts,
    /// What was measured while training.
    pub metrics: Vec<MetricsRow>,
    /// What the heads' scores mean.
    pub measures: Vec<MeasureText>,
    /// What happened when.
    pub events: Vec<EventRow>,
    /// The heads and what they look like at the end, first layer first.
    pub heads: Vec<(HeadName, Role)>,
    /// The steps of [`scores`](Self::scores).
    pub steps: Vec<usize>,
    /// Every score of every head over training.
    pub scores: Vec<ScoreSeries>,
    /// Patterns over training.
    pub patterns: Vec<PatternSet>,
    /// `[head]`: scores on the probe with its tokens shuffled, at the places that the unshuffled
    /// tokens give.
    pub shuffled: Vec<Scores>,
    /// How each head follows the gold relations of the task at the end; empty where it has none.
    pub relations: Vec<RelationSeen>,
    /// The heads without which surely fewer answers to the task's own questions are right, the one
    /// that costs most first.
    pub answers_lost: Vec<AnswersLost>,
    /// What the heads are used as, over training; most of it at the end.
    pub uses: Vec<UsesRow>,
    /// `[head]`: where it holds roles, how surely, and how much it writes, at the end.
    pub positions: Vec<HeadPositions>,
    /// Accuracy on the task position by position, with and without each head, at the end; none where
    /// there are too many heads.
    pub accuracy_by_position: Option<AccuracyByPosition>,
    /// Random sets beside the heads of each role, at the end.
    pub controls: Vec<Control>,
    /// `[head]`: what its weights say of tokens.
    pub circuits: Vec<HeadPairs>,
    /// The program that the model was compiled from, if it was.
    pub program: Option<ProgramData>,
    /// What runs that differ in the seed alone have in common, where this is one of several.
    pub seeds: Option<SeedsSummary>,
    /// The residual stream.
    pub stream: Option<StreamData>,
    /// One sequence's numbers on their way through every head.
    pub walk: Option<WalkData>,
    /// Why the heads look where they look, where the stream is a sum.
    pub why: Option<WhyOfHeads>,
    /// Through which edges the continuation of what came before runs, for each kind of pairs.
    pub edges: Vec<CircuitData>,
    /// What the page does not show, and why.
    pub left_out: Vec<String>,
}

/// The run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The directory's name.
    pub name: String,
    /// The task's name.
    pub task: String,
    /// What the model is made of, in one line.
    pub model: String,
    /// The resolved configuration, TOML.
    pub config: String,
    /// Everything random followed from it.
    pub seed: u64,
    /// Of the program that wrote the report.
    pub version: String,
    /// Where it was trained.
    pub device: String,
    /// Updates done.
    pub steps: usize,
    /// The steps whose weights were kept, the last step among them: `inspect --at` opens them.
    pub checkpoints: Vec<usize>,
    /// The sequences that loss and accuracy are measured on.
    pub validation: usize,
    /// Wall time of training.
    pub seconds: f64,
    /// Tokens trained on per second.
    pub tokens_per_second: f64,
    /// Validation loss at the end, nats.
    pub loss: f64,
    /// Validation accuracy at the end, on the positions that the task scores.
    pub accuracy: f64,
    /// What the best predictor pays that knows the task and what is scored, nats.
    pub floor: Option<f64>,
    /// The accuracy of guessing.
    pub chance: f64,
    /// The accuracy that the best predictor is expected to reach which knows the task and what is
    /// scored.
    pub best_accuracy: Option<f64>,
    /// Accuracy at the end on the task's own kinds of questions.
    pub breakdown: Breakdown,
    /// How many keys up to itself a query sees, if not all.
    pub window: Option<usize>,
}

/// What a score means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureText {
    /// Its name.
    pub name: String,
    /// How it is computed.
    pub formula: String,
    /// What a head with a high score does.
    pub does: String,
    /// Whether it can be a head's role.
    pub is_role: bool,
    /// How often heads of known programs falsely look like it, and how much of a head must do it until
    /// it is found; nothing of a score without such numbers.
    pub rate: Option<String>,
}

impl From<ScoreName> for MeasureText {
    fn from(score: ScoreName) -> Self {
        Self {
            name: score.name().to_owned(),
            formula: score.formula().to_owned(),
            does: score.does().to_owned(),
            is_role: matches!(score, ScoreName::Measure(_)),
            rate: match score {
                ScoreName::Measure(measure) => RoleRate::of(measure).map(rate_text),
                _ => None,
            },
        }
    }
}

/// `Falsely found in 0 of 50 programs …`
fn rate_text(rate: &RoleRate) -> String {
    format!(
        "Falsely found in {} of {} programs (95 % interval of the rate {} to {:.3}), of {POPULATION}. A planted head that \
         does it at a share of queries, and attends evenly at the others, is found from {} % on, and surely from {} % on.",
        rate.programs_with_false,
        rate.programs,
        rate.low,
        rate.high,
        rate.found_from(),
        rate.sure_from(),
    )
}

/// One score of all heads over training, on one kind of sequences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreSeries {
    /// The sequences.
    pub on: SequenceKind,
    /// The score's name, or that of a relation.
    pub name: String,
    /// What uniform attention scores on the same rows.
    pub null: f64,
    /// The largest value there is.
    pub ceiling: f64,
    /// `[step][head][value, low, high]`: the mean and its 95 % interval.
    pub values: Floats,
}

impl ScoreSeries {
    /// Value, low and high of the `head`-th of `heads` heads at the `step`-th step.
    pub(crate) fn at(&self, step: usize, head: usize, heads: usize) -> Option<[f32; 3]> {
        let at = 3 * (step * heads + head);
        self.values.0.get(at..at + 3)?.try_into().ok()
    }
}

/// How the heads follow one gold relation on the task's sequences at the end of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationSeen {
    /// Its name.
    pub name: String,
    /// The pairs of words that the scores are means over.
    pub pairs: usize,
    /// What evenly spread attention scores on the same pairs.
    pub uniform: f64,
    /// `[head]`
    pub heads: Vec<Option<RelationOfHead>>,
}

/// How one head follows one relation: the weight from a word to its source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelationOfHead {
    /// The mean over the pairs.
    pub value: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What the head gives at the same distances to words that are no source.
    pub distance: Option<f64>,
    /// What it gives to the same places when the tokens are shuffled.
    pub shuffled: Option<f64>,
    /// It passed half of its way from evenly spread attention to `value` after the first of these
    /// steps and by the second, and never fell back; nothing where it does not follow the relation, or
    /// did from the first measurement on.
    pub since: Option<(usize, usize)>,
}

impl RelationOfHead {
    /// Whether the lower end of the interval stands above every null.
    #[must_use]
    pub fn is_above_nulls(&self, uniform: f64) -> bool {
        self.low - self.value + self.above_nulls(uniform) > 0.0
    }

    /// How far the score stands above the highest null.
    #[must_use]
    pub fn above_nulls(&self, uniform: f64) -> f64 {
        let nulls = [Some(uniform), self.distance, self.shuffled];
        self.value - nulls.into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Right answers to one kind of question with and without a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswersLost {
    /// The head that is off, its mean in its place.
    pub head: HeadName,
    /// The kind of question.
    pub kind: String,
    /// The share of right answers of the model as it is.
    pub untouched: f64,
    /// The share without the head.
    pub without: f64,
    /// The 95 % interval of the share without it.
    pub interval: Interval,
    /// Questions of this kind.
    pub count: usize,
}

impl AnswersLost {
    /// If the intervals of both shares lie apart, the share without the head below.
    ///
    /// ```
    /// use headlight_report::AnswersLost;
    /// use headlight_run::Answers;
    ///
    /// let head = "L1H2".parse().unwrap();
    /// let right = |accuracy| Answers { accuracy, count: 100 };
    /// let lost = AnswersLost::of(head, "agreement", right(0.98), right(0.70)).unwrap();
    /// assert!((lost.share() - 0.28).abs() < 1e-12);
    /// // 98 and 95 of 100 may be chance.
    /// assert!(AnswersLost::of(head, "agreement", right(0.98), right(0.95)).is_none());
    /// ```
    #[must_use]
    pub fn of(head: HeadName, kind: &str, untouched: Answers, without: Answers) -> Option<Self> {
        let [before, left] = [untouched, without].map(interval);
        left.is_below(before).then(|| Self {
            head,
            kind: kind.to_owned(),
            untouched: untouched.accuracy,
            without: without.accuracy,
            interval: left,
            count: without.count,
        })
    }

    /// The share of right answers that is lost.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.untouched - self.without
    }
}

/// Of the share of right answers.
fn interval(Answers { accuracy, count }: Answers) -> Interval {
    Interval::of_share((accuracy * count as f64).round() as usize, count)
}

/// The patterns of all heads on one sequence over training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatternSet {
    /// The sequence's kind.
    pub on: SequenceKind,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Which of its tokens depends on which, where the task knows that.
    pub relations: Vec<Relation>,
    /// When patterns were kept.
    pub steps: Vec<usize>,
    /// For each of these steps `[head][query][key ≤ query]`, weight · 255 rounded: what lies above
    /// the diagonal is always masked and not written.
    pub weights: Vec<Bytes>,
    /// `[head][key]`: the norm of the value that each head reads from each token, at the last step.
    pub value_norms: Option<Floats>,
}

/// Where one head holds roles on the probe, and how much it writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadPositions {
    /// The positions at which it holds a role.
    pub ranges: Vec<RoleRange>,
    /// How sure its role is, where it has one.
    pub check: Option<RoleCheck>,
    /// rms(result − mean)/rms(stream).
    pub writes: Option<f64>,
    /// For its role and the roles of its ranges: the score at each query position, NaN where no
    /// sequence has a target.
    pub scores: Vec<(Measure, Floats)>,
}

/// Accuracy on the task at each position, at the end of training. NaN where too few targets are
/// scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyByPosition {
    /// The validation sequences that it is measured on.
    pub sequences: usize,
    /// What stands in place of a head that is off.
    pub by: Ablation,
    /// `[position][accuracy, low, high]` of the model as it is.
    pub untouched: Floats,
    /// `[head][position][accuracy, low, high]` without it.
    pub without: Vec<Floats>,
    /// `[position]`: the accuracy that the best predictor is expected to reach, where it is known.
    pub best: Option<Floats>,
}

/// As many heads as a role has, from the same layers, drawn at random from those that no test marks
/// as needed, ablated together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The role whose heads these stand beside.
    pub role: Role,
    /// The heads drawn.
    pub heads: Vec<HeadName>,
    /// What is left without them.
    pub left: Left,
}

/// The largest entries of one head's circuits over tokens, the largest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadPairs {
    /// Of `W_E·W_QK·W_Eᵀ`: query token, key token, entry.
    pub qk: Vec<(String, String, f64)>,
    /// Of `W_E·W_OV·W_U`: token looked at, token made likelier, entry.
    pub ov: Vec<(String, String, f64)>,
}

/// The residual stream: what each part writes, and what could be read from it on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamData {
    /// Each part's name and the mean norm of its rows.
    pub norms: Vec<(String, f64)>,
    /// Each part's name and what it adds to the right token's logit above the mean logit, if parts
    /// add up.
    pub logits: Option<Vec<(String, f64)>>,
    /// The logit lens over many sequences, in the order of the stream: place, what is left, mean
    /// norm of the stream.
    pub depths: Vec<(String, Left, f64)>,
    /// The logit lens on one sequence.
    pub lens: LensData,
}

/// What the unembedding reads from the stream at each depth and position of one sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LensData {
    /// The inputs.
    pub tokens: Vec<String>,
    /// What comes next.
    pub targets: Vec<String>,
    /// Whether the task scores it.
    pub scored: Vec<bool>,
    /// The places, in the order of the stream.
    pub depths: Vec<String>,
    /// `[depth][position]`: the probability of what comes next.
    pub right: Floats,
    /// `[depth][position]`: the likeliest token.
    pub likeliest: Vec<Vec<String>>,
    /// `[depth][position]`: its probability.
    pub confidence: Floats,
}
