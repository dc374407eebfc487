//! An attention pattern in the terminal, tokens on both axes.

use std::fmt::Write;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use headlight_heads::MayAttend;

use crate::{
    Ink, Terminal,
    colour::{colour, painted},
    label::terminal_label,
    pattern_dots::{Dots, character, half_blocks, rows_in_a_line},
    prose::wrapped,
};

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

/// Weights in the legend, from 0 to 1.
const LEGEND: usize = 10;

impl Heatmap<'_> {
    /// Draws it in the columns of `terminal`. Where there is room, a query has a line and a key two
    /// columns. Else a key has one column, and in colour a line has two queries. Where even that is
    /// too wide, a dot is the largest weight of several queries and keys, and a sentence says so.
    ///
    /// ```
    /// use headlight_heads::MayAttend;
    /// use headlight_report::{Heatmap, Ink, Terminal};
    ///
    /// let tokens = ["a".to_owned(), "b".to_owned()];
    /// let heatmap = Heatmap { weights: &[1.0, 0.0, 0.2, 0.8], tokens: &tokens, may_attend: MayAttend::Causal };
    /// let terminal = Terminal { columns: 80, ink: Ink::Characters };
    /// let picture = heatmap.draw(&terminal);
    /// let lines: Vec<&str> = picture.lines().collect();
    /// assert_eq!(lines[..3], ["   a b", "a  @@", "b  --xx"]);
    /// let picture = Heatmap { may_attend: MayAttend::All, ..heatmap }.draw(&terminal);
    /// assert_eq!(picture.lines().nth(1), Some("a  @@.."));
    /// let picture = Heatmap { may_attend: MayAttend::Window(1), ..heatmap }.draw(&terminal);
    /// assert_eq!(picture.lines().nth(2), Some("b    xx"));
    /// // Three columns for names, two for keys.
    /// let picture = heatmap.draw(&Terminal { columns: 5, ..terminal });
    /// assert_eq!(picture.lines().nth(2), Some("b  -x"));
    /// ```
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let Terminal { columns, ink } = *terminal;
        let length = self.tokens.len();
        let names: Vec<String> = self
            .tokens
            .iter()
            .map(|token| terminal_label(token, columns / 4))
            .collect();
        let left = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let room = columns.saturating_sub(left + 2).max(1);
        let is_wide = 2 * length <= room;
        let dots = Dots {
            length,
            per_dot: length.div_ceil(room).max(1),
            may_attend: self.may_attend,
            weight: |query: usize, key: usize| self.weights[query * length + key],
        };
        let named: Vec<&str> = names
            .iter()
            .step_by(dots.per_dot)
            .map(String::as_str)
            .collect();
        let rows_in_a_line = if is_wide { 1 } else { rows_in_a_line(ink) };

        // Both queries of a line have names where there is room.
        let has_pairs = rows_in_a_line > 1 && 2 * left + 1 + 2 + dots.side() <= columns;
        let indent = if has_pairs { 2 * left + 1 } else { left };

        let mut out = String::new();
        for line in column_labels(&named, if is_wide { 2 } else { 1 }) {
            let _ = writeln!(out, "{:indent$}  {line}", "");
        }
        for row in (0..dots.side()).step_by(rows_in_a_line) {
            let mut line = right_aligned(named[row], left);
            if has_pairs {
                let lower = named.get(row + 1).map_or("", |name| *name);
                line = line + " " + &right_aligned(lower, left);
            }
            line += "  ";
            let mut cells = String::new();
            for column in 0..dots.side() {
                let (upper, lower) = (dots.at(row, column), dots.at(row + 1, column));
                let cell = match (ink, is_wide) {
                    (Ink::Characters, true) => upper.map(|weight| twice(character(weight))),
                    (Ink::Characters, false) => upper.map(|weight| character(weight).to_string()),
                    (Ink::Colour, true) => {
                        upper.map(|weight| painted("  ", None, Some(colour(weight))))
                    }
                    (Ink::Colour, false) => half_blocks(upper, lower).map(|blocks| {
                        painted(
                            &blocks.character.to_string(),
                            Some(blocks.front),
                            blocks.behind,
                        )
                    }),
                };
                match cell {
                    Some(cell) => {
                        line.push_str(&cells);
                        cells.clear();
                        line.push_str(&cell);
                    }
                    // Blanks are written only before something.
                    None => cells.push_str(if is_wide { "  " } else { " " }),
                }
            }
            out.push_str(&line);
            out.push('\n');
        }
        let mut meaning = "rows are queries, columns are keys".to_owned();
        if has_pairs {
            meaning += "; a line has two queries";
        } else if rows_in_a_line > 1 {
            meaning += "; a line has two queries, and the name of the upper one";
        }
        if dots.per_dot > 1 {
            let _ = write!(
                meaning,
                "; a dot is the largest weight of {0} queries and {0} keys, and has the name of the first",
                dots.per_dot
            );
        }
        out + &legend(&meaning, indent, terminal)
    }
}

/// The scale of weights and what the cells mean, below them.
fn legend(meaning: &str, indent: usize, terminal: &Terminal) -> String {
    let mut out = format!("{:indent$}  weight 0 ", "");
    for step in 0..LEGEND {
        let weight = step as f32 / (LEGEND - 1) as f32;
        out += &match terminal.ink {
            Ink::Characters => twice(character(weight)),
            Ink::Colour => painted("  ", None, Some(colour(weight))),
        };
    }
    let used = indent + 2 + "weight 0 ".len() + 2 * LEGEND + " 1, ".len();
    if used + meaning.width() <= terminal.columns {
        format!("{out} 1, {meaning}\n")
    } else {
        format!("{out} 1\n{}\n", wrapped(meaning, terminal.columns, 0))
    }
}

fn right_aligned(name: &str, columns: usize) -> String {
    let blank = columns - name.width();
    format!("{:blank$}{name}", "")
}

fn twice(character: char) -> String {
    [character; 2].iter().collect()
}

/// Names written downwards, so that long tokens need no wide columns. With one column for a name
/// and characters of two, only every second name has room.
fn column_labels(names: &[&str], columns: usize) -> Vec<String> {
    let has_wide = names
        .iter()
        .any(|name| name.graphemes(true).any(|character| character.width() > 1));
    let every = if has_wide && columns == 1 { 2 } else { 1 };
    let columns = columns * every;
    let names: Vec<Vec<&str>> = names
        .iter()
        .step_by(every)
        .map(|name| name.graphemes(true).collect())
        .collect();
    let height = names.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    for line in 0..height {
        let mut out = String::new();
        for name in &names {
            let above = height - name.len();
            let character = match line.checked_sub(above) {
                Some(index) if name[index].width() <= columns => name[index],
                Some(_) => "·",
                None => " ",
            };
            let blank = columns - character.width();
            let _ = write!(out, "{character}{:blank$}", "");
        }
        lines.push(out.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head that looks one token back.
    fn picture(tokens: &[&str], columns: usize, ink: Ink) -> Vec<String> {
        let length = tokens.len();
        let weight = |at: usize| f32::from(u8::from(at % length + 1 == at / length || at == 0));
        let weights: Vec<f32> = (0..length * length).map(weight).collect();
        let tokens: Vec<String> = tokens.iter().map(|&token| token.to_owned()).collect();
        let heatmap = Heatmap {
            weights: &weights,
            tokens: &tokens,
            may_attend: MayAttend::Causal,
        };
        let picture = heatmap.draw(&Terminal { columns, ink });
        picture.lines().map(str::to_owned).collect()
    }

    /// Without colours.
    fn plain(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn sixty_four_tokens_fit_eighty_columns() {
        let tokens: Vec<String> = (0..64).map(|token| format!("t{token}")).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        for (ink, lines) in [(Ink::Colour, 32), (Ink::Characters, 64)] {
            let picture = picture(&tokens, 80, ink);
            let wide = picture.iter().map(|line| plain(line).width()).max();
            assert!(wide <= Some(80), "{picture:#?}");
            // Three lines of names, the pattern, one or two lines of legend.
            let rest = picture.len() - 3 - lines;
            assert!((1..=2).contains(&rest), "{rest} lines of legend");
            // In colour both queries of a line have their names.
            let names = if ink == Ink::Colour { 3 + 1 + 3 } else { 3 };
            assert_eq!(plain(&picture[3 + lines - 1]).width(), names + 2 + 64);
        }
    }

    #[test]
    fn every_weight_keeps_its_place_in_every_width() {
        let tokens: Vec<String> = (0..64).map(|token| format!("t{token}")).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        for (columns, wide) in [(80, 1), (100, 1), (140, 2)] {
            let picture = picture(&tokens, columns, Ink::Characters);
            for query in 1..64 {
                let line = &picture[3 + query];
                let places: Vec<usize> = line.match_indices('@').map(|(at, _)| at - 5).collect();
                let key = query - 1;
                let expected: Vec<usize> = (key * wide..(key + 1) * wide).collect();
                assert_eq!(places, expected, "{line}");
            }
        }
    }

    #[test]
    fn a_sequence_that_is_too_long_keeps_its_largest_weights_and_says_so() {
        let tokens = vec!["a"; 100];
        let picture = picture(&tokens, 53, Ink::Characters);
        assert!(
            picture.iter().all(|line| line.width() <= 53),
            "{picture:#?}"
        );
        // 50 dots of 2 queries and 2 keys; the pairs of a head that looks one back lie in its own
        // dot and in the one before.
        assert_eq!(picture[1 + 49], format!("a  {}@@", ".".repeat(48)));
        let legend = picture[1 + 50..].join(" ");
        assert!(
            legend.contains("the largest weight of 2 queries and 2 keys"),
            "{legend}"
        );
    }

    #[test]
    fn two_queries_share_a_line_in_colour() {
        let lines = picture(&["a", "b", "c"], 8, Ink::Colour);
        assert_eq!(plain(&lines[0]), "     abc");
        assert_eq!(plain(&lines[1]), "a b  ▀▄");
        // a on a above, b on a below: both weight 1.
        assert!(lines[1].contains(&painted("▀", Some(colour(1.0)), Some(colour(1.0)))));
        assert_eq!(plain(&lines[2]), "c    ▀▀▀");
        assert!(lines[2].contains(&painted("▀", Some(colour(1.0)), None)));
        let lines = picture(&["a", "b", "c"], 7, Ink::Colour);
        assert_eq!(plain(&lines[1]), "a  ▀▄");
        let meaning = lines[4..].join(" ");
        assert!(
            meaning.ends_with("and the name of the upper one"),
            "{meaning}"
        );
    }

    #[test]
    fn wide_characters_and_emoji_keep_cells_below_their_names() {
        let tokens = ["cat", "猫", "🐈", "e\u{301}", "❤\u{fe0f}"];
        let wide = picture(&tokens, 80, Ink::Characters);
        assert_eq!(
            wide[..4],
            ["     c", "     a", "     t 猫🐈e\u{301} ❤", "cat  @@"]
        );
        assert_eq!(wide[4..6], [" 猫  @@..", " 🐈  ..@@.."]);
        assert_eq!(wide[7], "  ❤  ......@@..");
        let narrow = picture(&tokens, 12, Ink::Characters);
        // Of two names side by side one has room: cat, 🐈 and ❤.
        assert_eq!(narrow[..3], ["     c", "     a", "     t 🐈❤"]);
        assert_eq!(narrow[5], " 🐈  .@.");
    }
}
