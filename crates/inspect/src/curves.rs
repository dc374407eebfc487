//! `inspect RUN curves` and `inspect RUN scores`: what changed over training.

use headlight_heads::{HeadName, Measure, Role, Score, ScoreName, SequenceKind};
use headlight_report::{
    Curve, CurvePoint, HeadCurves, Ink, csv, curves_svg, curves_text, head_scores_svg, line_colour,
    role_colour,
};
use headlight_run::{HeadRow, InputError, MetricsRow};

use super::{Inspection, picture_files::Picture};

impl Inspection {
    /// Accuracy over training: on validation sequences and, where the training set is finite, on
    /// that.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn curves(&self) -> Result<Vec<Curve>, InputError> {
        let rows = self.metrics()?;
        // A run that was stopped has no summary, and its chance is not known.
        let null = self.summary().ok().map(|summary| summary.chance);
        let curve = |name: &str, value: &dyn Fn(&MetricsRow) -> Option<f64>| {
            let point = |row: &MetricsRow| {
                Some(CurvePoint {
                    step: row.step,
                    value: value(row)?,
                    interval: None,
                })
            };
            Curve {
                name: name.to_owned(),
                colour: [0; 3],
                points: rows.iter().filter_map(point).collect(),
                null,
            }
        };
        let mut curves = vec![
            curve("accuracy on the training set", &|row| row.training_accuracy),
            curve("accuracy on the validation set", &|row| Some(row.accuracy)),
        ];
        curves.retain(|curve| !curve.points.is_empty());
        for (index, curve) in curves.iter_mut().enumerate() {
            curve.colour = line_colour(index);
        }
        Ok(curves)
    }

    /// Every head's scores on the probe over training.
    ///
    /// # Errors
    /// If the run has no head scores.
    pub fn head_curves(&self) -> Result<Vec<HeadCurves>, InputError> {
        let mut rows = self.head_rows()?;
        rows.retain(|row| row.on == SequenceKind::Probe);
        let mut heads: Vec<HeadName> = rows.iter().map(|row| row.head).collect();
        heads.sort_unstable();
        heads.dedup();
        let of = |head: HeadName| rows.iter().filter(move |row| row.head == head);
        let curve = |head: HeadName, measure: Measure| {
            let name = ScoreName::from(measure);
            let score = |row: &HeadRow| Some((row.step, *row.scores.get(&name)?));
            let scores: Vec<_> = of(head).filter_map(score).collect();
            let point = |&(step, score): &(usize, Score)| CurvePoint {
                step,
                value: score.value,
                interval: Some(score.interval),
            };
            let null = scores.last().map(|(_, score)| score.null);
            Curve {
                name: name.to_string(),
                colour: role_colour(measure),
                points: scores.iter().map(point).collect(),
                null,
            }
        };
        let curves = |head: HeadName| HeadCurves {
            head,
            role: of(head).next_back().and_then(|row| row.role),
            curves: Measure::ALL.map(|measure| curve(head, measure)).into(),
        };
        Ok(heads.into_iter().map(curves).collect())
    }
}

/// Curves as a picture.
#[must_use]
pub fn curves_picture(curves: &[Curve]) -> Picture {
    Picture {
        svg: curves_svg(curves),
        csv: csv(&HEADER[1..], curves.iter().flat_map(rows)),
    }
}

/// Every head's scores as a picture: a row per layer, a column per head.
#[must_use]
pub fn head_curves_picture(heads: &[HeadCurves]) -> Picture {
    let rows = heads.iter().flat_map(|head| {
        let name = head.head.to_string();
        head.curves
            .iter()
            .flat_map(rows)
            .map(move |row| std::iter::once(name.clone()).chain(row).collect())
    });
    Picture {
        svg: head_scores_svg(heads),
        csv: csv(&HEADER, rows),
    }
}

const HEADER: [&str; 7] = ["head", "curve", "step", "value", "low", "high", "null"];

/// All of the header but the head.
fn rows(curve: &Curve) -> impl Iterator<Item = Vec<String>> {
    let null = curve.null.map_or_else(String::new, |null| null.to_string());
    curve.points.iter().map(move |point| {
        let [low, high] = match point.interval {
            Some(interval) => [interval.low, interval.high].map(|end| end.to_string()),
            None => Default::default(),
        };
        vec![
            curve.name.clone(),
            point.step.to_string(),
            point.value.to_string(),
            low,
            high,
            null.clone(),
        ]
    })
}

/// Every head's scores for the terminal, one plot below the other.
#[must_use]
pub fn head_curves_text(heads: &[HeadCurves], ink: Ink) -> String {
    let plot = |head: &HeadCurves| {
        let role = head.role.map_or("", Role::name);
        format!("{} {role}\n\n{}", head.head, curves_text(&head.curves, ink))
    };
    heads.iter().map(plot).collect::<Vec<_>>().join("\n\n")
}
