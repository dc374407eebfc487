//! `inspect RUN phases`: when did what form? Where the loss rested, what changed in between, and
//! what context is worth.

use headlight_heads::{HeadName, Measure, ScoreName, SequenceKind};
use headlight_lens::half_way;
use headlight_report::{Printout, Table, number_or_dash, or_dash};
use headlight_run::{Error, HeadRow, MetricsRow};
use headlight_tasks::Validation;
use serde::Serialize;

use super::{Need, Output, Subject, Verb};

/// When what formed: levels of the loss, half-way steps, the loss by position
#[derive(Debug, clap::Args)]
pub struct PhasesVerb;

impl Verb for PhasesVerb {
    const NAME: &'static str = "phases";
    const NEEDS: &'static [Need] = &[Need::Logs];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        out.show(&subject.phases()?, Phases::printout)
    }
}

/// A level of the loss is reached within this many nats.
const NEAR: f64 = 0.01;
/// A head's score has changed when it moved this far.
const MOVED: f64 = 0.15;

/// What `inspect RUN phases` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phases {
    /// Losses that a predictor of a known kind pays, highest first.
    pub levels: Vec<Level>,
    /// When each measure was half of the way from its first to its last value.
    pub measures: Vec<Crossing>,
    /// At each position the loss at the end and the floor; positions that are never scored are left
    /// out.
    pub by_position: Vec<PositionLoss>,
}

/// A loss that has a meaning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Who pays it.
    pub name: String,
    /// Nats.
    pub loss: f64,
    /// The first logged step with a validation loss at most this much above it.
    pub reached: Option<usize>,
    /// Scores on the task that moved between the level before, or step 0, and this one.
    pub moved: Vec<Movement>,
}

/// A head score that moved from one level to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Movement {
    /// The head.
    pub head: HeadName,
    /// The score.
    pub score: ScoreName,
    /// At the step of the level before, or step 0.
    pub from: f64,
    /// At the step of this level.
    pub to: f64,
}

/// A measure over training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// What is measured.
    pub measure: String,
    /// At step 0.
    pub first: f64,
    /// At the end.
    pub last: f64,
    /// The first logged step at which half of the way was done.
    pub half: Option<usize>,
}

/// The loss at one position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PositionLoss {
    /// Counted from 0.
    pub position: usize,
    /// Nats.
    pub loss: f64,
    /// What the best predictor pays there, where it is known.
    pub floor: Option<f64>,
}

impl Subject {
    /// Phases of training on the run's own task.
    ///
    /// # Errors
    /// If the run has no metrics or no weights.
    pub fn phases(&self) -> Result<Phases, Error> {
        let validation = self.validation()?;
        let metrics = self.finite_metrics()?;
        let on_task = |row: &HeadRow| row.on == SequenceKind::Task;
        let heads = self.head_rows()?.into_iter();
        let heads: Vec<HeadRow> = heads.filter(on_task).collect();
        let (model, behaviour) = self.behaviour()?;
        // Of the very sequences that the loss is measured on.
        let floors = floor_by_position(validation, behaviour.sequences());
        let losses = behaviour.loss_by_position(&model).into_iter().enumerate();
        let position_loss = |(position, loss): (usize, Option<f64>)| {
            loss.map(|loss| PositionLoss {
                position,
                loss,
                floor: floors.get(position).copied().flatten(),
            })
        };
        Ok(Phases {
            levels: levels(model.vocabulary(), validation, &metrics, &heads),
            measures: crossings(&metrics, &heads),
            by_position: losses.filter_map(position_loss).collect(),
        })
    }
}

/// Uniform guessing, the task's shortcut and its floor, as far as they are known.
fn levels(
    vocabulary: usize,
    validation: &Validation,
    metrics: &[MetricsRow],
    heads: &[HeadRow],
) -> Vec<Level> {
    let mut known = vec![(
        "equal chances for all tokens".to_owned(),
        (vocabulary as f64).ln(),
    )];
    if let Some((name, loss)) = validation.shortcut() {
        known.push((format!("shortcut: {name}"), loss));
    }
    known.extend(validation.floor().map(|loss| ("floor".to_owned(), loss)));
    known.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut before = 0;
    let level = |(name, loss): (String, f64)| {
        let reached = metrics
            .iter()
            .find(|row| row.validation <= loss + NEAR)
            .map(|row| row.step);
        let to = reached.or(metrics.last().map(|row| row.step)).unwrap_or(0);
        let moved = movements(heads, before, to);
        before = to;
        Level {
            name,
            loss,
            reached,
            moved,
        }
    };
    known.into_iter().map(level).collect()
}

/// The scores that are not where they were, the largest movement first.
fn movements(heads: &[HeadRow], from: usize, to: usize) -> Vec<Movement> {
    let at = |step| heads.iter().filter(move |row| row.step == step);
    let of_head = |(before, after): (&HeadRow, &HeadRow)| -> Vec<Movement> {
        let head = after.head;
        let score = |measure: Measure| {
            let score = ScoreName::from(measure);
            let from = before.scores.get(&score)?.value;
            let to = after.scores.get(&score)?.value;
            ((to - from).abs() >= MOVED).then_some(Movement {
                head,
                score,
                from,
                to,
            })
        };
        Measure::all().into_iter().filter_map(score).collect()
    };
    let mut moved: Vec<Movement> = at(from).zip(at(to)).flat_map(of_head).collect();
    moved.sort_by(|a, b| (b.to - b.from).abs().total_cmp(&(a.to - a.from).abs()));
    moved
}

/// The run's measures and, of each head, the score on the task that moved most.
fn crossings(metrics: &[MetricsRow], heads: &[HeadRow]) -> Vec<Crossing> {
    let crossing = |measure: &str, points: Vec<(usize, f64)>| {
        let (first, last) = (points.first()?.1, points.last()?.1);
        Some(Crossing {
            measure: measure.to_owned(),
            first,
            last,
            half: half_way(&points),
        })
    };
    let mut crossings: Vec<Crossing> = curves_of(metrics)
        .into_iter()
        .filter_map(|(measure, points)| crossing(measure, points))
        .collect();
    let (first, last) = (
        metrics.first().map_or(0, |row| row.step),
        heads.iter().map(|row| row.step).max().unwrap_or(0),
    );
    let mut seen = Vec::new();
    for Movement { head, score, .. } in movements(heads, first, last) {
        if !seen.contains(&head) {
            seen.push(head);
            let of_head = heads.iter().filter(|row| row.head == head);
            let points = of_head
                .filter_map(|row| Some((row.step, row.scores.get(&score)?.value)))
                .collect();
            crossings.extend(crossing(&format!("{head} {score}"), points));
        }
    }
    crossings
}

/// What is measured of a run over its steps, by name, while its loss is a number.
#[must_use]
pub fn curves_of(metrics: &[MetricsRow]) -> [(&'static str, Vec<(usize, f64)>); 3] {
    let curve = |value: fn(&MetricsRow) -> Option<f64>| {
        metrics
            .iter()
            .filter(|row| row.is_finite())
            .filter_map(|row| Some((row.step, value(row)?)))
            .collect::<Vec<_>>()
    };
    [
        ("validation loss", curve(|row| Some(row.validation))),
        ("accuracy", curve(|row| Some(row.accuracy))),
        ("in-context score", curve(|row| row.in_context)),
    ]
}

/// At each position the mean floor of those of the first sequences that score it.
fn floor_by_position(validation: &Validation, sequences: usize) -> Vec<Option<f64>> {
    let sequences = &validation.sequences[..sequences];
    let mut sums = vec![(0.0, 0_usize); sequences[0].scored.len()];
    for (at, sequence) in sequences.iter().enumerate() {
        let losses = validation.floor_losses(at).unwrap_or_default();
        for (input, loss) in losses.iter().enumerate() {
            if sequence.scored[input] {
                let (sum, count) = sums[input];
                sums[input] = (sum + loss, count + 1);
            }
        }
    }
    sums.into_iter()
        .map(|(sum, count)| (count > 0).then(|| sum / count as f64))
        .collect()
}

impl Phases {
    /// For the terminal.
    #[must_use]
    pub fn printout(&self) -> Printout {
        let step = |step: Option<usize>| or_dash(step.map(|step| step.to_string()));
        let levels = self.levels.iter().map(|level| {
            vec![
                level.name.clone(),
                format!("{:.3}", level.loss),
                step(level.reached),
            ]
        });
        let moved = self.levels.iter().flat_map(|level| {
            let row = |Movement {
                           head,
                           score,
                           from,
                           to,
                       }: &Movement| {
                vec![
                    level.name.clone(),
                    head.to_string(),
                    score.to_string(),
                    format!("{from:.2}"),
                    format!("{to:.2}"),
                ]
            };
            level.moved.iter().map(row).collect::<Vec<_>>()
        });
        let measures = self.measures.iter().map(|crossing| {
            let Crossing {
                measure,
                first,
                last,
                half,
            } = crossing;
            vec![
                measure.clone(),
                format!("{first:.3}"),
                format!("{last:.3}"),
                step(*half),
            ]
        });
        // Every position of a long sequence is in the JSON.
        let every = self.by_position.len().div_ceil(16).max(1);
        let positions = self.by_position.iter().step_by(every).map(|at| {
            vec![
                at.position.to_string(),
                format!("{:.3}", at.loss),
                number_or_dash(at.floor, 3),
            ]
        });
        let moved = Table::new(&["on the way to", "head", "score", "from", "to"], moved);
        Printout::new()
            .prose(format!(
                "Levels of the loss, nats, and the first logged step within {NEAR} of each:"
            ))
            .table(Table::new(&["level", "loss", "reached"], levels))
            .prose(format!(
                "Head scores on the task that moved by at least {MOVED} on the way to a level from the one above it:"
            ))
            .table(moved.text_columns(3))
            .prose(
                "The first logged step at which a measure is half of the way from its first to its last value; of each \
                 head the score that moved most:",
            )
            .table(Table::new(
                &["measure", "first", "last", "half at step"],
                measures,
            ))
            .prose("Loss by position at the end, nats:")
            .table(Table::new(&["position", "loss", "floor"], positions))
    }
}

#[cfg(test)]
mod tests {
    use headlight_heads::{Interval, Score, Scores};
    use headlight_run::SequenceRow;

    use super::*;

    fn row(step: usize, induction: f64) -> HeadRow {
        let score = Score {
            value: induction,
            null: 0.1,
            ceiling: 1.0,
            interval: Interval::point(induction),
        };
        HeadRow {
            step,
            on: SequenceKind::Task,
            head: HeadName { layer: 1, head: 0 },
            role: None,
            scores: Scores::from([(Measure::Induction.into(), score)]),
            relations: headlight_heads::RelationScores::new(),
            ranges: Vec::new(),
            check: None,
            writes: None,
        }
    }

    #[test]
    fn a_score_moves_when_it_changes_by_enough_between_two_steps() {
        let rows = [row(0, 0.1), row(50, 0.2), row(100, 0.9)];
        assert_eq!(movements(&rows, 0, 50), []);
        let moved = movements(&rows, 50, 100);
        assert_eq!((moved.len(), moved[0].from, moved[0].to), (1, 0.2, 0.9));
        let crossings = crossings(&[], &rows);
        assert_eq!(
            (crossings[0].measure.as_str(), crossings[0].half),
            ("L1H0 induction", Some(100))
        );
    }

    #[test]
    fn a_position_has_the_mean_of_the_sequences_that_score_it() {
        let row = |losses: [f64; 2]| SequenceRow {
            tokens: [0; 3].into(),
            scored: Some([1].into()),
            floor: Some(losses.into()),
            ..SequenceRow::default()
        };
        let validation = Validation::of_rows(vec![row([1.0, 3.0]), row([1.0, 5.0]), row([0.0; 2])]);
        assert_eq!(floor_by_position(&validation, 2), [None, Some(4.0)]);
        assert_eq!(floor_by_position(&validation, 1), [None, Some(3.0)]);
    }
}
