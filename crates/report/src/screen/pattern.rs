//! The pattern of one head in as many cells as there are.

use headlight_heads::{HeadName, MayAttend};
use headlight_run::PatternFile;
use ratatui::{buffer::Buffer, layout::Rect, style::Color};

use crate::{Ink, colour};

/// From weight 0 to weight 1.
const CHARACTERS: [char; 10] = ['.', ':', '-', '=', '+', 'o', '*', 'x', '%', '@'];

/// How many tokens along an axis one dot of the picture stands for: the fewest with which it fits.
///
/// In colour a character holds two dots, one above the other.
#[must_use]
pub fn tokens_per_dot(length: usize, area: Rect, ink: Ink) -> usize {
    let (columns, rows) = (
        usize::from(area.width),
        usize::from(area.height) * dots_per_row(ink),
    );
    length.div_ceil(columns.min(rows).max(1)).max(1)
}

fn dots_per_row(ink: Ink) -> usize {
    if ink == Ink::Colour { 2 } else { 1 }
}

/// Draws the pattern on the first sequence: queries downwards, keys to the right. A dot is the
/// largest weight of the tokens it stands for; where no query may attend to a key there is none.
pub fn draw_pattern(
    buffer: &mut Buffer,
    area: Rect,
    patterns: &PatternFile,
    head: HeadName,
    may_attend: MayAttend,
    ink: Ink,
) {
    let length = patterns.tokens().first().map_or(0, Vec::len);
    let per_dot = tokens_per_dot(length, area, ink);
    let dots = length.div_ceil(per_dot);
    let dot = |row: usize, column: usize| {
        let tokens = |dot: usize| dot * per_dot..((dot + 1) * per_dot).min(length);
        let weights = tokens(row).flat_map(|query| tokens(column).map(move |key| (query, key)));
        let seen = weights.filter(|(query, key)| may_attend.keys(*query, length).contains(key));
        let largest =
            seen.map(|(query, key)| patterns.weight(head.layer, 0, head.head, query, key));
        largest.reduce(f32::max).filter(|_| row < dots)
    };
    let rows_at_once = dots_per_row(ink);
    for line in 0..dots.div_ceil(rows_at_once).min(usize::from(area.height)) {
        for column in 0..dots.min(usize::from(area.width)) {
            let cell = &mut buffer[(area.x + column as u16, area.y + line as u16)];
            let (upper, lower) = (
                dot(line * rows_at_once, column),
                dot(line * rows_at_once + 1, column),
            );
            match (ink, upper, lower) {
                (Ink::Characters, Some(weight), _) => {
                    cell.set_char(
                        CHARACTERS[(weight * (CHARACTERS.len() - 1) as f32).round() as usize],
                    );
                }
                (Ink::Characters, None, _) | (Ink::Colour, None, None) => {}
                (Ink::Colour, Some(upper), lower) => {
                    cell.set_char('▀').set_fg(rgb(upper));
                    if let Some(lower) = lower {
                        cell.set_bg(rgb(lower));
                    }
                }
                (Ink::Colour, None, Some(lower)) => {
                    cell.set_char('▄').set_fg(rgb(lower));
                }
            }
        }
    }
}

fn rgb(weight: f32) -> Color {
    let [r, g, b] = colour(weight);
    Color::Rgb(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(length: usize, width: u16, height: u16, ink: Ink) -> Buffer {
        masked_picture(length, [width, height], MayAttend::Causal, ink)
    }

    fn masked_picture(
        length: usize,
        [width, height]: [u16; 2],
        may_attend: MayAttend,
        ink: Ink,
    ) -> Buffer {
        let previous = |at: usize| f32::from(u8::from(at % length + 1 == at / length || at == 0));
        let weights: Vec<f32> = (0..length * length).map(previous).collect();
        let patterns = PatternFile::quantise([1, 1, 1, length], &weights, vec![vec![0; length]]);
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw_pattern(
            &mut buffer,
            area,
            &patterns,
            HeadName { layer: 0, head: 0 },
            may_attend,
            ink,
        );
        buffer
    }

    #[test]
    fn a_previous_token_head_is_a_line_below_the_diagonal() {
        let buffer = picture(4, 4, 4, Ink::Characters);
        assert_eq!(buffer, Buffer::with_lines(["@   ", "@.  ", ".@. ", "..@."]));
    }

    #[test]
    fn a_window_leaves_blank_what_is_too_far_back() {
        let buffer = masked_picture(4, [4, 4], MayAttend::Window(2), Ink::Characters);
        assert_eq!(buffer, Buffer::with_lines(["@   ", "@.  ", " @. ", "  @."]));
    }

    #[test]
    fn two_rows_share_a_character_in_colour() {
        let buffer = picture(3, 4, 2, Ink::Colour);
        assert_eq!((buffer[(0, 0)].fg, buffer[(0, 0)].bg), (rgb(1.0), rgb(1.0)));
        assert_eq!(
            (buffer[(1, 0)].symbol(), buffer[(1, 0)].fg),
            ("▄", rgb(0.0))
        );
        assert_eq!(
            (
                buffer[(1, 1)].symbol(),
                buffer[(1, 1)].fg,
                buffer[(1, 1)].bg
            ),
            ("▀", rgb(1.0), Color::Reset)
        );
        assert_eq!(buffer[(3, 0)].symbol(), " ");
    }

    #[test]
    fn what_does_not_fit_keeps_its_largest_weights() {
        assert_eq!(tokens_per_dot(5, Rect::new(0, 0, 2, 9), Ink::Characters), 3);
        let buffer = picture(5, 3, 3, Ink::Characters);
        assert_eq!(buffer, Buffer::with_lines(["@  ", "@@ ", ".@."]));
        // No room at all.
        picture(5, 0, 0, Ink::Colour);
    }
}
