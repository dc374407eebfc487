//! What was measured of runs over training, one over the other.

use std::collections::BTreeMap;

use headlight_heads::{Role, ScoreName, SequenceKind};
use headlight_report::{ComparedCurve, ComparedCurves};
use headlight_run::{Error, HeadRow, MetricsRow, Summary};

use super::Comparison;

impl Comparison {
    /// Accuracy, loss, and for each role the highest score of all heads.
    pub(super) fn curves(&self) -> Result<Vec<ComparedCurves>, Error> {
        let mut all = vec![
            ComparedCurves {
                name: "accuracy".to_owned(),
                highest: 1.0,
                levels: [
                    self.levels(|side| Some(("guessing", side.chance))),
                    self.levels(|side| Some(("best possible", side.best_accuracy?))),
                ]
                .concat(),
                runs: self.of_metrics(|row| row.accuracy),
            },
            ComparedCurves {
                name: "validation loss, nats".to_owned(),
                highest: 0.0,
                levels: self.levels(|side| Some(("best possible", side.floor?))),
                runs: self.of_metrics(|row| row.validation),
            },
        ];
        let loss = &mut all[1];
        let points = loss.runs.iter().flat_map(|curve| &curve.points);
        loss.highest = points.map(|(_, value)| *value).fold(0.0, f64::max);
        let mut rows = Vec::new();
        for side in &self.sides {
            for run in &side.runs {
                rows.push(run.subject.head_rows()?);
            }
        }
        for role in self.roles() {
            all.extend(self.of_role(role.role, &rows));
        }
        Ok(all)
    }

    fn of_metrics(&self, value: fn(&MetricsRow) -> f64) -> Vec<ComparedCurve> {
        self.each_run(|side, run| {
            let metrics = &self.sides[side].runs[run].metrics;
            metrics.iter().map(|row| (row.step, value(row))).collect()
        })
    }

    /// The highest score of a role over all heads on the probe; `rows` are those of each run.
    fn of_role(&self, role: Role, rows: &[Vec<HeadRow>]) -> Option<ComparedCurves> {
        let name = role.score()?;
        let mut each = rows.iter();
        let runs = self.each_run(|_, _| {
            each.next()
                .map_or_else(Vec::new, |rows| highest(rows, name))
        });
        // The null follows from the sequences of the probe, which differ between tasks.
        let null = |summary: &Summary| {
            let score = summary.heads.iter().find_map(|head| head.scores.get(&name));
            Some(("uniform attention", score?.null))
        };
        Some(ComparedCurves {
            name: format!("highest {role} score of all heads"),
            highest: 1.0,
            levels: self.levels(null),
            runs,
        })
    }

    fn each_run(
        &self,
        mut points: impl FnMut(usize, usize) -> Vec<(usize, f64)>,
    ) -> Vec<ComparedCurve> {
        let mut curves = Vec::new();
        for (side, runs) in self.sides.iter().enumerate() {
            for run in 0..runs.runs.len() {
                curves.push(ComparedCurve {
                    side,
                    run,
                    points: points(side, run),
                });
            }
        }
        curves
    }

    /// What curves are measured against: one level where all sides have the same, else one a side.
    fn levels(
        &self,
        level: impl Fn(&Summary) -> Option<(&'static str, f64)>,
    ) -> Vec<(String, f64)> {
        let mut levels = Vec::new();
        for side in &self.sides {
            if let Some((name, value)) = level(&side.runs[0].summary) {
                levels.push((name, &side.name, value));
            }
        }
        let is_first = |(_, _, value): &(&str, &String, f64)| (value - levels[0].2).abs() < 1e-9;
        if levels.len() == self.sides.len() && levels.iter().all(is_first) {
            return vec![(levels[0].0.to_owned(), levels[0].2)];
        }
        let named = |(name, side, value): (&str, &String, f64)| (format!("{name}, {side}"), value);
        levels.into_iter().map(named).collect()
    }
}

/// At each step the highest score of all heads on the probe.
fn highest(rows: &[HeadRow], name: ScoreName) -> Vec<(usize, f64)> {
    let mut by_step: BTreeMap<usize, f64> = BTreeMap::new();
    for row in rows {
        if row.on != SequenceKind::Probe {
            continue;
        }
        if let Some(score) = row
            .scores
            .get(&name)
            .filter(|score| score.value.is_finite())
        {
            let highest = by_step.entry(row.step).or_insert(score.value);
            *highest = highest.max(score.value);
        }
    }
    by_step.into_iter().collect()
}
