//! A token as it is written beside a picture.

/// A label longer than this is cut.
const LONGEST_LABEL: usize = 12;

/// A token as one short line that cannot move or hide its neighbours: in place of line breaks,
/// other control characters and those that turn the direction of writing stands a dot.
pub(crate) fn token_label(token: &str) -> String {
    token
        .chars()
        .map(|c| if is_shown(c) { c } else { '·' })
        .take(LONGEST_LABEL)
        .collect()
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
}
