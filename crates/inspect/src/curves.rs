//! `inspect RUN curves` and `inspect RUN scores`: what changed over training.

use std::{fmt::Write as _, path::Path};

use headlight_heads::{HeadName, Measure, Role, ScoreName, SequenceKind};
use headlight_report::{
    Curve, CurvePoint, HeadCurves, Printout, Terminal, TerminalCurves, curves_svg, head_scores_svg,
    head_scores_table, line_colour, role_colour,
};
use headlight_run::{Error, HeadRow, MetricsRow};

use super::{Comparison, Need, Output, Subject, Verb, comparison, picture_files::PictureFiles};

/// Accuracy and loss over training
#[derive(Debug, clap::Args)]
pub struct CurvesVerb {
    #[command(flatten)]
    files: PictureFiles,
}

impl Verb for CurvesVerb {
    const NAME: &'static str = "curves";
    const NEEDS: &'static [Need] = &[Need::Logs];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let curves = subject.curves()?;
        let written = self.files.write(|| Ok(curves_svg(&curves)))?;
        let metrics = subject.metrics()?;
        let mut text = String::new();
        if out.is_text() && written.is_empty() {
            text = curves_text(&curves, &subject.loss_curves()?, &out.terminal);
        }
        if let Some(step) = subject.diverged()? {
            let _ = write!(
                text,
                "\n\nAt step {step} the loss is no number. Training stopped there."
            );
        }
        out.show_text(&metrics, &metrics, written, |_| text)
    }

    fn compare(self, runs: &Comparison, out: &Output) -> Result<(), Error> {
        let data = runs.data(Path::new("."))?;
        let written = self.files.write(|| Ok(comparison::accuracies_svg(&data)))?;
        out.show_text(&data.curves, &data.curves, written, |_| {
            comparison::curves_text(&data, &out.terminal)
        })
    }
}

/// How every head's scores changed over training, on the probe
#[derive(Debug, clap::Args)]
pub struct ScoresVerb {
    /// This head alone, written L0H1
    #[arg(long)]
    head: Option<HeadName>,
    #[command(flatten)]
    files: PictureFiles,
}

impl Verb for ScoresVerb {
    const NAME: &'static str = "scores";
    const NEEDS: &'static [Need] = &[Need::Logs];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let heads = subject.head_curves(self.head)?;
        let written = self.files.write(|| Ok(head_scores_svg(&heads)))?;
        let mut rows = subject.head_rows()?;
        rows.retain(|row| self.head.is_none_or(|head| row.head == head));
        out.show_text(&rows, &rows, written, |_| {
            head_curves_text(&heads, &out.terminal)
        })
    }
}

impl Subject {
    /// Accuracy over training: on validation sequences and, where the training set is finite, on
    /// that.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn curves(&self) -> Result<Vec<Curve>, Error> {
        let rows = self.finite_metrics()?;
        let null = Some(self.chance()?);
        let curves = vec![
            curve("accuracy on the training set", &rows, null, |row| {
                row.training_accuracy
            }),
            curve("accuracy on the validation set", &rows, null, |row| {
                Some(row.accuracy)
            }),
        ];
        Ok(coloured(curves))
    }

    /// Losses over training, nats: of the batches trained on, and on validation sequences. Their
    /// null is the floor, where it is known.
    ///
    /// # Errors
    /// If the run has no metrics.
    pub fn loss_curves(&self) -> Result<Vec<Curve>, Error> {
        let rows = self.finite_metrics()?;
        let floor = self.validation()?.floor();
        let curves = vec![
            curve("loss of the training batches", &rows, None, |row| row.loss),
            curve("loss on the validation set", &rows, floor, |row| {
                Some(row.validation)
            }),
        ];
        Ok(coloured(curves))
    }

    /// The scores on the probe over training, of every head or of `only` one.
    ///
    /// # Errors
    /// If the run has no head scores, or there is no such head.
    pub fn head_curves(&self, only: Option<HeadName>) -> Result<Vec<HeadCurves>, Error> {
        let mut rows = self.head_rows()?;
        rows.retain(|row| row.on == SequenceKind::Probe);
        if let Some(head) = only {
            rows.retain(|row| row.head == head);
            if rows.is_empty() {
                return Err(Error::new(
                    format_args!("--head {head}"),
                    "there is no such head",
                ));
            }
        }
        let mut heads: Vec<HeadName> = rows.iter().map(|row| row.head).collect();
        heads.sort_unstable();
        heads.dedup();
        Ok(heads
            .into_iter()
            .map(|head| curves_of_head(head, &rows))
            .collect())
    }
}

/// Every score of `head` in `rows`, over the steps, and the role of the last row.
fn curves_of_head(head: HeadName, rows: &[HeadRow]) -> HeadCurves {
    let rows: Vec<&HeadRow> = rows.iter().filter(|row| row.head == head).collect();
    HeadCurves {
        head,
        role: rows.last().and_then(|row| row.role),
        curves: Measure::all()
            .into_iter()
            .map(|measure| curve_of_score(measure, &rows))
            .collect(),
    }
}

/// One score over the steps, with the null of the last.
fn curve_of_score(measure: Measure, rows: &[&HeadRow]) -> Curve {
    let name = ScoreName::from(measure);
    let mut points = Vec::new();
    let mut null = None;
    for row in rows {
        if let Some(score) = row.scores.get(&name) {
            points.push(CurvePoint {
                step: row.step,
                value: score.value,
                interval: Some(score.interval),
            });
            null = Some(score.null);
        }
    }
    Curve {
        name: name.to_string(),
        colour: role_colour(measure),
        points,
        null,
    }
}

/// A number of each row over the steps; rows without it are left out.
fn curve(
    name: &str,
    rows: &[MetricsRow],
    null: Option<f64>,
    value: fn(&MetricsRow) -> Option<f64>,
) -> Curve {
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
}

/// The curves of one picture, each in a colour of its own; one that has no points takes none.
fn coloured(mut curves: Vec<Curve>) -> Vec<Curve> {
    curves.retain(|curve| !curve.points.is_empty());
    for (index, curve) in curves.iter_mut().enumerate() {
        curve.colour = line_colour(index);
    }
    curves
}

/// Accuracy and loss for the terminal, one plot above the other.
fn curves_text(accuracies: &[Curve], losses: &[Curve], terminal: &Terminal) -> String {
    let points = losses.iter().flat_map(|curve| &curve.points);
    let highest = points
        .filter(|point| point.step > 0)
        .map(|point| point.value)
        .fold(0.0, f64::max);
    let accuracies = TerminalCurves {
        title: "accuracy",
        curves: accuracies,
        highest: 1.0,
    };
    let losses = TerminalCurves {
        title: "loss in nats",
        curves: losses,
        highest,
    };
    format!("{}\n\n{}", accuracies.draw(terminal), losses.draw(terminal))
}

/// The scores for the terminal: one head as a plot, several as a table with a line for each.
fn head_curves_text(heads: &[HeadCurves], terminal: &Terminal) -> String {
    if let [head] = heads {
        let curves = TerminalCurves {
            title: "scores on the probe",
            curves: &head.curves,
            highest: 1.0,
        };
        let role = head.role.map_or("", Role::name);
        return format!("{} {role}\n\n{}", head.head, curves.draw(terminal));
    }
    let steps = || {
        let curves = heads.iter().flat_map(|head| &head.curves);
        let points = curves.flat_map(|curve| &curve.points);
        points.map(|point| point.step).filter(|&step| step > 0)
    };
    let text = format!(
        "Scores on the probe from step {} to {}, logarithmic, from 0 (▁) to 1 (█), and the last value. --head L0H0 \
         draws those of one head.",
        steps().min().unwrap_or(0),
        steps().max().unwrap_or(0)
    );
    Printout::new()
        .prose(text)
        .table(head_scores_table(heads))
        .draw(terminal)
}
