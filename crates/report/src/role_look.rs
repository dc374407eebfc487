//! How roles are shown: their colours, their letters, and the order in which they are told.

use headlight_heads::{Measure, Role, ScoreName};

use crate::colour::{BLUE, BLUISH_GREEN, ORANGE, REDDISH_PURPLE, SKY_BLUE, VERMILLION, YELLOW};

/// What pictures need to know of a role.
struct Look {
    /// Its place where roles are told; the first takes most to tell, and is left out last where
    /// there is no room.
    told: usize,
    colour: [u8; 3],
}

/// The one place that a new measure needs here. Others keep their colours.
fn look(measure: Measure) -> Look {
    let (told, colour) = match measure {
        Measure::Induction => (0, SKY_BLUE),
        Measure::PreviousToken => (1, BLUE),
        Measure::DuplicateToken => (2, REDDISH_PURPLE),
        Measure::CurrentToken => (3, VERMILLION),
        Measure::FirstToken => (4, BLUISH_GREEN),
        Measure::Own(_) => own_look(measure),
    };
    Look { told, colour }
}

/// Measures that a program has added are told after the others, in their order, and share the colours
/// that are left.
fn own_look(measure: Measure) -> (usize, [u8; 3]) {
    let all = Measure::all();
    let place = all.iter().position(|known| *known == measure);
    let place = place.unwrap_or(all.len());
    let colours = [ORANGE, YELLOW];
    let own = place.saturating_sub(Measure::BUILT_IN.len());
    (place, colours[own % colours.len()])
}

/// The colour of a measure's curves, and of the heads that have its role.
#[must_use]
pub fn role_colour(measure: Measure) -> [u8; 3] {
    look(measure).colour
}

/// All measures, first the one that takes most to tell.
#[must_use]
pub fn measures_as_told() -> Vec<Measure> {
    let mut measures = Measure::all();
    measures.sort_by_key(|&measure| look(measure).told);
    measures
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
        let places: Vec<usize> = measures_as_told()
            .into_iter()
            .map(|measure| look(measure).told)
            .collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }
}
