//! Curves in the terminal, over the logarithm of the step.

use anstyle::{RgbColor, Style};

use crate::{
    Ink,
    plot::{Curve, along, step_range},
};

const ROWS: usize = 16;
const COLUMNS: usize = 72;
/// What each curve is drawn with.
const MARKS: [char; 6] = ['*', 'o', '+', 'x', '#', '@'];

/// Draws curves of shares with a character each; a later curve hides an earlier one in the same
/// place.
///
/// ```
/// use headlight_report::{Curve, CurvePoint, Ink, curves_text, line_colour};
///
/// let point = |step, value| CurvePoint { step, value, interval: None };
/// let points = vec![point(1, 0.0), point(100, 1.0)];
/// let curve = Curve { name: "accuracy".to_owned(), colour: line_colour(0), points, null: None };
/// let text = curves_text(&[curve], Ink::Characters);
/// let lines: Vec<&str> = text.lines().collect();
/// assert_eq!(lines[0].find('*'), Some(4 + 71)); // the last step reaches 1
/// assert_eq!(lines[15].find('*'), Some(4)); // the first is at 0
/// assert_eq!(lines[17].trim(), "* accuracy");
/// ```
#[must_use]
pub fn curves_text(curves: &[Curve], ink: Ink) -> String {
    let steps = step_range(curves.iter());
    let mut places = vec![[None; COLUMNS]; ROWS];
    for (index, curve) in curves.iter().enumerate() {
        for point in curve.points.iter().filter(|point| point.step > 0) {
            let column = (along(point.step as f64, steps) * (COLUMNS - 1) as f64).round() as usize;
            let row = ((1.0 - point.value.clamp(0.0, 1.0)) * (ROWS - 1) as f64).round() as usize;
            places[row][column] = Some(index);
        }
    }
    let mark = |index: usize| {
        let character = MARKS[index % MARKS.len()];
        match ink {
            Ink::Characters => character.to_string(),
            Ink::Colour => {
                let [r, g, b] = curves[index].colour;
                let style = Style::new().fg_color(Some(RgbColor(r, g, b).into()));
                format!("{style}{character}{style:#}")
            }
        }
    };
    let mut lines: Vec<String> = places
        .iter()
        .enumerate()
        .map(|(row, places)| {
            let share = if row == 0 {
                "1"
            } else if row == ROWS - 1 {
                "0"
            } else {
                ""
            };
            let marks: String = places
                .iter()
                .map(|place| place.map_or_else(|| " ".to_owned(), mark))
                .collect();
            format!("{share:>2} |{}", marks.trim_end())
        })
        .collect();
    let last = steps[1].to_string();
    let first = format!("step {}", steps[0]);
    lines.push(format!(
        "    {first}{last:>width$}",
        width = COLUMNS - first.len()
    ));
    for (index, curve) in curves.iter().enumerate() {
        let null = curve
            .null
            .map_or_else(String::new, |null| format!(", null {null:.3}"));
        lines.push(format!("    {} {}{null}", mark(index), curve.name));
    }
    lines.join("\n")
}
