//! The pattern of one head in as many cells as there are.

use headlight_heads::{HeadName, MayAttend};
use headlight_run::PatternFile;
use ratatui::{buffer::Buffer, layout::Rect, style::Color};

use crate::{
    Ink,
    pattern_dots::{Dots, character, half_blocks, rows_in_a_line},
};

/// How many tokens along an axis one dot of the picture stands for: the fewest with which it fits.
#[must_use]
pub fn tokens_per_dot(length: usize, area: Rect, ink: Ink) -> usize {
    let (columns, rows) = (
        usize::from(area.width),
        usize::from(area.height) * rows_in_a_line(ink),
    );
    length.div_ceil(columns.min(rows).max(1)).max(1)
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
    let dots = Dots {
        length,
        per_dot: tokens_per_dot(length, area, ink),
        may_attend,
        weight: |query, key| patterns.weight(head.layer, 0, head.head, query, key),
    };
    let rows_in_a_line = rows_in_a_line(ink);
    let lines = dots.side().div_ceil(rows_in_a_line);
    for line in 0..lines.min(usize::from(area.height)) {
        let row = line * rows_in_a_line;
        for column in 0..dots.side().min(usize::from(area.width)) {
            let cell = &mut buffer[(area.x + column as u16, area.y + line as u16)];
            match ink {
                Ink::Characters => {
                    if let Some(weight) = dots.at(row, column) {
                        cell.set_char(character(weight));
                    }
                }
                Ink::Colour => {
                    if let Some(blocks) =
                        half_blocks(dots.at(row, column), dots.at(row + 1, column))
                    {
                        cell.set_char(blocks.character).set_fg(rgb(blocks.front));
                        if let Some(behind) = blocks.behind {
                            cell.set_bg(rgb(behind));
                        }
                    }
                }
            }
        }
    }
}

fn rgb([r, g, b]: [u8; 3]) -> Color {
    Color::Rgb(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour;

    fn rgb(weight: f32) -> Color {
        super::rgb(colour(weight))
    }

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
