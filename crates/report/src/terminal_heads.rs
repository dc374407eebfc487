//! The heads of a run as a table.

use headlight_heads::{HeadName, Role, Score, ScoreName, Scores};

use crate::{Table, number_or_dash, or_dash, role_look::measures_as_told, with_interval};

/// A head and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadLine {
    /// The head.
    pub head: HeadName,
    /// Its role, where roles are read.
    pub role: Option<Role>,
    /// What it is used as, where that was tested.
    pub used_as: Option<String>,
    /// Its scores.
    pub scores: Scores,
}

/// One line per head, one column per score, and below them what each score is measured against.
///
/// A cell is `value±half`, half the width of the 95 % interval. `names` are the scores to show, in
/// this order; `references` are the same heads under conditions in which they should find nothing,
/// of which the highest is shown.
#[must_use]
pub fn heads_table(
    names: &[ScoreName],
    lines: &[HeadLine],
    references: &[(&str, Vec<HeadLine>)],
) -> Table {
    let has_roles = lines.iter().any(|line| line.role.is_some());
    let has_uses = lines.iter().any(|line| line.used_as.is_some());

    let mut header = vec!["head".to_owned()];
    header.extend(has_roles.then(|| "looks like".to_owned()));
    header.extend(has_uses.then(|| "is used as".to_owned()));
    let text_columns = header.len();
    header.extend(names.iter().map(|name| column_of(name.name())));

    let mut rows = Vec::new();
    for line in lines {
        let mut row = vec![line.head.to_string()];
        row.extend(has_roles.then(|| line.role.map_or("", Role::name).to_owned()));
        row.extend(has_uses.then(|| line.used_as.clone().unwrap_or_default()));
        row.extend(names.iter().map(|name| {
            let score = line.scores.get(name);
            or_dash(score.map(|score| with_interval(score.value, score.interval, 2)))
        }));
        rows.push(row);
    }
    let mut reference = |title: &str, value: &dyn Fn(ScoreName) -> Option<f64>| {
        let mut row = vec![title.to_owned()];
        row.resize(text_columns, String::new());
        row.extend(names.iter().map(|&name| number_or_dash(value(name), 2)));
        rows.push(row);
    };
    let any = |name: ScoreName, of: fn(&Score) -> f64| {
        let scores = lines.iter().find_map(|line| line.scores.get(&name));
        scores.map(of)
    };
    reference("uniform", &|name| any(name, |score| score.null));
    for (title, lines) in references.iter().filter(|(_, lines)| !lines.is_empty()) {
        reference(title, &|name| {
            lines
                .iter()
                .filter_map(|line| line.scores.get(&name))
                .map(|score| score.value)
                .reduce(f64::max)
        });
    }
    reference("ceiling", &|name| any(name, |score| score.ceiling));
    Table::new(&header, rows)
        .text_columns(text_columns)
        .first_to_go(&columns_first_to_go())
}

/// The scores that are left out first where a terminal is narrow: the one that takes most to tell
/// stays longest.
pub(crate) fn columns_first_to_go() -> Vec<String> {
    let mut columns = Vec::new();
    for measure in measures_as_told() {
        columns.push(column_of(measure.name()));
    }
    columns.reverse();
    columns
}

/// `previous` for the score `previous token`.
pub(crate) fn column_of(score: &str) -> String {
    score.replace(" token", "")
}
