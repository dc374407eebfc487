//! Scores over training, as many as fit into a page.

use std::collections::{BTreeMap, BTreeSet};

use headlight_heads::{HeadName, Score, ScoreName, SequenceKind};
use headlight_report::{Floats, MeasureText, ScoreSeries, scores_as_told};
use headlight_run::{HeadRow, HeadSummary};

/// Bytes of scores; base64 makes a third more of them.
const MOST_SCORE_BYTES: usize = 300_000;

/// Every score of every head over training.
pub(super) struct Scores {
    pub(super) steps: Vec<usize>,
    pub(super) series: Vec<ScoreSeries>,
    /// What they mean.
    pub(super) measures: Vec<MeasureText>,
}

/// What a head has a score on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scored {
    Score(ScoreName),
    Relation(String),
}

impl Scored {
    /// All that a row has a score on.
    fn in_row(row: &HeadRow) -> impl Iterator<Item = Self> {
        let scores = row.scores.keys().copied().map(Self::Score);
        scores.chain(row.relations.keys().cloned().map(Self::Relation))
    }

    fn name(&self) -> &str {
        match self {
            Self::Score(name) => name.name(),
            Self::Relation(name) => name,
        }
    }

    fn of<'a>(&self, row: &'a HeadRow) -> Option<&'a Score> {
        match self {
            Self::Score(name) => row.scores.get(name),
            Self::Relation(name) => row.relations.get(name).map(|relation| &relation.score),
        }
    }
}

impl Scores {
    /// Of `rows`, every score of these heads.
    pub(super) fn of(rows: &[HeadRow], heads: &[HeadSummary], left_out: &mut Vec<String>) -> Self {
        let heads: Vec<HeadName> = heads.iter().map(|head| head.head).collect();
        let all: Vec<usize> = rows
            .iter()
            .map(|row| row.step)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let by_place: BTreeMap<(usize, SequenceKind, HeadName), &HeadRow> = rows
            .iter()
            .map(|row| ((row.step, row.on, row.head), row))
            .collect();
        // The last row of the first head on each kind of sequences: all others score the same.
        let mut references: Vec<(Scored, &HeadRow)> = Vec::new();
        for on in SequenceKind::ALL {
            if let (Some(&last), Some(&head)) = (all.last(), heads.first())
                && let Some(&row) = by_place.get(&(last, on, head))
            {
                references.extend(Scored::in_row(row).map(|scored| (scored, row)));
            }
        }
        let bytes_a_step = 12 * heads.len() * references.len();
        let steps = thinned(&all, MOST_SCORE_BYTES / bytes_a_step.max(1));
        if steps.len() < all.len() {
            left_out.push(format!(
                "head scores at {} of {} logged steps",
                all.len() - steps.len(),
                all.len()
            ));
        }
        let mut series = Vec::new();
        let mut measures: Vec<MeasureText> = scores_as_told()
            .into_iter()
            .map(MeasureText::from)
            .collect();
        for (scored, reference) in references {
            let Some(&Score { null, ceiling, .. }) = scored.of(reference) else {
                continue;
            };
            let mut values = Vec::new();
            for &step in &steps {
                for &head in &heads {
                    let row = by_place.get(&(step, reference.on, head));
                    values.extend(three(row.and_then(|row| scored.of(row))));
                }
            }
            series.push(ScoreSeries {
                on: reference.on,
                name: scored.name().to_owned(),
                null,
                ceiling,
                values: Floats(values),
            });
            if let Scored::Relation(name) = scored {
                measures.push(relation_in_words(name));
            }
        }
        Self {
            steps,
            series,
            measures,
        }
    }
}

/// A relation whose name begins with `next` is read from the word before the dependent.
fn relation_in_words(name: String) -> MeasureText {
    let (query, from) = match name.strip_prefix("next ") {
        Some(_) => ("dependent − 1", "the word before a word"),
        None => ("dependent", "a word"),
    };
    let relation = name.trim_start_matches("next ");
    MeasureText {
        formula: format!(
            "mean of A[{query}, source] over the pairs of words of the relation {relation}"
        ),
        does: format!("looks from {from} at what that word depends on"),
        is_role: false,
        rate: None,
        name,
    }
}

fn three(score: Option<&Score>) -> [f32; 3] {
    score.map_or([f32::NAN; 3], |score| {
        [score.value, score.interval.low, score.interval.high].map(|number| number as f32)
    })
}

/// At most `count` of these, at least the first and the last, evenly spread.
pub(super) fn thinned(steps: &[usize], count: usize) -> Vec<usize> {
    if steps.len() <= count.max(2) {
        return steps.to_vec();
    }
    let last = count.max(2) - 1;
    (0..=last)
        .map(|at| steps[at * (steps.len() - 1) / last])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends() {
        let steps: Vec<usize> = (0..=10).map(|step| 100 * step).collect();
        assert_eq!(thinned(&steps, 20), steps);
        assert_eq!(thinned(&steps, 6), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(thinned(&steps, 0), [0, 1000]);
        assert_eq!(thinned(&steps[..1], 0), [0]);
    }
}
