//! How well each head follows each gold relation, as a table.

use headlight_heads::{HeadName, RelationScore, RelationScores};

use crate::{Table, number_or_dash};

/// One line per relation, one column per head, and what the scores are measured against: uniform
/// attention, the largest that any head gives at the same distances to words that are no source,
/// and, where `shuffled` has the heads' scores on shuffled tokens, the largest of these. Without rows if
/// there are no relations.
#[must_use]
pub fn relations_table(
    heads: &[(HeadName, &RelationScores)],
    shuffled: &[RelationScores],
) -> Table {
    let Some((_, first)) = heads.first().filter(|(_, relations)| !relations.is_empty()) else {
        return Table::new(&["relation"], []);
    };
    let mut header = vec!["relation".to_owned(), "pairs".to_owned()];
    header.extend(heads.iter().map(|(head, _)| head.to_string()));
    header.extend(["uniform", "distance"].map(String::from));
    header.extend((!shuffled.is_empty()).then(|| "shuffled".to_owned()));
    let row = |(name, RelationScore { score, rows, .. }): (&String, &RelationScore)| {
        let of_heads = || {
            heads
                .iter()
                .filter_map(|(_, relations)| relations.get(name))
        };
        let mut row = vec![name.clone(), rows.to_string()];
        row.extend(of_heads().map(|relation| format!("{:.2}", relation.score.value)));
        let distance = of_heads()
            .map(|relation| relation.distance_null)
            .fold(0.0, f64::max);
        row.extend([score.null, distance].map(|null| format!("{null:.2}")));
        if !shuffled.is_empty() {
            let highest = shuffled
                .iter()
                .filter_map(|relations| relations.get(name))
                .map(|null| null.score.value);
            row.push(number_or_dash(highest.reduce(f64::max), 2));
        }
        row
    };
    // The heads that follow no relation more than their nulls are left out first.
    let closest = |relations: &RelationScores| {
        let above_nulls = relations
            .values()
            .map(|relation| relation.score.value - relation.score.null.max(relation.distance_null));
        above_nulls.fold(f64::NEG_INFINITY, f64::max)
    };
    let mut by_closest: Vec<(f64, String)> = heads
        .iter()
        .map(|(head, relations)| (closest(relations), head.to_string()))
        .collect();
    by_closest.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let first_to_go: Vec<String> = by_closest.into_iter().map(|(_, head)| head).collect();
    Table::new(&header, first.iter().map(row)).first_to_go(&first_to_go)
}
