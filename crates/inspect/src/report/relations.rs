//! How the heads follow the gold relations of the task and which answers need them, for the page.

use std::collections::BTreeSet;

use headlight_heads::{HeadName, RelationScores, Role, SequenceKind, first_largest};
use headlight_report::{AnswersLost, RelationOfHead, RelationSeen};
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

/// With more heads, answers without each are left out: they take a pass over sequences a head.
const MOST_HEADS_OFF: usize = 64;

impl Subject {
    /// Of each head without which surely fewer answers are right, the kind of question that loses
    /// most; the head that loses most first.
    pub(super) fn answers_lost(&self, heads: usize) -> Result<Vec<AnswersLost>, Error> {
        let validation = self.validation()?;
        let is_asked = !validation.relations.is_empty() && !validation.questions.is_empty();
        if !is_asked || validation.sequences.len() < 2 || heads > MOST_HEADS_OFF {
            return Ok(Vec::new());
        }
        let found = self.relations(None)?;
        let mut lost = Vec::new();
        for (&head, without) in &found.without {
            let surely = found.untouched.iter().filter_map(|(kind, untouched)| {
                AnswersLost::of(head, kind, *untouched, *without.get(kind)?)
            });
            lost.extend(first_largest(surely, AnswersLost::share));
        }
        lost.sort_by(|a, b| b.share().total_cmp(&a.share()));
        Ok(lost)
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
