//! Where heads hold roles, for the page.

use headlight_heads::{Measure, Role};
use headlight_lens::{ScoresByPosition, scores_by_position};
use headlight_report::{Floats, HeadPositions};
use headlight_residual::Decoder;
use headlight_run::{Error, HeadSummary};
use headlight_watch::each_layer;

use super::Subject;

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
