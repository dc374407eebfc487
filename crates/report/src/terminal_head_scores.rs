//! How the scores of every head changed over training, as a table: a line per head.

use headlight_heads::Role;

use crate::{
    HeadCurves, Table,
    numbers::or_dash,
    plot::step_range,
    sparkline::sparkline,
    terminal_heads::{column_of, columns_first_to_go},
};

/// Characters of each curve.
const COLUMNS: usize = 10;

/// One line per head, one column per score: its curve over the logarithm of the step, from 0 (`▁`)
/// to 1 (`█`), and its last value.
#[must_use]
pub fn head_scores_table(heads: &[HeadCurves]) -> Table {
    let steps = step_range(heads.iter().flat_map(|head| &head.curves));
    let scores = heads.first().map_or_else(Vec::new, |head| {
        let names = head.curves.iter().map(|curve| column_of(&curve.name));
        names.collect::<Vec<_>>()
    });
    let header = [vec!["head".to_owned(), "looks like".to_owned()], scores].concat();
    let row = |head: &HeadCurves| {
        let mut row = vec![
            head.head.to_string(),
            head.role.map_or("", Role::name).to_owned(),
        ];
        for curve in &head.curves {
            let last = curve.points.last();
            let cell =
                last.map(|last| format!("{} {:.2}", sparkline(curve, steps, COLUMNS), last.value));
            row.push(or_dash(cell));
        }
        row
    };
    Table::new(&header, heads.iter().map(row))
        .text_columns(2)
        .first_to_go(&columns_first_to_go())
}
