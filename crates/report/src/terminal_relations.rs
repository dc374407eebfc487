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
    let mut rows = Vec::new();
    for (
        name,
        RelationScore {
            score, rows: pairs, ..
        },
    ) in *first
    {
        let mut row = vec![name.clone(), pairs.to_string()];
        let mut distance = 0.0_f64;
        for (_, relations) in heads {
            if let Some(relation) = relations.get(name) {
                row.push(format!("{:.2}", relation.score.value));
                distance = distance.max(relation.distance_null);
            }
        }
        row.extend([score.null, distance].map(|null| format!("{null:.2}")));
        if !shuffled.is_empty() {
            row.push(number_or_dash(highest(name, shuffled), 2));
        }
        rows.push(row);
    }
    Table::new(&header, rows).first_to_go(&by_need(heads))
}

/// The largest score of a relation in any head.
fn highest(relation: &str, heads: &[RelationScores]) -> Option<f64> {
    let scores = heads.iter().filter_map(|relations| relations.get(relation));
    scores.map(|score| score.score.value).reduce(f64::max)
}

/// The heads' names, first the one that stands out least from the nulls in every relation.
fn by_need(heads: &[(HeadName, &RelationScores)]) -> Vec<String> {
    let mut by_closest = Vec::new();
    for (head, relations) in heads {
        let mut closest = f64::NEG_INFINITY;
        for relation in relations.values() {
            let null = relation.score.null.max(relation.distance_null);
            closest = closest.max(relation.score.value - null);
        }
        by_closest.push((closest, head.to_string()));
    }
    by_closest.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    by_closest.into_iter().map(|(_, head)| head).collect()
}
