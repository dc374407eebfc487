//! What a head looks like.

use crate::{HeadName, Measure, Scores};

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
    /// use headlight_heads::{Measure, Role, Score, Scores};
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

/// The heads of each role but `mixed`, in the order of their first heads. `roles` are those of
/// `heads`, in their order.
///
/// ```
/// use headlight_heads::{HeadName, Measure, Role, heads_by_role};
///
/// let [a, b, c] = [0, 1, 2].map(|head| HeadName { layer: 0, head });
/// let induction = Role::Of(Measure::Induction);
/// assert_eq!(heads_by_role(&[a, b, c], &[induction, Role::Mixed, induction]), [(induction, vec![a, c])]);
/// ```
#[must_use]
pub fn heads_by_role(heads: &[HeadName], roles: &[Role]) -> Vec<(Role, Vec<HeadName>)> {
    let mut sets: Vec<(Role, Vec<HeadName>)> = Vec::new();
    for (&head, &role) in heads
        .iter()
        .zip(roles)
        .filter(|(_, role)| **role != Role::Mixed)
    {
        match sets.iter_mut().find(|(known, _)| *known == role) {
            Some((_, heads)) => heads.push(head),
            None => sets.push((role, vec![head])),
        }
    }
    sets
}
