//! The tables in what a verb prints as JSON, one row an observation, as comma-separated values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::csv;

/// A table with a name; the one of the value itself has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TidyTable {
    /// The path of fields that lead to it, with dots: `heads.scores`.
    pub name: String,
    /// As comma-separated values.
    pub csv: String,
}

/// Every table in a value.
///
/// - A list of objects is a table: a row for each, a column for each field.
/// - An object in a row gives columns with a dot: `output.low`.
/// - An object inside a row that has no plain field has names as keys, so it is a table of its own: a
///   row for each, the key in the column `name`.
/// - A list in a row is a table of its own: a row for each element, with its place in the column
///   `index` (and `index.1` in the lists inside) and, if it is no object, itself in the column
///   `value`.
/// - A table inside a row begins with the plain fields of this row.
///
/// Numbers have all their digits. What is missing or null is empty.
///
/// ```
/// use headlight_report::tidy_tables;
/// use serde_json::json;
///
/// let heads = json!([
///     { "head": "L0H0", "writes": 0.5, "scores": { "induction": { "value": 0.25, "null": 0.125 } } },
///     { "head": "L0H1", "scores": { "induction": { "value": 0.75, "null": 0.125 } } },
/// ]);
/// let tables = tidy_tables(&heads);
/// assert_eq!(tables[0].csv, "head,writes\nL0H0,0.5\nL0H1,\n");
/// assert_eq!(tables[1].name, "scores");
/// assert_eq!(
///     tables[1].csv,
///     "head,writes,name,null,value\nL0H0,0.5,induction,0.125,0.25\nL0H1,,induction,0.125,0.75\n"
/// );
/// ```
#[must_use]
pub fn tidy_tables(value: &Value) -> Vec<TidyTable> {
    let mut tables = Tables::default();
    match value {
        Value::Array(rows) if rows.iter().all(Value::is_object) => {
            for row in rows {
                tables.add_row("", &Row::default(), row);
            }
        }
        Value::Array(_) => tables.add_list("", &Row::default(), value, 0),
        row => tables.add_row("", &Row::default(), row),
    }
    tables.finished()
}

/// The fields of a row by column, in the order of the columns.
type Row = Vec<(String, Value)>;

/// Tables by name, in the order in which they were met.
#[derive(Default)]
struct Tables {
    names: Vec<String>,
    rows: BTreeMap<String, Vec<Row>>,
}

impl Tables {
    /// A row of `table`, after the fields of the row around it; what is inside the row becomes
    /// tables of its own.
    fn add_row(&mut self, table: &str, around: &Row, value: &Value) {
        let mut row = around.clone();
        let mut inside = Vec::new();
        match value {
            Value::Object(fields) => flatten("", fields, &mut row, &mut inside),
            plain => set(&mut row, "value", plain.clone()),
        }
        let has_own = row.len() > around.len();
        // Its own fields tell rows apart; those of objects inside are measurements.
        let (outer, own) = row.split_at(around.len());
        let mut plain = outer.to_vec();
        plain.extend(
            own.iter()
                .filter(|(column, _)| !column.contains('.'))
                .cloned(),
        );
        if has_own {
            self.push(table, row);
        }
        for (field, value) in inside {
            let name = joined(table, &field);
            match value {
                Value::Object(named) => {
                    for (key, value) in named {
                        let mut around = plain.clone();
                        set(&mut around, "name", Value::from(key.as_str()));
                        match value {
                            Value::Array(_) => self.add_list(&name, &around, value, 0),
                            row => self.add_row(&name, &around, row),
                        }
                    }
                }
                list => self.add_list(&name, &plain, list, 0),
            }
        }
    }

    /// A row for each element of a list, whose lists are `depth` lists inside.
    fn add_list(&mut self, table: &str, around: &Row, list: &Value, depth: usize) {
        let column = match depth {
            0 => "index".to_owned(),
            depth => format!("index.{depth}"),
        };
        for (index, element) in list.as_array().into_iter().flatten().enumerate() {
            let mut around = around.clone();
            set(&mut around, &column, Value::from(index));
            match element {
                Value::Array(_) => self.add_list(table, &around, element, depth + 1),
                element => self.add_row(table, &around, element),
            }
        }
    }

    fn push(&mut self, table: &str, row: Row) {
        if !self.rows.contains_key(table) {
            self.names.push(table.to_owned());
        }
        self.rows.entry(table.to_owned()).or_default().push(row);
    }

    fn finished(mut self) -> Vec<TidyTable> {
        let mut tables = Vec::new();
        for name in self.names {
            let rows = self.rows.remove(&name).unwrap_or_default();
            tables.push(TidyTable {
                csv: csv_of(&rows),
                name,
            });
        }
        tables
    }
}

/// Puts plain fields into `row`, and what is a table of its own into `inside`.
fn flatten<'a>(
    prefix: &str,
    fields: &'a Map<String, Value>,
    row: &mut Row,
    inside: &mut Vec<(String, &'a Value)>,
) {
    for (key, value) in fields {
        let name = joined(prefix, key);
        match value {
            Value::Array(_) => inside.push((name, value)),
            Value::Object(named) if is_by_name(named) => inside.push((name, value)),
            Value::Object(fields) => flatten(&name, fields, row, inside),
            plain => set(row, &name, plain.clone()),
        }
    }
}

/// Whether the keys of an object are names of things alike, and not fields.
fn is_by_name(fields: &Map<String, Value>) -> bool {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    !fields.values().any(is_plain)
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

/// Sets a field. If a row around has one of this name, that one becomes `around.NAME`.
fn set(row: &mut Row, column: &str, value: Value) {
    make_room(row, column);
    row.push((column.to_owned(), value));
}

fn make_room(row: &mut Row, column: &str) {
    if let Some(taken) = row.iter().position(|(known, _)| known == column) {
        let outer = format!("around.{column}");
        make_room(row, &outer);
        row[taken].0 = outer;
    }
}

/// A header of all columns that any row has, and the rows.
fn csv_of(rows: &[Row]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for (column, _) in rows.iter().flatten() {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let lines = rows.iter().map(|row| {
        let field = |column: &&str| {
            let found = row.iter().find(|(known, _)| known == column);
            found.map_or_else(String::new, |(_, value)| text(value))
        };
        columns.iter().map(field).collect()
    });
    csv(&columns, lines)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tables(value: Value) -> Vec<(String, String)> {
        let tables = tidy_tables(&value).into_iter();
        tables.map(|table| (table.name, table.csv)).collect()
    }

    #[test]
    fn a_matrix_is_a_row_for_each_number() {
        let found = tables(json!({ "head": "L0H0", "pattern": [[1.0, 0.0], [0.25, 0.75]] }));
        let expected =
            "head,index,index.1,value\nL0H0,0,0,1.0\nL0H0,0,1,0.0\nL0H0,1,0,0.25\nL0H0,1,1,0.75\n";
        assert_eq!(found[0], (String::new(), "head\nL0H0\n".to_owned()));
        assert_eq!(found[1], ("pattern".to_owned(), expected.to_owned()));
    }

    #[test]
    fn a_table_in_a_row_in_a_table_knows_both() {
        let found = tables(json!({
            "by": "mean",
            "heads": [{ "head": "L0H0", "by": "zero", "ranges": [{ "from": 2 }, { "from": 9 }] }],
        }));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["", "heads", "heads.ranges"]);
        assert_eq!(found[1].1, "around.by,index,by,head\nmean,0,zero,L0H0\n");
        assert_eq!(
            found[2].1,
            "around.by,around.index,by,head,index,from\nmean,0,zero,L0H0,0,2\nmean,0,zero,L0H0,1,9\n"
        );
    }

    #[test]
    fn every_digit_is_kept_and_text_is_quoted() {
        let number = 0.1 + 0.2;
        let found = tables(json!([{ "token": "a,\"b\"", "weight": number, "none": null }]));
        assert_eq!(
            found[0].1,
            "none,token,weight\n,\"a,\"\"b\"\"\",0.30000000000000004\n"
        );
    }

    #[test]
    fn fields_that_only_some_rows_have_are_empty_in_the_others() {
        let found = tables(json!([{ "b": 1 }, { "a": 2 }]));
        assert_eq!(found[0].1, "b,a\n1,\n,2\n");
    }
}
