//! What a head looks like.

use headlight_run::Scores;

use crate::Measure;

/// The role of a head: the measure on which it stands out most, or `mixed`.
///
/// It is what the pattern *looks like*; whether the model uses the head so is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The head does mostly this.
    Of(Measure),
    /// No measure reaches half of the way from its null to its ceiling.
    Mixed,
}

impl Role {
    /// The measure with the largest `(score − null) / (ceiling − null)`, if that is at least ½.
    ///
    /// ```
    /// use headlight_lens::{Measure, Role};
    /// use headlight_run::{Score, Scores};
    ///
    /// let score = |value, null| Score { value, null, ceiling: 1.0, low: value, high: value };
    /// let scores = Scores::from([
    ///     ("previous token".to_owned(), score(0.54, 0.08)), // half of the way
    ///     ("induction".to_owned(), score(0.60, 0.30)),      // higher, but less than half
    /// ]);
    /// assert_eq!(Role::of(&scores), Role::Of(Measure::PreviousToken));
    /// ```
    #[must_use]
    pub fn of(scores: &Scores) -> Self {
        let best = Measure::ALL
            .into_iter()
            .filter_map(|measure| {
                let score = scores.get(measure.name())?;
                let share = (score.value - score.null) / (score.ceiling - score.null);
                share.is_finite().then_some((share, measure))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((share, measure)) if share >= 0.5 => Self::Of(measure),
            _ => Self::Mixed,
        }
    }

    /// `previous token`, …, or `mixed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(measure) => measure.name(),
            Self::Mixed => "mixed",
        }
    }
}
