//! An attention pattern in the terminal, tokens on both axes.

use std::fmt::Write;

use anstyle::{RgbColor, Style};

use headlight_heads::MayAttend;

use crate::{colour::colour, label::token_label};

/// One head's pattern on one sequence.
#[derive(Debug, Clone, Copy)]
pub struct Heatmap<'a> {
    /// `[queries, keys]`, row by row.
    pub weights: &'a [f32],
    /// The tokens, which name rows and columns.
    pub tokens: &'a [String],
    /// What is drawn of it; the rest is left blank or hatched.
    pub may_attend: MayAttend,
}

/// What weights are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Background colours.
    Colour,
    /// Characters from light to dark.
    Characters,
}

/// From weight 0 to weight 1.
const CHARACTERS: [char; 10] = ['.', ':', '-', '=', '+', 'o', '*', 'x', '%', '@'];

impl Heatmap<'_> {
    /// Draws it: a row per query, two columns per key.
    ///
    /// ```
    /// use headlight_heads::MayAttend;
    /// use headlight_report::{Heatmap, Ink};
    ///
    /// let tokens = ["a".to_owned(), "b".to_owned()];
    /// let heatmap = Heatmap { weights: &[1.0, 0.0, 0.2, 0.8], tokens: &tokens, may_attend: MayAttend::Causal };
    /// let picture = heatmap.draw(Ink::Characters);
    /// let lines: Vec<&str> = picture.lines().collect();
    /// assert_eq!(lines[..3], ["   a b", "a  @@", "b  --xx"]);
    /// let picture = Heatmap { may_attend: MayAttend::All, ..heatmap }.draw(Ink::Characters);
    /// assert_eq!(picture.lines().nth(1), Some("a  @@.."));
    /// let picture = Heatmap { may_attend: MayAttend::Window(1), ..heatmap }.draw(Ink::Characters);
    /// assert_eq!(picture.lines().nth(2), Some("b    xx"));
    /// ```
    #[must_use]
    pub fn draw(&self, ink: Ink) -> String {
        let labels: Vec<String> = self.tokens.iter().map(|token| token_label(token)).collect();
        let left = labels
            .iter()
            .map(|label| label.chars().count())
            .max()
            .unwrap_or(0);
        let mut out = String::new();
        for line in column_labels(&labels) {
            let _ = writeln!(out, "{:left$}  {line}", "");
        }
        for (query, name) in labels.iter().enumerate() {
            let _ = write!(out, "{name:>left$}  ");
            let keys = self.may_attend.keys(query, labels.len());
            out.extend(std::iter::repeat_n("  ", keys.start));
            for key in keys {
                cell(&mut out, self.weights[query * labels.len() + key], ink);
            }
            out.push('\n');
        }
        let _ = write!(out, "{:left$}  weight 0 ", "");
        for step in 0..CHARACTERS.len() {
            cell(&mut out, step as f32 / (CHARACTERS.len() - 1) as f32, ink);
        }
        out.push_str(" 1, rows are queries, columns are keys\n");
        out
    }
}

fn cell(out: &mut String, weight: f32, ink: Ink) {
    match ink {
        Ink::Colour => {
            let [r, g, b] = colour(weight);
            let style = Style::new().bg_color(Some(RgbColor(r, g, b).into()));
            let _ = write!(out, "{style}  {style:#}");
        }
        Ink::Characters => {
            let index = (weight.clamp(0.0, 1.0) * (CHARACTERS.len() - 1) as f32).round() as usize;
            out.extend([CHARACTERS[index]; 2]);
        }
    }
}

/// Labels written downwards, so that long tokens need no wide columns.
fn column_labels(labels: &[String]) -> Vec<String> {
    let height = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(0);
    (0..height)
        .map(|line| {
            let character = |label: &String| {
                let padding = height - label.chars().count();
                line.checked_sub(padding)
                    .and_then(|index| label.chars().nth(index))
                    .unwrap_or(' ')
            };
            labels
                .iter()
                .flat_map(|label| [character(label), ' '])
                .collect::<String>()
                .trim_end()
                .to_owned()
        })
        .collect()
}
