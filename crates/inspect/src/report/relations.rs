//! How the heads follow the gold relations of the task, for the page.

use std::collections::BTreeSet;

use headlight_heads::{HeadName, RelationScores, Role, SequenceKind};
use headlight_report::{RelationOfHead, RelationSeen};
use headlight_run::{Error, HeadRow};

use super::Subject;

impl Subject {
    /// Every relation of the task after `step` updates, with its score in each of `heads`.
    pub(super) fn relations_seen(
        &self,
        heads: &[(HeadName, Role)],
        step: usize,
    ) -> Result<Vec<RelationSeen>, Error> {
        let rows = self.head_rows()?;
        let is_here = |row: &&HeadRow| row.step == step && row.on == SequenceKind::Task;
        let rows: Vec<&HeadRow> = rows.iter().filter(is_here).collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.relations.keys()).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let [_, shuffled] = self.shuffled_heads();
        let mut seen = Vec::new();
        for name in names {
            let Some(first) = rows.iter().find_map(|row| row.relations.get(name)) else {
                continue;
            };
            let mut of_heads = Vec::new();
            for (index, (head, _)) in heads.iter().enumerate() {
                let row = rows.iter().find(|row| row.head == *head);
                let shuffled = shuffled.relations.get(index);
                of_heads.push(row.and_then(|row| of_head(name, &row.relations, shuffled)));
            }
            seen.push(RelationSeen {
                name: name.clone(),
                pairs: first.rows,
                uniform: first.score.null,
                heads: of_heads,
            });
        }
        Ok(seen)
    }
}

fn of_head(
    name: &str,
    relations: &RelationScores,
    shuffled: Option<&RelationScores>,
) -> Option<RelationOfHead> {
    let found = relations.get(name)?;
    let shuffled = shuffled.and_then(|relations| relations.get(name));
    Some(RelationOfHead {
        value: found.score.value,
        low: found.score.interval.low,
        high: found.score.interval.high,
        distance: finite(found.distance_null),
        shuffled: shuffled.and_then(|found| finite(found.score.value)),
    })
}

/// JSON has no NaN.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}
