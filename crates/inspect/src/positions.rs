//! `inspect RUN positions`: what heads do query by query.

use headlight_heads::{Ablation, HeadName, Measure, Role, RoleCheck, RoleRange, Score};
use headlight_lens::{
    Behaviour, Estimate, InductionProfile, ScoresByPosition, all_heads, induction_profile,
    scores_by_position, without,
};
use headlight_report::{Printout, Table, number_or_dash, or_dash, with_interval};
use headlight_residual::{Decoder, NoProbe};
use headlight_run::Error;
use headlight_watch::{Patterns, no_room};
use serde::Serialize;

use super::{ModelParts, Output, Subject, Verb};

/// What heads do position by position: where they hold a role, how much they write, accuracy
/// without them
#[derive(Debug, clap::Args)]
pub struct PositionsVerb {
    /// This head alone, written L0H1, at every position
    #[arg(long)]
    head: Option<HeadName>,
    /// What stands in place of heads that are off
    #[arg(long, value_name = "zero|mean|resample", default_value_t)]
    by: Ablation,
}

impl Verb for PositionsVerb {
    const NAME: &'static str = "positions";

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.positions(self.head, self.by)?, Positions::printout)
    }
}

/// Accuracy at a position with fewer scored targets is not shown.
const FEWEST_TARGETS: usize = 20;
/// Accuracy in the terminal is the mean over about so many parts of the sequence.
const PARTS: usize = 8;

/// What `inspect RUN positions` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Positions {
    /// What stands in place of a head that is off.
    pub by: Ablation,
    /// `[position]`: the accuracy of the model as it is, on the run's own task; none with fewer than
    /// 20 scored targets.
    pub accuracy: Vec<Option<Estimate>>,
    /// `[position]`: the accuracy that the best predictor is expected to reach there, where it is
    /// known.
    pub best_accuracy: Option<Vec<Option<f64>>>,
    /// Every head, or the chosen one.
    pub heads: Vec<HeadAtPositions>,
    /// Whether one head was chosen.
    #[serde(skip)]
    is_chosen: bool,
}

/// What one head does, query by query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadAtPositions {
    /// The head.
    pub head: HeadName,
    /// What it looks like as a whole, on the probe.
    pub role: Role,
    /// How sure that is.
    pub check: Option<RoleCheck>,
    /// The positions at which it holds a role.
    pub ranges: Vec<RoleRange>,
    /// rms(result − mean)/rms(stream), on the probe.
    pub writes: f64,
    /// `[position]`: the same at each position.
    pub writes_by_position: Vec<f64>,
    /// Each measure's score at each position of the probe; none without a target there.
    pub scores: ScoresByPosition,
    /// The induction score by copy number and by key position.
    pub induction: InductionProfile,
    /// `[position]`: the accuracy with this head off, on the run's own task.
    pub accuracy_without: Vec<Option<Estimate>>,
}

/// Accuracy at each position, as it is and with one head off.
#[derive(Debug)]
pub(super) struct AccuracyByPosition<'a> {
    pub model: &'a Decoder,
    pub behaviour: &'a Behaviour,
    pub by: Ablation,
}

impl AccuracyByPosition<'_> {
    /// Of the model as it is.
    pub fn untouched(&self) -> Vec<Option<Estimate>> {
        let Self {
            model, behaviour, ..
        } = self;
        behaviour.accuracy_by_position(*model, &mut NoProbe, FEWEST_TARGETS)
    }

    /// Of the model with one head off.
    ///
    /// # Errors
    /// If there is no room for what stands in the head's place.
    pub fn without(&self, head: HeadName) -> Result<Vec<Option<Estimate>>, Error> {
        let Self {
            model,
            behaviour,
            by,
        } = self;
        let mut off = without(*model, behaviour, &[head], *by).map_err(no_room)?;
        Ok(behaviour.accuracy_by_position(*model, &mut off, FEWEST_TARGETS))
    }
}

impl Subject {
    /// Scores, ranges and output of every head by position, and accuracy with and without it.
    ///
    /// # Errors
    /// If the run has no weights, or the chosen head does not exist.
    pub fn positions(&self, chosen: Option<HeadName>, by: Ablation) -> Result<Positions, Error> {
        let ModelParts { model, .. } = self.model()?;
        let all = all_heads(&model);
        if let Some(head) = chosen.filter(|head| !all.contains(head)) {
            return Err(Error::new("--head", "there is no such head").value(head));
        }
        let probe = self.probe()?;
        let (patterns, writes) = Patterns::with_writes(&model, &probe.tokens, &self.device)?;
        let patterns = patterns.with_start(probe.has_start);
        let layers: Vec<_> = patterns.layers().collect();
        let summaries = probe.observe(&model, &self.device)?.summaries();
        let behaviour = self.task_behaviour()?;
        let accuracy = AccuracyByPosition {
            model: &model,
            behaviour: &behaviour,
            by,
        };
        let mut heads = Vec::new();
        for (layer, pattern) in layers.into_iter().enumerate() {
            let scores = scores_by_position(pattern, &probe.tokens);
            let induction = induction_profile(pattern, &probe.tokens);
            for (head, (scores, induction)) in scores.into_iter().zip(induction).enumerate() {
                let name = HeadName { layer, head };
                if chosen.is_some_and(|chosen| chosen != name) {
                    continue;
                }
                let index = layer * model.n_heads() + head;
                let summary = &summaries[index];
                heads.push(HeadAtPositions {
                    head: name,
                    role: summary.role,
                    check: summary.check,
                    ranges: summary.ranges.clone(),
                    writes: writes[index].everywhere(),
                    writes_by_position: writes[index].by_position(),
                    scores,
                    induction,
                    accuracy_without: accuracy.without(name)?,
                });
            }
        }
        Ok(Positions {
            by,
            accuracy: accuracy.untouched(),
            best_accuracy: self.best_by_position(behaviour.sequences())?,
            heads,
            is_chosen: chosen.is_some(),
        })
    }

    /// The accuracy that the best predictor is expected to reach at each position of the first
    /// validation sequences, where it is known; none with fewer than 20 scored targets.
    pub(super) fn best_by_position(
        &self,
        sequences: usize,
    ) -> Result<Option<Vec<Option<f64>>>, Error> {
        if self.pairs().is_some() {
            return Ok(None);
        }
        let validation = self.validation()?;
        let mut targets: Vec<Vec<f64>> = Vec::new();
        for (at, sequence) in validation.sequences.iter().take(sequences).enumerate() {
            let Some(best) = validation.best_accuracies(at) else {
                return Ok(None);
            };
            targets.resize(best.len().max(targets.len()), Vec::new());
            for (position, (&share, &scored)) in best.iter().zip(&sequence.scored).enumerate() {
                if scored {
                    targets[position].push(share);
                }
            }
        }
        let mean = |shares: &Vec<f64>| {
            let count = shares.len();
            (count >= FEWEST_TARGETS).then(|| shares.iter().sum::<f64>() / count as f64)
        };
        Ok(Some(targets.iter().map(mean).collect()))
    }
}

impl Positions {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let ranges = Printout::new()
            .prose(
                "Where heads hold a role, on the probe. A position is a query, counted from 0. share: (score − \
                 uniform)/(ceiling − uniform), measured on sequences that had no say in where the range is. may end at: \
                 by a simultaneous 95 % band. writes: root mean square of what the head writes, its mean taken off, \
                 over that of the stream, everywhere and there.",
            )
            .table(self.ranges_table());
        let without = format!(
            "Accuracy by position on what the model is measured on, and what it is with one head off; in its place stands {} (--by \
             {}). –: fewer than {FEWEST_TARGETS} scored targets at each position.",
            self.by.in_words(),
            self.by
        );
        let printout = ranges.prose(without).table(self.accuracy_table());
        match self.heads.as_slice() {
            [head] if self.is_chosen => printout
                .prose(format!("{} at each position of the probe:", head.head))
                .table(self.position_table(head))
                .prose("Its induction score by copy number (2: the token stood before once):")
                .table(scores_table("copy", &head.induction.by_copy))
                .prose("and by key position, over queries of the second copy:")
                .table(scores_table("key", &head.induction.by_key)),
            _ => printout,
        }
    }

    fn ranges_table(&self) -> Table {
        let mut rows = Vec::new();
        for head in &self.heads {
            let everywhere = format!("{:.2}", head.writes);
            if head.ranges.is_empty() {
                let text = format!("{}, no range", head.role);
                rows.push(vec![head.head.to_string(), text, everywhere]);
                continue;
            }
            for range in &head.ranges {
                rows.push(vec![
                    head.head.to_string(),
                    range.to_string(),
                    everywhere.clone(),
                    number_or_dash(range.writes, 2),
                    with_interval(range.share, range.interval(), 2),
                    format!("{}–{}", range.last_low, range.last_high),
                ]);
            }
        }
        let header = ["head", "holds", "writes", "there", "share", "may end at"];
        for row in &mut rows {
            row.resize(header.len(), "–".to_owned());
        }
        Table::new(&header, rows).text_columns(2)
    }

    /// A line for the model and each head, a column for each part of the sequence.
    fn accuracy_table(&self) -> Table {
        let positions = self.accuracy.len();
        let size = positions.div_ceil(PARTS).max(1);
        let firsts: Vec<usize> = (0..positions).step_by(size).collect();
        let row = |name: String, accuracy: &[Option<f64>]| {
            let means = accuracy.chunks(size).map(|part| {
                let known: Vec<f64> = part.iter().copied().flatten().collect();
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                number_or_dash((!known.is_empty()).then_some(mean), 2)
            });
            std::iter::once(name).chain(means).collect::<Vec<_>>()
        };
        let mut rows = Vec::new();
        if let Some(best) = &self.best_accuracy {
            rows.push(row("best possible".to_owned(), best));
        }
        rows.push(row("untouched".to_owned(), &means(&self.accuracy)));
        for head in &self.heads {
            rows.push(row(
                format!("without {}", head.head),
                &means(&head.accuracy_without),
            ));
        }
        let header: Vec<String> = std::iter::once("positions".to_owned())
            .chain(firsts.iter().map(|&first| {
                let last = (first + size).min(positions) - 1;
                format!("{first}–{last}")
            }))
            .collect();
        Table::new(&header, rows)
    }

    /// A line for each position.
    fn position_table(&self, head: &HeadAtPositions) -> Table {
        let mut rows = Vec::new();
        for (position, writes) in head.writes_by_position.iter().enumerate() {
            let mut row = vec![position.to_string()];
            for measure in Measure::all() {
                let score = head
                    .scores
                    .get(&measure)
                    .and_then(|scores| scores[position]);
                row.push(or_dash(score.map(|score| format!("{:.2}", score.value))));
            }
            row.push(format!("{writes:.2}"));
            for accuracy in [&self.accuracy, &head.accuracy_without] {
                let here = accuracy.get(position).copied().flatten();
                row.push(number_or_dash(here.map(|here| here.mean), 2));
            }
            rows.push(row);
        }
        let mut header = vec!["position".to_owned()];
        header.extend(
            Measure::all()
                .iter()
                .map(|measure| measure.name().replace(" token", "")),
        );
        header.extend(["writes", "accuracy", "without it"].map(str::to_owned));
        Table::new(&header, rows).first_to_go(&["current", "first", "duplicate"])
    }
}

/// The accuracies without their intervals.
fn means(accuracy: &[Option<Estimate>]) -> Vec<Option<f64>> {
    let mean = |at: &Option<Estimate>| at.map(|at| at.mean);
    accuracy.iter().map(mean).collect()
}

/// A line for each copy or key.
fn scores_table(name: &str, scores: &[(usize, Score)]) -> Table {
    let row = |(index, score): &(usize, Score)| {
        vec![
            index.to_string(),
            with_interval(score.value, score.interval, 2),
            format!("{:.2}", score.null),
        ]
    };
    Table::new(&[name, "induction", "uniform"], scores.iter().map(row))
}
