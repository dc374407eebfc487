//! `inspect RUN heads`: what the heads look like, beside all that this is measured against, and
//! what they are used as.

use headlight_heads::{HeadName, Measure, RelationScores, ScoreName, Scores, SequenceKind};
use headlight_lens::ShuffledContext;
use headlight_report::{HeadLine, Printout, heads_table, or_dash, relations_table};
use headlight_run::{Error, HeadRow, HeadSummary, UsesRow};
use headlight_watch::{Patterns, WATCHED_SEQUENCES, Watched};
use serde::Serialize;

use super::{ModelParts, Subject, uses::uses_printout};

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

/// What every head scores on shuffled tokens, first layer first; nothing where the run has no
/// weights.
#[derive(Debug, Default)]
pub(super) struct ShuffledHeads {
    /// On the probe.
    pub probe: Vec<(HeadName, Scores)>,
    task: Vec<(HeadName, Scores)>,
    /// On the task.
    pub relations: Vec<RelationScores>,
}

impl ShuffledHeads {
    /// As lines of the table of heads.
    pub fn lines(&self, kind: SequenceKind) -> Vec<HeadLine> {
        let heads = match kind {
            SequenceKind::Probe => &self.probe,
            SequenceKind::Task => &self.task,
        };
        let line = |(head, scores): &(HeadName, Scores)| HeadLine {
            head: *head,
            role: None,
            used_as: None,
            scores: scores.clone(),
            ranges: Vec::new(),
            check: None,
            writes: None,
        };
        heads.iter().map(line).collect()
    }
}

impl Subject {
    /// The heads on the probe with their roles, and on the run's own task.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn heads_printout(&self) -> Result<Printout, Error> {
        let rows = self.head_rows_here()?;
        let last = rows.iter().map(|row| row.step).max().unwrap_or(0);
        let uses = self.run.uses()?.into_iter().rfind(|uses| uses.step == last);
        let shuffled = self.shuffled_heads();
        let table = |kind| {
            let mut before = Vec::new();
            if last > 0 {
                before = lines(&rows, 0, kind, None);
            }
            let references = [("shuffled", shuffled.lines(kind)), ("step 0", before)];
            let heads = lines(&rows, last, kind, uses.as_ref());
            heads_table(&score_names(), &heads, &references)
        };
        let probe = format!(
            "Heads after {last} steps, on the probe: {WATCHED_SEQUENCES} sequences in which a block of random tokens, \
             of random length and start, comes back."
        );
        let task = format!(
            "The same heads on the run's own task, {}. A task can make a head look like what it is not.",
            self.config.task.name()
        );
        let distances = format!(
            "Mean attention distance by layer in tokens, on the probe {}, on the task {}.",
            distances_text(&lines(&rows, last, SequenceKind::Probe, None)),
            distances_text(&lines(&rows, last, SequenceKind::Task, None)),
        );
        let printout = Printout::new()
            .prose(probe)
            .table(table(SequenceKind::Probe))
            .prose(task)
            .table(table(SequenceKind::Task))
            .prose(
                "value±half of the 95 % interval; uniform: what even attention scores on the same rows; shuffled: \
                 the highest of all heads at the same places when the tokens are shuffled, so that no match is there \
                 (with few tokens some stay; those are left out); step 0: the highest of all heads before training. A \
                 role is the score furthest on the way from uniform to ceiling, if past half.",
            )
            .prose(format!(
                "Positions behind a role: queries, counted from 0, at which the score is surely past half of the way, \
                 eight or more in a row; found on half of the sequences and confirmed on the rest. {} ?: the role is \
                 not sure, with {} looked at (false discovery rate 0.05). writes: root mean square of what a head \
                 writes, its mean taken off, over that of the stream.",
                false_ranges_text(&rows, last),
                heads_and_measures_text(&rows, last),
            ))
            .printout(uses.as_ref().map(uses_printout).unwrap_or_default())
            .prose(distances);
        Ok(printout.printout(relations_printout(&rows, last, &shuffled.relations)))
    }

    /// The heads of the summary, with what they score on shuffled tokens.
    ///
    /// # Errors
    /// If a file of the run cannot be read.
    pub fn heads(&self) -> Result<Vec<InspectedHead>, Error> {
        let shuffled = self.shuffled_heads();
        let head = |(index, summary): (usize, HeadSummary)| InspectedHead {
            summary,
            shuffled: shuffled
                .probe
                .get(index)
                .map(|(_, scores)| scores.clone())
                .unwrap_or_default(),
            shuffled_relations: shuffled.relations.get(index).cloned().unwrap_or_default(),
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
        let mut rows = self.run.heads()?;
        if !self.is_at_the_end() {
            rows.retain(|row| row.step == 0);
            rows.extend(self.measured_rows()?);
        }
        Ok(rows)
    }

    fn measured_rows(&self) -> Result<Vec<HeadRow>, Error> {
        let ModelParts { model, .. } = self.model()?;
        let step = self.step()?;
        let mut rows = Vec::new();
        for watched in [self.probe()?, self.on_task()?] {
            rows.extend(watched.observe(&model, &self.device)?.rows(step));
        }
        Ok(rows)
    }

    /// One more forward pass on the probe and one on the task. Scores in the run's files are shown
    /// whether or not its weights can be read, so that an error here only leaves the null out.
    pub(super) fn shuffled_heads(&self) -> ShuffledHeads {
        self.try_shuffled_heads().unwrap_or_else(|error| {
            tracing::warn!("without scores on shuffled tokens: {error}");
            ShuffledHeads::default()
        })
    }

    fn try_shuffled_heads(&self) -> Result<ShuffledHeads, Error> {
        let ModelParts { model, .. } = self.model()?;
        let (probe, task) = (self.probe()?, self.on_task()?);
        let observe = |watched: &Watched| -> Result<_, Error> {
            let shuffled =
                ShuffledContext::new(&watched.tokens, &watched.relations, self.config.seed);
            let patterns = Patterns::of(&model, shuffled.contexts(), &self.device)?
                .with_start(watched.has_start);
            let (mut heads, mut relations) = (Vec::new(), Vec::new());
            for (layer, pattern) in patterns.layers().enumerate() {
                let named = |(head, scores)| (HeadName { layer, head }, scores);
                heads.extend(shuffled.scores(pattern).into_iter().enumerate().map(named));
                relations.extend(shuffled.relation_scores(pattern));
            }
            Ok((heads, relations))
        };
        let (probe, _) = observe(&probe)?;
        let (task, relations) = observe(&task)?;
        Ok(ShuffledHeads {
            probe,
            task,
            relations,
        })
    }
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
    format!("{heads} heads and {} measures", Measure::ALL.len())
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
pub(super) fn score_names() -> [ScoreName; Measure::ALL.len()] {
    Measure::ALL.map(ScoreName::from)
}
