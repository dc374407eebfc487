//! What a head looks like.

use crate::{HeadName, Measure, ScoreName, Scores, first_largest, named::named};

/// The role of a head: the measure on which it stands out most, or `mixed`.
///
/// It is what the pattern *looks like*; whether the model uses the head so is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The head does mostly this.
    Of(Measure),
    /// No measure reaches half of the way from its null to its ceiling.
    Mixed,
}

impl Role {
    /// All roles, in the order of tables.
    pub fn all() -> impl Iterator<Item = Self> {
        Measure::all()
            .into_iter()
            .map(Self::Of)
            .chain([Self::Mixed])
    }

    /// The measure with the largest `(score − null) / (ceiling − null)`, if that is at least ½. Of
    /// equal ones the first in [`Measure::all`].
    ///
    /// ```
    /// use headlight_heads::{Interval, Measure, Role, Score, Scores};
    ///
    /// let score = |value, null| Score { value, null, ceiling: 1.0, interval: Interval::point(value) };
    /// let scores = Scores::from([
    ///     (Measure::PreviousToken.into(), score(0.54, 0.08)), // half of the way
    ///     (Measure::Induction.into(), score(0.60, 0.30)),     // higher, but less than half
    /// ]);
    /// assert_eq!(Role::of(&scores), Role::Of(Measure::PreviousToken));
    /// ```
    #[must_use]
    pub fn of(scores: &Scores) -> Self {
        let share = |measure: &Measure| {
            let score = scores.get(&ScoreName::from(*measure))?;
            Some(score.share()).filter(|share| share.is_finite())
        };
        let known = Measure::all()
            .into_iter()
            .filter_map(|measure| Some((measure, share(&measure)?)));
        match first_largest(known, |(_, share)| *share) {
            Some((measure, share)) if share >= 0.5 => Self::Of(measure),
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

    /// The score that the role is read from; `mixed` has none.
    #[must_use]
    pub fn score(self) -> Option<ScoreName> {
        match self {
            Self::Of(measure) => Some(measure.into()),
            Self::Mixed => None,
        }
    }
}

named!(Role, "role");

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
    for (&head, &role) in heads.iter().zip(roles) {
        if role == Role::Mixed {
            continue;
        }
        match sets.iter_mut().find(|(known, _)| *known == role) {
            Some((_, heads)) => heads.push(head),
            None => sets.push((role, vec![head])),
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Score};

    #[test]
    fn of_equal_measures_the_first_is_the_role() {
        // The first token is the previous one and every score is certain: as in a sequence of two.
        let score = Score {
            value: 1.0,
            null: 0.5,
            ceiling: 1.0,
            interval: Interval::point(1.0),
        };
        let scores = Measure::BUILT_IN.map(|measure| (measure.into(), score));
        assert_eq!(Role::of(&scores.into()), Role::Of(Measure::BUILT_IN[0]));
        let last_two = Measure::BUILT_IN[Measure::BUILT_IN.len() - 2..].iter();
        let scores = last_two.map(|&measure| (measure.into(), score));
        let expected = Role::Of(Measure::BUILT_IN[Measure::BUILT_IN.len() - 2]);
        assert_eq!(Role::of(&scores.collect()), expected);
    }

    #[test]
    fn a_score_whose_ceiling_is_its_null_makes_no_role() {
        let score = Score {
            value: 1.0,
            null: 1.0,
            ceiling: 1.0,
            interval: Interval::point(1.0),
        };
        let scores = Scores::from([(Measure::FirstToken.into(), score)]);
        assert_eq!(Role::of(&scores), Role::Mixed);
    }
}
