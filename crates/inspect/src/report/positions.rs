//! Where heads hold roles and what is lost without them, position by position, for the page.

use headlight_heads::{Ablation, Measure, Role};
use headlight_lens::{Estimate, ScoresByPosition, all_heads, scores_by_position};
use headlight_report::{Floats, HeadPositions};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadSummary};
use headlight_watch::each_layer;

use super::Subject;
use crate::positions::AccuracyByPosition;

impl Subject {
    /// Of `heads`, all of them, first layer first: ranges, how sure its role is, what it writes, and
    /// the scores of the roles that it holds at each position.
    pub(super) fn head_positions(
        &self,
        model: &Decoder,
        heads: &[HeadSummary],
    ) -> Result<Vec<HeadPositions>, Error> {
        let probe = self.probe()?;
        let start = probe.has_start;
        let mut scores = Vec::new();
        each_layer(model, &probe.tokens, &self.device, start, false, |seen| {
            scores.extend(scores_by_position(seen.pattern, &probe.tokens));
        })?;
        let mut positions = Vec::new();
        for (head, scores) in heads.iter().zip(scores) {
            positions.push(HeadPositions {
                scores: held_scores(head, &scores),
                ranges: head.ranges.clone(),
                check: head.check,
                writes: head.writes,
            });
        }
        Ok(positions)
    }
}

/// With more heads, accuracy without each is left out: it takes a pass over all sequences a head.
const MOST_HEADS_OFF: usize = 64;

impl Subject {
    /// Accuracy at each position as it is and without each head; none where there are too many.
    pub(super) fn accuracy_by_position(
        &self,
        model: &Decoder,
        by: Ablation,
        left_out: &mut Vec<String>,
    ) -> Result<Option<headlight_report::AccuracyByPosition>, Error> {
        let heads = all_heads(model);
        if heads.len() > MOST_HEADS_OFF {
            left_out.push(format!(
                "accuracy by position without each of {} heads: inspect RUN positions measures it",
                heads.len()
            ));
            return Ok(None);
        }
        let behaviour = self.task_behaviour()?;
        let accuracy = AccuracyByPosition {
            model,
            behaviour: &behaviour,
            by,
        };
        let mut without = Vec::new();
        for head in heads {
            without.push(with_ends(&accuracy.without(head)?));
        }
        let best = self.best_by_position(behaviour.sequences())?;
        let number = |at: &Option<f64>| at.map_or(f32::NAN, |at| at as f32);
        Ok(Some(headlight_report::AccuracyByPosition {
            sequences: behaviour.sequences(),
            by,
            untouched: with_ends(&accuracy.untouched()),
            without,
            best: best.map(|best| Floats(best.iter().map(number).collect())),
        }))
    }
}

/// `[position][accuracy, low, high]`
fn with_ends(accuracy: &[Option<Estimate>]) -> Floats {
    let mut numbers = Vec::new();
    for at in accuracy {
        numbers.extend(match at {
            Some(at) => [at.mean, at.interval.low, at.interval.high].map(|number| number as f32),
            None => [f32::NAN; 3],
        });
    }
    Floats(numbers)
}

/// The scores by position of the roles that a head holds, as a whole or at some positions.
fn held_scores(head: &HeadSummary, scores: &ScoresByPosition) -> Vec<(Measure, Floats)> {
    let mut held = Vec::new();
    for (&measure, scores) in scores {
        let in_range = head.ranges.iter().any(|range| range.role == measure);
        if in_range || head.role == Role::Of(measure) {
            let value = |score: &Option<_>| match score {
                Some(headlight_heads::Score { value, .. }) => *value as f32,
                None => f32::NAN,
            };
            held.push((measure, Floats(scores.iter().map(value).collect())));
        }
    }
    held
}
