//! A pattern in fewer cells than it has weights.

use headlight_heads::MayAttend;

use crate::{Ink, colour};

/// From weight 0 to weight 1.
const CHARACTERS: [char; 10] = ['.', ':', '-', '=', '+', 'o', '*', 'x', '%', '@'];

/// A pattern as dots. Each is the largest weight of some neighbouring queries and as many
/// neighbouring keys, so that a thin line stays to be seen.
pub(crate) struct Dots<F> {
    /// Tokens of the sequence.
    pub length: usize,
    /// Queries, and keys, that a dot stands for.
    pub per_dot: usize,
    /// Only weights that may be above 0 are drawn.
    pub may_attend: MayAttend,
    /// The weight of a query on a key.
    pub weight: F,
}

impl<F: Fn(usize, usize) -> f32> Dots<F> {
    /// Dots along each axis.
    pub fn side(&self) -> usize {
        self.length.div_ceil(self.per_dot)
    }

    /// The dot in this row and column; none where no query may attend to a key, and outside.
    pub fn at(&self, row: usize, column: usize) -> Option<f32> {
        let tokens = |dot: usize| dot * self.per_dot..((dot + 1) * self.per_dot).min(self.length);
        let mut largest: Option<f32> = None;
        for query in tokens(row) {
            let may_attend = self.may_attend.keys(query, self.length);
            for key in tokens(column).filter(|key| may_attend.contains(key)) {
                let weight = (self.weight)(query, key);
                largest = Some(largest.map_or(weight, |largest| largest.max(weight)));
            }
        }
        largest
    }
}

/// Queries that stand one above the other in one line of characters.
pub(crate) fn rows_in_a_line(ink: Ink) -> usize {
    match ink {
        Ink::Colour => 2,
        Ink::Characters => 1,
    }
}

/// The character of a weight.
pub(crate) fn character(weight: f32) -> char {
    let index = weight.clamp(0.0, 1.0) * (CHARACTERS.len() - 1) as f32;
    CHARACTERS[index.round() as usize]
}

/// Two dots in the place of one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HalfBlocks {
    pub character: char,
    /// The colour of the character.
    pub front: [u8; 3],
    /// The colour behind it; none leaves the terminal's own.
    pub behind: Option<[u8; 3]>,
}

/// An upper and a lower dot; none if both are blank.
pub(crate) fn half_blocks(upper: Option<f32>, lower: Option<f32>) -> Option<HalfBlocks> {
    match (upper, lower) {
        (Some(upper), lower) => Some(HalfBlocks {
            character: '▀',
            front: colour(upper),
            behind: lower.map(colour),
        }),
        (None, Some(lower)) => Some(HalfBlocks {
            character: '▄',
            front: colour(lower),
            behind: None,
        }),
        (None, None) => None,
    }
}
