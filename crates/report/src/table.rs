//! Rows and columns for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table as Layout, presets::NOTHING};
use unicode_width::UnicodeWidthStr;

use crate::{
    label::one_line,
    prose::{with_minus, wrapped},
};

/// Text wider than this is broken into lines before a column is left out for it.
const BREAKS_FROM: usize = 20;
/// Of more columns that are left out, only the first and the last are named.
const MOST_NAMED: usize = 6;

/// A table without lines. Where a terminal is too narrow for it, the least important columns are
/// left out, and a line below says which.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns from the left that hold text, not numbers.
    text_columns: usize,
    /// The columns that are left out before all others, the least important first.
    first_to_go: Vec<String>,
    /// Where whoever misses a column finds it.
    whole_in: &'static str,
}

impl Table {
    /// The first column is text and always shown; the others are numbers. A column is more
    /// important than those to its right. Characters that would move or hide their neighbours are
    /// drawn as dots.
    #[must_use]
    pub fn new(header: &[impl AsRef<str>], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let line = |cells: Vec<String>| cells.iter().map(|cell| one_line(cell)).collect();
        Self {
            header: header.iter().map(|name| name.as_ref().to_owned()).collect(),
            rows: rows.into_iter().map(line).collect(),
            text_columns: 1,
            first_to_go: Vec::new(),
            whole_in: "--json",
        }
    }

    /// The same with text in the first `count` columns.
    #[must_use]
    pub fn text_columns(self, count: usize) -> Self {
        Self {
            text_columns: count,
            ..self
        }
    }

    /// The same with columns that are left out before all others, the least important first.
    #[must_use]
    pub fn first_to_go(self, names: &[impl AsRef<str>]) -> Self {
        let first_to_go = names.iter().map(|name| name.as_ref().to_owned()).collect();
        Self {
            first_to_go,
            ..self
        }
    }

    /// The same, whole in another place than `--json`.
    #[must_use]
    pub fn whole_in(self, place: &'static str) -> Self {
        Self {
            whole_in: place,
            ..self
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As text of at most `columns` columns.
    pub(crate) fn draw(&self, columns: usize) -> String {
        let all: Vec<usize> = (0..self.header.len()).collect();
        let mut shown = all.clone();
        let mut to_go = self.order_of_going().into_iter();
        while self.needed(&shown) > columns
            && let Some(next) = to_go.next()
        {
            shown.retain(|&column| column != next);
        }
        let left_out: Vec<&str> = all
            .iter()
            .filter(|column| !shown.contains(column))
            .map(|&column| self.header[column].as_str())
            .collect();
        let table = self.laid_out(&shown, columns);
        if left_out.is_empty() {
            return table;
        }
        let note = format!(
            "Left out: {}. See {}, or a terminal of {} columns.",
            some_of(&left_out),
            self.whole_in,
            self.needed(&all)
        );
        format!("{table}\n{}", wrapped(&note, columns, 0))
    }

    /// All columns that may be left out, the least important first. The first column and the most
    /// important of the others always stay.
    fn order_of_going(&self) -> Vec<usize> {
        let named = self.first_to_go.iter().filter_map(|name| {
            let column = self.header.iter().position(|other| other == name);
            column.filter(|&column| column > 0)
        });
        let mut order: Vec<usize> = named.collect();
        for column in (1..self.header.len()).rev() {
            if !order.contains(&column) {
                order.push(column);
            }
        }
        order.pop();
        order
    }

    /// The fewest columns of the terminal in which these columns of the table stand well.
    fn needed(&self, shown: &[usize]) -> usize {
        let widths = shown.iter().map(|&column| self.least_width(column));
        // A space before the first column, two between columns.
        widths.map(|width| width + 2).sum::<usize>() - 1
    }

    fn least_width(&self, column: usize) -> usize {
        let least = |cell: &str| {
            let longest_word = cell.split(' ').map(UnicodeWidthStr::width).max();
            cell.width().min(BREAKS_FROM.max(longest_word.unwrap_or(0)))
        };
        let cells = self.rows.iter().map(|row| least(cell(row, column)));
        cells.max().unwrap_or(0).max(least(&self.header[column]))
    }

    /// A cell as it stands in the terminal. A text may be a token, which stays as it is.
    fn written(&self, row: &[String], column: usize) -> String {
        let text = cell(row, column);
        if column < self.text_columns {
            text.to_owned()
        } else {
            with_minus(text)
        }
    }

    fn laid_out(&self, shown: &[usize], columns: usize) -> String {
        let mut layout = Layout::new();
        layout
            .load_preset(NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            // With the space after the last column, which is cut off.
            .set_width(u16::try_from(columns + 1).unwrap_or(u16::MAX));
        layout.set_header(shown.iter().map(|&column| &self.header[column]));
        for row in &self.rows {
            layout.add_row(shown.iter().map(|&column| self.written(row, column)));
        }
        for (column, &of_table) in layout.column_iter_mut().zip(shown) {
            if of_table >= self.text_columns {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        layout.trim_fmt()
    }
}

/// A row may end early.
fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// `a, b, c`, or `a … z (9 columns)`.
fn some_of(names: &[&str]) -> String {
    match names {
        [first, .., last] if names.len() > MOST_NAMED => {
            format!("{first} … {last} ({} columns)", names.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(text: &str) -> Vec<usize> {
        text.lines().map(UnicodeWidthStr::width).collect()
    }

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn the_first_column_stands_left_and_numbers_stand_right() {
        let table = Table::new(&["head", "accuracy"], [row(&["L0H1", "0.5"])]);
        assert_eq!(table.draw(80), " head  accuracy\n L0H1       0.5");
    }

    #[test]
    fn a_negative_number_has_a_minus_sign_and_a_token_stays() {
        let table = Table::new(&["token", "logit"], [row(&["-1", "-0.5"])]);
        assert_eq!(table.draw(80), " token  logit\n -1      −0.5");
    }

    #[test]
    fn columns_leave_in_their_order_and_are_named() {
        let table = Table::new(
            &["head", "one", "two", "three"],
            [row(&["L0H1", "1", "2", "3"])],
        );
        assert_eq!(table.needed(&[0, 1, 2, 3]), 22);
        assert_eq!(
            table.draw(22),
            " head  one  two  three\n L0H1    1    2      3"
        );
        assert_eq!(
            table.draw(21),
            " head  one  two\n L0H1    1    2\nLeft out: three. See\n--json, or a terminal\nof 22 columns."
        );
        let table = table.first_to_go(&["one", "two"]).whole_in("seeds.json");
        assert!(table.draw(21).starts_with(" head  two  three\n"));
        assert!(table.draw(16).starts_with(" head  three\n"));
        assert!(
            table.draw(16).replace('\n', " ").contains("one, two."),
            "{}",
            table.draw(16)
        );
        assert!(table.draw(80).lines().count() == 2);
    }

    #[test]
    fn of_many_columns_only_the_ends_are_named() {
        let header: Vec<String> = (0..40).map(|head| format!("L0H{head}")).collect();
        let text = Table::new(&header, [vec!["1".to_owned(); 40]]).draw(60);
        assert!(
            text.replace('\n', " ")
                .contains("Left out: L0H10 … L0H39 (30 columns)."),
            "{text}"
        );
        assert!(widths(&text).iter().all(|&width| width <= 60), "{text}");
    }

    #[test]
    fn wide_characters_and_emoji_keep_columns_below_each_other() {
        let names = [
            "cat",
            "猫",
            "🐈",
            "e\u{301}t",
            "👩\u{200d}💻",
            "a\tb\u{202e}",
        ];
        let rows = names.map(|name| row(&[name, "0.50"]));
        let text = Table::new(&["token", "weight"], rows).draw(80);
        let ends: Vec<usize> = widths(&text);
        assert_eq!(ends, vec![ends[0]; names.len() + 1], "{text}");
        assert!(!text.contains(['\t', '\u{202e}', '\u{200d}']), "{text}");
    }

    #[test]
    fn long_text_breaks_before_numbers_are_left_out() {
        let heads: Vec<String> = (0..30).map(|head| format!("L0H{head}")).collect();
        let table = Table::new(
            &["without", "accuracy"],
            [row(&[&heads.join(" "), "0.123"])],
        );
        for columns in [40, 80, 100] {
            let text = table.draw(columns);
            assert!(
                text.contains("0.123") && !text.contains("Left out"),
                "{text}"
            );
            assert!(
                widths(&text).iter().all(|&width| width <= columns),
                "{text}"
            );
            assert!(text.contains("L0H29"));
        }
    }

    #[test]
    fn no_terminal_is_too_narrow() {
        let table = Table::new(
            &["head", "looks like", "x"],
            [row(&["L0H1", "previous", "1"])],
        );
        for columns in 0..10 {
            assert!(!table.draw(columns).is_empty());
        }
    }
}
