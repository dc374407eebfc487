//! `inspect RUN heads`: what the heads look like, beside all that this is measured against, and
//! what they are used as.

use std::path::Path;

use headlight_heads::{
    HeadName, Measure, RelationScores, Role, Score, ScoreName, Scores, SequenceKind,
    role_rate::POPULATION,
};
use headlight_lens::ShuffledContext;
use headlight_report::{
    HeadLine, Printout, Table, heads_table, measures_as_told, or_dash, relations_table,
    with_interval,
};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadRow, HeadSummary, UsesRow};
use headlight_watch::{WATCHED_SEQUENCES, Watched, each_layer};
use serde::Serialize;

use super::{
    Comparison, ModelParts, Need, Output, Subject, Verb, comparison_printout, print,
    uses::uses_printout,
};

/// Every head: its role, its scores, and what they are measured against
#[derive(Debug, clap::Args)]
pub struct HeadsVerb;

impl Verb for HeadsVerb {
    const NAME: &'static str = "heads";
    const NEEDS: &'static [Need] = &[Need::Logs];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        if out.is_text() {
            return print(&subject.heads_printout()?.draw(&out.terminal));
        }
        out.show(&subject.heads()?, |_| Printout::new())
    }

    fn compare(self, runs: &Comparison, out: &Output) -> Result<(), Error> {
        out.show(&runs.data(Path::new("."))?, comparison_printout)
    }
}

/// A head as `inspect heads --json` prints it: as in `summary.json`, with one more null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectedHead {
    /// What the summary says.
    #[serde(flatten)]
    pub summary: HeadSummary,
    /// Scores that ask tokens, at the same places of the probe when its tokens are shuffled.
    #[serde(skip_serializing_if = "Scores::is_empty")]
    pub shuffled: Scores,
    /// The gold relations of the task at the same places when its tokens are shuffled.
    #[serde(skip_serializing_if = "RelationScores::is_empty")]
    pub shuffled_relations: RelationScores,
}

/// What every head scores on the shuffled tokens of some sequences, first layer first; nothing where
/// the run has no weights.
#[derive(Debug, Default)]
pub(super) struct Shuffled {
    pub heads: Vec<(HeadName, Scores)>,
    pub relations: Vec<RelationScores>,
}

impl Shuffled {
    /// As lines of the table of heads.
    fn lines(&self) -> Vec<HeadLine> {
        let line = |(head, scores): &(HeadName, Scores)| HeadLine {
            head: *head,
            role: None,
            used_as: None,
            scores: scores.clone(),
            ranges: Vec::new(),
            check: None,
            writes: None,
        };
        self.heads.iter().map(line).collect()
    }
}

impl Subject {
    /// The heads on the probe with their roles, and on the run's own task.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn heads_printout(&self) -> Result<Printout, Error> {
        if self.trained().is_err() {
            return self.heads_of_model_printout();
        }
        let rows = self.head_rows_here()?;
        let last = rows.iter().map(|row| row.step).max().unwrap_or(0);
        let uses = self
            .logged_uses()?
            .into_iter()
            .rfind(|uses| uses.step == last);
        let [probe_shuffled, task_shuffled] = self.shuffled_heads();
        let table = |kind, shuffled: &Shuffled| {
            let mut before = Vec::new();
            if last > 0 {
                before = lines(&rows, 0, kind, None);
            }
            let references = [("shuffled", shuffled.lines()), ("step 0", before)];
            let heads = lines(&rows, last, kind, uses.as_ref());
            heads_table(&score_names(), &heads, &references)
        };
        let probe = format!(
            "Heads after {last} steps, on the probe: {WATCHED_SEQUENCES} sequences in which a block of random tokens, \
             of random length and start, comes back."
        );
        let task = format!(
            "The same heads on {}. A task can make a head look like what it is not.",
            self.own_sequences()
        );
        let distances = format!(
            "Mean attention distance by layer in tokens, on the probe {}, on the task {}.",
            distances_text(&lines(&rows, last, SequenceKind::Probe, None)),
            distances_text(&lines(&rows, last, SequenceKind::Task, None)),
        );
        let printout = Printout::new()
            .prose(probe)
            .table(table(SequenceKind::Probe, &probe_shuffled))
            .prose(task)
            .table(table(SequenceKind::Task, &task_shuffled))
            .prose(format!(
                "{TABLE} step 0: the highest of all heads before training. {}",
                false_roles_text()
            ))
            .prose(ranges_text(&false_ranges_text(&rows, last), &rows, last))
            .printout(uses.as_ref().map(uses_printout).unwrap_or_default())
            .prose(distances);
        Ok(printout.printout(relations_printout(&rows, last, &task_shuffled.relations)))
    }

    /// The heads of a model that was not trained here: on the probe alone.
    fn heads_of_model_printout(&self) -> Result<Printout, Error> {
        let ModelParts { model, .. } = self.model()?;
        let observed = self.probe()?.observe(&model, &self.device)?;
        let mut rows = observed.rows(0);
        if self.is_on_text() {
            rows.extend(self.on_task()?.observe(&model, &self.device)?.rows(0));
        }
        let all = lines(&rows, 0, SequenceKind::Probe, None);
        let (shown, left_out) = telling(&all);
        let shuffled = [("shuffled", self.shuffled_probe().lines())];
        Ok(Printout::new()
            .prose(format!(
                "Heads of {}, on the probe: {WATCHED_SEQUENCES} sequences in which a block of random ordinary tokens, of \
                 random length and start, comes back.",
                self.path().display()
            ))
            .table(heads_table(&score_names(), &shown, &shuffled))
            .prose(left_out)
            .printout(self.same_heads_printout(&shown, &rows))
            .prose(format!("{TABLE} {}", false_roles_text()))
            .prose(ranges_text("", &rows, 0))
            .prose(
                "Mean attention distance by layer, over all its heads and all queries but the first, in tokens. \
                 Interval: 95 %, bootstrap over sequences.",
            )
            .table(distance_table(&observed.distances))
            .prose("What a head is used as is told by `ablate`, `paths` and `swap`."))
    }

    /// The heads that are shown, on a text; nothing without one.
    fn same_heads_printout(&self, shown: &[HeadLine], rows: &[HeadRow]) -> Printout {
        if !self.is_on_text() {
            return Printout::new();
        }
        let mut here = lines(rows, 0, SequenceKind::Task, None);
        here.retain(|line| shown.iter().any(|shown| shown.head == line.head));
        here.sort_by_key(|line| shown.iter().position(|shown| shown.head == line.head));
        Printout::new()
            .prose(format!("The same heads on {}.", self.task_name()))
            .table(heads_table(&score_names(), &here, &[]))
    }

    /// The heads of the summary, with what they score on shuffled tokens.
    ///
    /// # Errors
    /// If a file of the run cannot be read.
    pub fn heads(&self) -> Result<Vec<InspectedHead>, Error> {
        let [probe, task] = self.shuffled_heads();
        let head = |(index, summary): (usize, HeadSummary)| InspectedHead {
            summary,
            shuffled: probe
                .heads
                .get(index)
                .map(|(_, scores)| scores.clone())
                .unwrap_or_default(),
            shuffled_relations: task.relations.get(index).cloned().unwrap_or_default(),
        };
        let summaries = if self.is_at_the_end() {
            self.summary()?.heads
        } else {
            let ModelParts { model, .. } = self.model()?;
            self.probe()?.observe(&model, &self.device)?.summaries()
        };
        Ok(summaries.into_iter().enumerate().map(head).collect())
    }

    /// The rows of `heads.jsonl`; where the weights are not those of the end, the rows of step 0
    /// and those of this point, measured anew.
    fn head_rows_here(&self) -> Result<Vec<HeadRow>, Error> {
        let mut rows = self.head_rows()?;
        if !self.is_at_the_end() {
            let is_before = |row: &HeadRow| row.step == 0;
            // What was measured before training on the task says nothing of a text.
            let is_of_here = |row: &HeadRow| row.on == SequenceKind::Probe || !self.is_on_text();
            rows.retain(|row| is_before(row) && is_of_here(row));
            rows.extend(self.measured_rows()?);
        }
        Ok(rows)
    }

    fn measured_rows(&self) -> Result<Vec<HeadRow>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let step = self.step()?.unwrap_or(0);
        let mut rows = Vec::new();
        for watched in [self.probe()?, self.on_task()?] {
            rows.extend(watched.observe(&model, &self.device)?.rows(step));
        }
        Ok(rows)
    }

    /// On the probe and on the task: one more forward pass each.
    pub(super) fn shuffled_heads(&self) -> [Shuffled; 2] {
        let both = || {
            let ModelParts { model, .. } = self.model()?;
            let probe = self.shuffled_on(&model, &self.probe()?)?;
            Ok([probe, self.shuffled_on(&model, &self.on_task()?)?])
        };
        or_without(both())
    }

    /// On the probe alone.
    pub(super) fn shuffled_probe(&self) -> Shuffled {
        let probe = || self.shuffled_on(&self.model()?.model, &self.probe()?);
        or_without(probe())
    }

    fn shuffled_on(&self, model: &Decoder, watched: &Watched) -> Result<Shuffled, Error> {
        let start = watched.has_start;
        let context =
            ShuffledContext::with_start(&watched.tokens, &watched.relations, self.seed(), start);
        let contexts = context.contexts();
        let mut shuffled = Shuffled::default();
        each_layer(model, contexts, &self.device, start, false, |seen| {
            let scores = context.scores(seen.pattern).into_iter().enumerate();
            let layer = seen.layer;
            let named = scores.map(|(head, scores)| (HeadName { layer, head }, scores));
            shuffled.heads.extend(named);
            shuffled
                .relations
                .extend(context.relation_scores(seen.pattern));
        })?;
        Ok(shuffled)
    }
}

/// Scores in a run's files are shown whether or not its weights can be read, so that an error here
/// only leaves the null out.
fn or_without<T: Default>(shuffled: Result<T, Error>) -> T {
    shuffled.unwrap_or_else(|error| {
        tracing::warn!("without scores on shuffled tokens: {error}");
        T::default()
    })
}

/// What the numbers of a table of heads are.
const TABLE: &str = "value±half of the 95 % interval; uniform: what even attention scores on the same rows; shuffled: \
     the highest of all heads at the same places when the tokens are shuffled, so that no match is there (with few tokens \
     some stay; those are left out). A role is the score furthest on the way from uniform to ceiling, if past half.";

/// What the row below the ceiling says.
fn false_roles_text() -> String {
    format!(
        "false: of {POPULATION}, the upper end of the 95 % interval of the share in which a head looks like the role \
         and must not. Trained models are another population."
    )
}

/// So many heads are all shown.
const MOST_SHOWN: usize = 32;
/// Of more, so many of each role.
const MOST_OF_A_ROLE: usize = 8;

/// Of many heads those that tell most first: of each role the heads that are furthest on the way to
/// its ceiling, if that is sure. With a sentence on the heads that are left out.
fn telling(heads: &[HeadLine]) -> (Vec<HeadLine>, String) {
    if heads.len() <= MOST_SHOWN {
        return (heads.to_vec(), String::new());
    }
    let mut shown = Vec::new();
    let mut more = Vec::new();
    let mut with_a_role = 0;
    for measure in measures_as_told() {
        let mut of_role: Vec<&HeadLine> = Vec::new();
        for line in heads {
            let is_sure = line.check.is_some_and(|check| check.is_sure);
            if line.role == Some(Role::Of(measure)) && is_sure {
                of_role.push(line);
            }
        }
        let value = |line: &HeadLine| line.scores[&ScoreName::from(measure)].value;
        of_role.sort_by(|a, b| value(b).total_cmp(&value(a)));
        with_a_role += of_role.len();
        let left = of_role.len().saturating_sub(MOST_OF_A_ROLE);
        if left > 0 {
            more.push(format!("{left} more of {}", measure.name()));
        }
        shown.extend(of_role.into_iter().take(MOST_OF_A_ROLE).cloned());
    }
    more.push(format!("{} without a sure role", heads.len() - with_a_role));
    let left_out = format!(
        "Left out: {}; --json has all {} heads.",
        more.join(", "),
        heads.len()
    );
    (shown, left_out)
}

/// What the column of roles says beside the role; `false_ranges` is a sentence on ranges that cannot
/// be true.
fn ranges_text(false_ranges: &str, rows: &[HeadRow], step: usize) -> String {
    format!(
        "Positions behind a role: queries, counted from 0, at which the score is surely past half of the way, eight or \
         more in a row; found on half of the sequences and confirmed on the rest. {false_ranges} ?: the role is not \
         sure, with {} looked at (false discovery rate 0.05). writes: root mean square of what a head writes, its mean \
         taken off, over that of the stream.",
        heads_and_measures_text(rows, step),
    )
}

/// How many ranges were found before training, when none can be true.
fn false_ranges_text(rows: &[HeadRow], last: usize) -> String {
    let before = rows.iter().filter(|row| row.step == 0);
    let count: usize = before.map(|row| row.ranges.len()).sum();
    match count {
        _ if last == 0 => String::new(),
        0 => "At step 0 there were none.".to_owned(),
        1 => "At step 0 there was 1, a false one.".to_owned(),
        count => format!("At step 0 there were {count}, all false."),
    }
}

/// `8 heads and 5 measures`
fn heads_and_measures_text(rows: &[HeadRow], last: usize) -> String {
    let on_probe = |row: &&HeadRow| row.step == last && row.on == SequenceKind::Probe;
    let heads = rows.iter().filter(on_probe).count();
    format!("{heads} heads and {} measures", Measure::all().len())
}

/// The heads at one step on one kind of sequences; what they are used as where `uses` has it.
fn lines(
    rows: &[HeadRow],
    step: usize,
    kind: SequenceKind,
    uses: Option<&UsesRow>,
) -> Vec<HeadLine> {
    let mut lines = Vec::new();
    for row in rows {
        if row.step != step || row.on != kind {
            continue;
        }
        let mut used_as = None;
        if let (Some(uses), Some(_)) = (uses, row.role) {
            used_as = Some(or_dash(uses.used_as(row.head)));
        }
        lines.push(HeadLine {
            head: row.head,
            role: row.role,
            used_as,
            scores: row.scores.clone(),
            ranges: row.ranges.clone(),
            check: row.check,
            writes: row.writes,
        });
    }
    lines
}

/// A row for each layer.
fn distance_table(layers: &[Score]) -> Table {
    let row = |(layer, distance): (usize, &Score)| {
        vec![
            layer.to_string(),
            with_interval(distance.value, distance.interval, 2),
            format!("{:.1}", distance.null),
            format!("{:.1}", distance.ceiling),
        ]
    };
    let rows = layers.iter().enumerate().map(row);
    Table::new(&["layer", "distance", "uniform", "at most"], rows)
}

/// `11.2 8.6 12.9 (uniform 15.8)`
fn distances_text(lines: &[HeadLine]) -> String {
    let distances = |layer| -> Vec<f64> {
        let of_layer = lines.iter().filter(|line| line.head.layer == layer);
        of_layer
            .filter_map(|line| line.scores.get(&ScoreName::MeanDistance))
            .map(|score| score.value)
            .collect()
    };
    let layers = (0..)
        .map(distances)
        .take_while(|distances| !distances.is_empty());
    let means: Vec<String> = layers
        .map(|distances| {
            format!(
                "{:.1}",
                distances.iter().sum::<f64>() / distances.len() as f64
            )
        })
        .collect();
    let uniform = lines
        .iter()
        .find_map(|line| line.scores.get(&ScoreName::MeanDistance))
        .map_or(f64::NAN, |score| score.null);
    format!("{} (uniform {uniform:.1})", means.join(" "))
}

/// The heads' scores against the task's gold relations, or nothing.
fn relations_printout(rows: &[HeadRow], step: usize, shuffled: &[RelationScores]) -> Printout {
    let here = rows
        .iter()
        .filter(|row| row.step == step && row.on == SequenceKind::Task);
    let heads: Vec<_> = here.map(|row| (row.head, &row.relations)).collect();
    if heads.iter().all(|(_, relations)| relations.is_empty()) {
        return Printout::new();
    }
    Printout::new()
        .prose(
            "The weight from a word, and from the word before it (next …), to the word it depends on:",
        )
        .table(relations_table(&heads, shuffled))
        .prose(
            "distance: the most that any head gives at the same distances to words that are no source; shuffled: the \
             most that any head gives to the same places when other words stand there.",
        )
}

/// The scores of tables, in their order.
pub(super) fn score_names() -> Vec<ScoreName> {
    Measure::all().into_iter().map(ScoreName::from).collect()
}
