//! The heads of a run as a table.

use headlight_heads::{HeadName, Role, RoleCheck, RoleRange, RoleRate, Score, ScoreName, Scores};

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
    /// The positions at which it holds roles.
    pub ranges: Vec<RoleRange>,
    /// How sure its role is.
    pub check: Option<RoleCheck>,
    /// rms(result − mean)/rms(stream), where it was measured.
    pub writes: Option<f64>,
}

impl HeadLine {
    /// `previous token 2–27`: the role of the head as a whole, with `?` if it is not sure, and the
    /// positions at which it holds this or another role.
    fn looks_like(&self) -> String {
        let Some(role) = self.role else {
            return String::new();
        };
        let positions = |of: Role| -> String {
            let ranges = self
                .ranges
                .iter()
                .filter(|range| Role::Of(range.role) == of);
            let ranges: Vec<String> = ranges
                .map(|range| format!("{}–{}", range.first, range.last))
                .collect();
            ranges.join(", ")
        };
        let mut parts = Vec::new();
        for of in Role::all() {
            let positions = positions(of);
            if of == role && role != Role::Mixed {
                let doubt = match self.check {
                    Some(check) if !check.is_sure => "?",
                    _ => "",
                };
                let text = format!("{role}{doubt} {positions}");
                parts.insert(0, text.trim_end().to_owned());
            } else if !positions.is_empty() {
                parts.push(format!("{of} {positions}"));
            }
        }
        if parts.is_empty() {
            return role.name().to_owned();
        }
        parts.join("; ")
    }
}

/// The column of what heads write.
const WRITES: &str = "writes";

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
    let has_writes = lines.iter().any(|line| line.writes.is_some());

    let mut header = vec!["head".to_owned()];
    header.extend(has_roles.then(|| "looks like".to_owned()));
    header.extend(has_uses.then(|| "is used as".to_owned()));
    let text_columns = header.len();
    header.extend(has_writes.then(|| WRITES.to_owned()));
    let first_score = header.len();
    header.extend(names.iter().map(|name| column_of(name.name())));

    let mut rows = Vec::new();
    for line in lines {
        let mut row = vec![line.head.to_string()];
        row.extend(has_roles.then(|| line.looks_like()));
        row.extend(has_uses.then(|| line.used_as.clone().unwrap_or_default()));
        row.extend(has_writes.then(|| number_or_dash(line.writes, 2)));
        row.extend(names.iter().map(|name| {
            let score = line.scores.get(name);
            or_dash(score.map(|score| with_interval(score.value, score.interval, 2)))
        }));
        rows.push(row);
    }
    let mut reference = |title: &str, value: &dyn Fn(ScoreName) -> Option<f64>| {
        let mut row = vec![title.to_owned()];
        row.resize(first_score, String::new());
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
    if has_roles {
        rows.push(false_roles(names, first_score));
    }
    let mut first_to_go = columns_first_to_go();
    first_to_go.insert(first_to_go.len() - 2, WRITES.to_owned());
    Table::new(&header, rows)
        .text_columns(text_columns)
        .first_to_go(&first_to_go)
}

/// At most how often a head of a known program falsely looks like each role.
fn false_roles(names: &[ScoreName], first_score: usize) -> Vec<String> {
    let mut row = vec!["false".to_owned()];
    row.resize(first_score, String::new());
    for &name in names {
        let rate = match name {
            ScoreName::Measure(measure) => RoleRate::of(measure),
            _ => None,
        };
        row.push(or_dash(rate.map(|rate| format!("≤{:.2}", rate.high))));
    }
    row
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
