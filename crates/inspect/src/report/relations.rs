//! How the heads follow the gold relations of the task and which answers need them, for the page.

use std::collections::BTreeSet;

use headlight_heads::{HeadName, RelationScores, Role, SequenceKind, first_largest};
use headlight_report::{
    AnswersLost, RelationOfHead, RelationSeen, clearest_follower, most_telling_head,
};
use headlight_run::{Error, HeadRow};

use super::Subject;

impl Subject {
    /// Every relation of the task after `step` updates, with its score in each of `heads`.
    pub(super) fn relations_seen(
        &self,
        heads: &[(HeadName, Role)],
        step: usize,
    ) -> Result<Vec<RelationSeen>, Error> {
        let all = self.head_rows()?;
        let on_task: Vec<&HeadRow> = all
            .iter()
            .filter(|row| row.on == SequenceKind::Task && row.step <= step)
            .collect();
        let is_here = |row: &&HeadRow| row.step == step;
        let rows: Vec<&HeadRow> = on_task.iter().copied().filter(is_here).collect();
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
                let mut found = row.and_then(|row| of_head(name, &row.relations, shuffled));
                if let Some(found) = &mut found
                    && found.is_above_nulls(first.score.null)
                {
                    found.since = since(&over_training(&on_task, *head, name), first.score.null);
                }
                of_heads.push(found);
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

    /// The head of a run to look at first: the one that follows a gold relation of the task most
    /// clearly, or else the one whose role takes most to tell.
    ///
    /// # Errors
    /// If a file of the run is damaged, or the subject is no run.
    pub fn head_to_begin_with(&self) -> Result<Option<HeadName>, Error> {
        let summary = self.summary()?;
        let heads: Vec<(HeadName, Role)> = summary
            .heads
            .iter()
            .map(|head| (head.head, head.role))
            .collect();
        let relations = self.relations_seen(&heads, summary.steps)?;
        Ok(clearest_follower(&heads, &relations).or_else(|| most_telling_head(&heads)))
    }
}

/// The steps of training at which a head's score of a relation was measured, and the score, in order.
fn over_training(rows: &[&HeadRow], head: HeadName, name: &str) -> Vec<(usize, f64)> {
    let own = rows.iter().filter(|row| row.head == head);
    let mut values: Vec<(usize, f64)> = own
        .filter_map(|row| Some((row.step, row.relations.get(name)?.score.value)))
        .collect();
    values.sort_unstable_by_key(|(step, _)| *step);
    values
}

/// The last measurement below half of the way from `null` to the last value, and the one after it.
fn since(values: &[(usize, f64)], null: f64) -> Option<(usize, usize)> {
    let (_, last) = *values.last()?;
    let half = f64::midpoint(null, last);
    let below = values.iter().rposition(|(_, value)| *value < half)?;
    let (before, _) = values[below];
    let (step, _) = *values.get(below + 1)?;
    Some((before, step))
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
        since: None,
    })
}

/// JSON has no NaN.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn a_head_follows_since_it_last_passed_half_of_its_way() {
        // Half of the way from 0.1 to 0.9 is 0.5; 0.6 at step 20 was lost again.
        let values = [(0, 0.1), (20, 0.6), (40, 0.4), (60, 0.5), (80, 0.9)];
        assert_eq!(since(&values, 0.1), Some((40, 60)));
        assert_eq!(since(&[(0, 0.9)], 0.1), None);
        assert_eq!(since(&[], 0.1), None);
        // It fell below evenly spread attention: there is no way that it went.
        assert_eq!(since(&[(0, 0.3), (20, 0.05)], 0.1), None);
    }
}
