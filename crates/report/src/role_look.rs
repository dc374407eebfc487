//! How roles are shown: their colours, their letters, and the order in which they are told.

use headlight_heads::{HeadName, Measure, Role, ScoreName};

use crate::colour::{BLUE, BLUISH_GREEN, ORANGE, REDDISH_PURPLE, SKY_BLUE, VERMILLION, YELLOW};

/// The colours of measures that a program has added; others have them if there are more.
const OWN: [[u8; 3]; 2] = [ORANGE, YELLOW];

/// The colour of a measure's curves, and of the heads that have its role.
#[must_use]
pub fn role_colour(measure: Measure) -> [u8; 3] {
    match measure {
        Measure::Induction => SKY_BLUE,
        Measure::PreviousToken => BLUE,
        Measure::DuplicateToken => REDDISH_PURPLE,
        Measure::CurrentToken => VERMILLION,
        Measure::FirstToken => BLUISH_GREEN,
        Measure::Own(_) => {
            let place = own_measures().iter().position(|own| *own == measure);
            OWN[place.unwrap_or_default() % OWN.len()]
        }
    }
}

/// The built-in measures, first the one that takes most to tell; the last is left out first where
/// there is no room.
const TOLD: [Measure; 5] = [
    Measure::Induction,
    Measure::PreviousToken,
    Measure::DuplicateToken,
    Measure::CurrentToken,
    Measure::FirstToken,
];

/// All measures, first the one that takes most to tell: those that the program has added are what
/// somebody wants to see.
#[must_use]
pub fn measures_as_told() -> Vec<Measure> {
    own_measures().into_iter().chain(TOLD).collect()
}

fn own_measures() -> Vec<Measure> {
    Measure::all().split_off(Measure::BUILT_IN.len())
}

/// The head to begin with: the first of the role that takes most to tell; where no head has a role,
/// the first of all.
///
/// ```
/// use headlight_heads::{HeadName, Measure, Role};
/// use headlight_report::most_telling_head;
///
/// let [a, b] = [0, 1].map(|head| HeadName { layer: 0, head });
/// let heads = [(a, Role::Of(Measure::PreviousToken)), (b, Role::Of(Measure::Induction))];
/// assert_eq!(most_telling_head(&heads), Some(b));
/// assert_eq!(most_telling_head(&[(a, Role::Mixed), (b, Role::Mixed)]), Some(a));
/// ```
#[must_use]
pub fn most_telling_head(heads: &[(HeadName, Role)]) -> Option<HeadName> {
    for measure in measures_as_told() {
        let found = heads.iter().find(|(_, role)| *role == Role::Of(measure));
        if let Some((head, _)) = found {
            return Some(*head);
        }
    }
    heads.first().map(|(head, _)| *head)
}

/// All scores: first the measures, of these first the one that takes most to tell.
#[must_use]
pub fn scores_as_told() -> Vec<ScoreName> {
    let is_measure = |score: &ScoreName| matches!(score, ScoreName::Measure(_));
    let measures = measures_as_told().into_iter().map(ScoreName::Measure);
    let others = ScoreName::all().filter(|score| !is_measure(score));
    measures.chain(others).collect()
}

/// The first letter of a role, for eyes and terminals that see no colours.
pub(crate) fn role_letter(role: Role) -> char {
    let letter = role.name().chars().next().unwrap_or(' ');
    letter.to_ascii_uppercase()
}

/// A role in one word, where there is no room: `previous`.
pub(crate) fn role_word(role: Role) -> &'static str {
    role.name().split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn roles_are_told_apart_by_colour_letter_and_word() {
        let colours: BTreeSet<_> = Measure::BUILT_IN.map(role_colour).into();
        assert_eq!(colours.len(), Measure::BUILT_IN.len());
        let roles = Role::all().count();
        let letters: BTreeSet<char> = Role::all().map(role_letter).collect();
        assert_eq!(letters.len(), roles, "{letters:?}");
        let words: BTreeSet<&str> = Role::all().map(role_word).collect();
        assert_eq!(words.len(), roles, "{words:?}");
    }

    #[test]
    fn each_measure_has_its_own_place_where_roles_are_told() {
        let told: BTreeSet<Measure> = TOLD.into();
        assert_eq!(told, Measure::BUILT_IN.into());
    }
}
