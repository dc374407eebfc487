//! A token as it is written beside a picture or in a table.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A label longer than this is cut.
const LONGEST_LABEL: usize = 12;

/// Text as one line that cannot move or hide its neighbours: in place of line breaks, other control
/// characters and those that turn the direction of writing stands a dot.
///
/// ```
/// assert_eq!(headlight_report::one_line("two\nlines"), "two·lines");
/// ```
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if is_shown(c) { c } else { '·' })
        .collect()
}

/// A token in a picture, as [`one_line`] of at most twelve characters.
pub(crate) fn token_label(token: &str) -> String {
    one_line(token).chars().take(LONGEST_LABEL).collect()
}

/// A token in a terminal, as [`one_line`] that takes at most twelve columns, and at most `columns`.
/// Terminals do not agree how wide a variation selector makes the character before it, so there is
/// none.
pub(crate) fn terminal_label(token: &str, columns: usize) -> String {
    let is_selector = |c: &char| matches!(c, '\u{fe00}'..='\u{fe0f}');
    let shown: String = one_line(token)
        .chars()
        .filter(|c| !is_selector(c))
        .collect();
    let mut label = String::new();
    for grapheme in shown.graphemes(true) {
        if label.width() + grapheme.width() > columns.min(LONGEST_LABEL) {
            break;
        }
        label.push_str(grapheme);
    }
    label
}

fn is_shown(c: char) -> bool {
    let turns_direction = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    let is_no_text = matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !(c.is_control() || turns_direction || is_no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_tokens_become_short_lines() {
        assert_eq!(token_label("a\nb\u{202e}c\u{0}"), "a·b·c·");
        assert_eq!(token_label("שלום"), "שלום");
        assert_eq!(token_label(&"x".repeat(500)).len(), LONGEST_LABEL);
    }

    #[test]
    fn a_label_in_a_terminal_is_cut_by_columns_between_characters() {
        assert_eq!(terminal_label("猫猫猫猫猫猫猫", 80), "猫猫猫猫猫猫");
        assert_eq!(terminal_label("a猫猫猫猫猫猫", 80), "a猫猫猫猫猫");
        assert_eq!(terminal_label("❤\u{fe0f}!", 80), "❤!");
        assert_eq!(terminal_label("e\u{301}t\u{e9}", 80), "e\u{301}t\u{e9}");
        assert_eq!(terminal_label("a\u{200d}b", 80), "a·b");
        assert_eq!(terminal_label("猫猫", 3), "猫");
    }
}
