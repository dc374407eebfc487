//! Rows and columns for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};

/// A table without lines: the first column to the left, all others to the right.
///
/// ```
/// let table = headlight_report::plain_table(&["head", "accuracy"], [vec!["L0H1".to_owned(), "0.5".to_owned()]]);
/// assert_eq!(table, " head  accuracy\n L0H1       0.5");
/// ```
#[must_use]
pub fn plain_table(
    header: &[impl AsRef<str>],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(AsRef::as_ref));
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
