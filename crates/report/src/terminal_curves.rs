//! Curves in the terminal, over the logarithm of the step.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Color,
    symbols::Marker,
    widgets::{
        Widget,
        canvas::{Canvas, Context, Line, Points},
    },
};
use unicode_width::UnicodeWidthStr;

use crate::{
    Ink, Terminal,
    colour::{painted, terminal_colour},
    plot::{Curve, along, step_range},
    prose::wrapped,
};

/// With a tick at every quarter.
const ROWS: u16 = 17;
/// What a quarter of the axis may be, times a power of ten.
const ROUND: [f64; 9] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 10.0];
/// Wider plots show no more of a run.
const MOST_COLUMNS: usize = 100;
/// Columns left of the plot, for the numbers of the axis and the axis.
const LEFT: usize = 7;
/// What each curve is drawn with where there are no colours.
const MARKS: [char; 6] = ['*', 'o', '+', 'x', '#', '@'];

/// Curves of one quantity.
#[derive(Debug, Clone, Copy)]
pub struct TerminalCurves<'a> {
    /// What is drawn, with its unit.
    pub title: &'a str,
    /// A later curve hides an earlier one in the same place.
    pub curves: &'a [Curve],
    /// The largest value to be drawn; the axis goes from 0 to the next number with round quarters.
    pub highest: f64,
}

impl TerminalCurves<'_> {
    /// Draws lines between the points, the null of each curve as a dotted line, and the numbers of
    /// both axes. Step 0, which has no logarithm, is left out.
    ///
    /// ```
    /// use headlight_report::{Curve, CurvePoint, Ink, Terminal, TerminalCurves, line_colour};
    ///
    /// let point = |step, value| CurvePoint { step, value, interval: None };
    /// let points = vec![point(1, 0.0), point(100, 1.0)];
    /// let curve = Curve { name: "accuracy".to_owned(), colour: line_colour(0), points, null: None };
    /// let curves = [curve];
    /// let drawn = TerminalCurves { title: "accuracy", curves: &curves, highest: 1.0 };
    /// let text = drawn.draw(&Terminal { columns: 80, ink: Ink::Characters });
    /// let lines: Vec<&str> = text.lines().collect();
    /// assert_eq!(lines[0], "accuracy over the step (logarithmic)");
    /// assert!(lines[1].starts_with("  1.00 ┤") && lines[1].ends_with('*')); // step 100 reaches 1
    /// assert_eq!(lines[1].chars().count(), 80);
    /// assert!(lines[17].starts_with("  0.00 ┤*")); // step 1 is at 0
    /// let numbers: Vec<&str> = lines[19].split_whitespace().collect();
    /// assert_eq!(numbers, ["1", "2", "5", "10", "20", "50", "100"]);
    /// assert_eq!(lines[20], "       * accuracy");
    /// ```
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let columns = terminal.columns.clamp(LEFT + 10, MOST_COLUMNS) - LEFT - 1;
        let steps = step_range(self.curves.iter());
        let area = Rect::new(0, 0, columns as u16, ROWS);
        let mut buffer = Buffer::empty(area);
        for (index, curve) in self.curves.iter().enumerate() {
            let (colour, marker, dots) = match terminal.ink {
                Ink::Colour => {
                    let [r, g, b] = terminal_colour(curve.colour);
                    (Color::Rgb(r, g, b), Marker::Braille, Marker::Braille)
                }
                Ink::Characters => {
                    let mark = Marker::Custom(MARKS[index % MARKS.len()]);
                    (Color::Reset, mark, Marker::Custom('.'))
                }
            };
            if let Some(null) = curve.null {
                let dotted: Vec<(f64, f64)> = (0..columns)
                    .step_by(3)
                    .map(|column| (column as f64 / (columns - 1) as f64, null))
                    .collect();
                self.paint(&mut buffer, dots, |context| {
                    context.draw(&Points::new(&dotted, colour));
                });
            }
            let at: Vec<(f64, f64)> = curve
                .points
                .iter()
                .filter(|point| point.step > 0 && point.value.is_finite())
                .map(|point| {
                    let y = point.value.clamp(0.0, self.top());
                    (along(point.step as f64, steps), y)
                })
                .collect();
            self.paint(&mut buffer, marker, |context| {
                context.draw(&Points::new(&at, colour));
                for pair in at.windows(2) {
                    let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
                    context.draw(&Line::new(x1, y1, x2, y2, colour));
                }
            });
        }

        let title = format!("{} over the step (logarithmic)", self.title);
        let mut lines = vec![wrapped(&title, terminal.columns, 0)];
        for row in 0..ROWS {
            lines.push(format!("{}{}", self.axis(row), text_of_row(&buffer, row)));
        }
        lines.extend(step_axis(steps, columns));
        lines.push(self.legend(terminal));
        lines.join("\n")
    }

    fn paint(&self, buffer: &mut Buffer, marker: Marker, paint: impl Fn(&mut Context)) {
        let canvas = Canvas::default()
            .marker(marker)
            .x_bounds([0.0, 1.0])
            .y_bounds([0.0, self.top()])
            .paint(paint);
        canvas.render(buffer.area, buffer);
    }

    /// The upper end of the axis: four times a round number.
    fn top(&self) -> f64 {
        let quarter = self.highest.max(1e-6) / 4.0;
        let power = 10_f64.powf(quarter.log10().floor());
        let mut round = ROUND.iter().map(|factor| factor * power);
        let fits = |round: &f64| *round > quarter * (1.0 - 1e-9);
        4.0 * round.find(fits).unwrap_or(quarter)
    }

    /// ` 0.75 ┤`, or without a number.
    fn axis(&self, row: u16) -> String {
        let quarter = (ROWS - 1) / 4;
        if row.is_multiple_of(quarter) {
            let share = 1.0 - f64::from(row) / f64::from(ROWS - 1);
            format!("{:6.2} ┤", share * self.top())
        } else {
            format!("{:6} │", "")
        }
    }

    fn legend(&self, terminal: &Terminal) -> String {
        let entry = |(index, curve): (usize, &Curve)| {
            let mark = match terminal.ink {
                Ink::Characters => MARKS[index % MARKS.len()].to_string(),
                Ink::Colour => painted("━", Some(terminal_colour(curve.colour)), None),
            };
            let null = curve
                .null
                .map_or_else(String::new, |null| format!(", null {null:.3} (dotted)"));
            let name = wrapped(
                &format!("{}{null}", curve.name),
                terminal.columns.saturating_sub(LEFT + 2),
                0,
            );
            let indented = name.replace('\n', &format!("\n{:1$}", "", LEFT + 2));
            format!("{:LEFT$}{mark} {indented}", "")
        };
        let entries: Vec<String> = self.curves.iter().enumerate().map(entry).collect();
        entries.join("\n")
    }
}

/// A row of cells with their colours, without blanks at its end.
fn text_of_row(buffer: &Buffer, row: u16) -> String {
    let mut text = String::new();
    let mut blanks = String::new();
    for column in 0..buffer.area.width {
        let cell = &buffer[(column, row)];
        if cell.symbol() == " " {
            blanks.push(' ');
            continue;
        }
        text.push_str(&blanks);
        blanks.clear();
        let front = match cell.fg {
            Color::Rgb(r, g, b) => Some([r, g, b]),
            _ => None,
        };
        text.push_str(&painted(cell.symbol(), front, None));
    }
    text
}

/// The axis of steps and its numbers: the first and the last step, and between them, as far as
/// there is room, 1, 2 and 5 times powers of ten.
fn step_axis(steps: [f64; 2], columns: usize) -> [String; 2] {
    let [first, last] = steps;
    let powers = |factor: f64| (0..12).map(move |power| factor * 10_f64.powi(power));
    let round = powers(1.0).chain(powers(5.0)).chain(powers(2.0));
    let between = round.filter(|&step| step > first && step < last);
    let mut axis = vec!['─'; columns];
    let mut numbers = vec![' '; LEFT + 1 + columns];
    for step in [last, first].into_iter().chain(between) {
        let column = (along(step, steps) * (columns - 1) as f64).round() as usize;
        let number = step.to_string();
        // In the middle below its tick, or ending where the plot ends.
        let from = (LEFT + 1 + column)
            .saturating_sub(number.width() / 2)
            .min(numbers.len() - number.width());
        let room = from.saturating_sub(1)..(from + number.width() + 1).min(numbers.len());
        if numbers[room].iter().all(|&character| character == ' ') {
            axis[column] = '┴';
            for (place, digit) in numbers[from..].iter_mut().zip(number.chars()) {
                *place = digit;
            }
        }
    }
    let axis: String = axis.into_iter().collect();
    let numbers: String = numbers.into_iter().collect();
    [
        format!("{:LEFT$}└{axis}", ""),
        numbers.trim_end().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CurvePoint, line_colour};

    fn curve(points: &[(usize, f64)], null: Option<f64>) -> Curve {
        let point = |&(step, value): &(usize, f64)| CurvePoint {
            step,
            value,
            interval: None,
        };
        Curve {
            name: "a curve with a name that takes some room".to_owned(),
            colour: line_colour(0),
            points: points.iter().map(point).collect(),
            null,
        }
    }

    fn drawn(curves: &[Curve], columns: usize, ink: Ink) -> Vec<String> {
        let curves = TerminalCurves {
            title: "accuracy",
            curves,
            highest: 1.0,
        };
        let text = curves.draw(&Terminal { columns, ink });
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn curves_keep_within_the_terminal_and_are_joined() {
        let curve = curve(&[(0, 0.5), (10, 0.0), (1000, 1.0)], Some(0.25));
        for columns in [30, 80, 100, 140] {
            for ink in [Ink::Characters, Ink::Colour] {
                let lines = drawn(std::slice::from_ref(&curve), columns, ink);
                let plain: Vec<String> = lines
                    .iter()
                    .map(|line| anstream::adapter::strip_str(line).to_string())
                    .collect();
                assert!(
                    plain.iter().all(|line| line.width() <= columns),
                    "{plain:#?}"
                );
                // Every row of the plot has some of the line.
                assert!(
                    plain[1..18].iter().all(|line| line.width() > LEFT + 1),
                    "{plain:#?}"
                );
                assert_eq!(lines == plain, ink == Ink::Characters);
            }
        }
    }

    #[test]
    fn a_null_is_a_dotted_line_at_its_height() {
        let lines = drawn(
            &[curve(&[(1, 1.0), (9, 1.0)], Some(0.25))],
            80,
            Ink::Characters,
        );
        assert!(lines[13].starts_with("  0.25 ┤.  .  .  ."), "{lines:#?}");
        assert!(lines[1].ends_with(&"*".repeat(72)), "{lines:#?}");
    }

    #[test]
    fn the_numbers_of_the_axis_are_round() {
        let curves = [curve(&[(1, 1.0), (9, 4.09)], None)];
        let drawn = TerminalCurves {
            title: "loss",
            curves: &curves,
            highest: 4.09,
        };
        let text = drawn.draw(&Terminal {
            columns: 80,
            ink: Ink::Characters,
        });
        let numbers: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once(" ┤"))
            .map(|(number, _)| number.trim())
            .collect();
        assert_eq!(numbers, ["5.00", "3.75", "2.50", "1.25", "0.00"]);
    }

    #[test]
    fn ticks_stand_where_their_steps_are() {
        // 50 to 5000 are two powers of ten over 70 columns: 500 is in the middle.
        let [axis, numbers] = step_axis([50.0, 5000.0], 71);
        let ticks: Vec<usize> = axis
            .chars()
            .enumerate()
            .filter(|(_, character)| *character == '┴')
            .map(|(column, _)| column - LEFT - 1)
            .collect();
        assert!(ticks.contains(&0) && ticks.contains(&35) && ticks.contains(&70));
        let written: Vec<&str> = numbers.split_whitespace().collect();
        assert_eq!(written.len(), ticks.len());
        assert_eq!(numbers.find("500 "), Some(LEFT + 1 + 35 - 1));
    }

    #[test]
    fn a_run_without_steps_is_drawn_empty() {
        let lines = drawn(&[curve(&[], None)], 80, Ink::Characters);
        assert_eq!(lines[1], "  1.00 ┤");
    }
}
