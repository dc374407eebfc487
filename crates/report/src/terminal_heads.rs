//! The heads of a run as a table.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use headlight_heads::{HeadName, Role, Score, ScoreName, Scores};

use crate::{number_or_dash, or_dash, with_interval};

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
) -> String {
    let has_roles = lines.iter().any(|line| line.role.is_some());
    let has_uses = lines.iter().any(|line| line.used_as.is_some());

    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec!["head".to_owned()];
    header.extend(has_roles.then(|| "looks like".to_owned()));
    header.extend(has_uses.then(|| "is used as".to_owned()));
    header.extend(names.iter().map(|name| name.name().replace(" token", "")));
    table.set_header(header);
    for line in lines {
        let mut row = vec![line.head.to_string()];
        row.extend(has_roles.then(|| line.role.map_or("", Role::name).to_owned()));
        row.extend(has_uses.then(|| line.used_as.clone().unwrap_or_default()));
        row.extend(names.iter().map(|name| {
            let score = line.scores.get(name);
            or_dash(score.map(|score| with_interval(score.value, score.interval, 2)))
        }));
        table.add_row(row);
    }
    let mut reference = |title: &str, value: &dyn Fn(ScoreName) -> Option<f64>| {
        let mut row = vec![title.to_owned()];
        row.extend(has_roles.then(String::new));
        row.extend(has_uses.then(String::new));
        row.extend(names.iter().map(|&name| number_or_dash(value(name), 2)));
        table.add_row(row);
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
    for column in table
        .column_iter_mut()
        .skip(1 + usize::from(has_roles) + usize::from(has_uses))
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
