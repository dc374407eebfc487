//! Text that keeps within the columns it has.

use unicode_width::UnicodeWidthStr;

/// Longer lines are hard to read, however wide the terminal is.
const MOST_COLUMNS: usize = 100;

/// Breaks `text` between words. A line break in `text` stays; lines after the first begin `indent`
/// columns further to the right. A word that is longer than a line stays whole, so that a path can
/// be copied.
pub(crate) fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let columns = columns.min(MOST_COLUMNS);
    let mut out = String::new();
    for (index, paragraph) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let mut used = 0;
        // Spaces at the beginning of a line, and several between words, are meant.
        for word in paragraph.split_inclusive(' ') {
            let width = word.trim_end().width();
            if used > indent && used + width > columns {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                used = indent;
            }
            out.push_str(word);
            used += word.width();
        }
        out.truncate(out.trim_end_matches(' ').len());
    }
    out
}

/// `text`, whose negative numbers have a minus sign as wide as a plus, as on the pages. Hyphens of
/// words, names and options stay; so do numbers that another program reads, which never come here.
pub(crate) fn with_minus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins = before.is_whitespace() || matches!(before, '(' | '±');
        let is_number = matches!(characters.peek(), Some('0'..='9' | '.'));
        let is_sign = character == '-' && begins && is_number;
        out.push(if is_sign { '−' } else { character });
        before = character;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sign_of_a_number_is_a_minus() {
        assert_eq!(
            with_minus("-0.5, from -1 to (-.25): 0.1 ±-2"),
            "−0.5, from −1 to (−.25): 0.1 ±−2"
        );
        let same = "step-250 L0-1 --by mean - 3 a-1 -x 2-3 ud-";
        assert_eq!(with_minus(same), same);
    }

    #[test]
    fn lines_break_between_words_and_keep_within_the_columns() {
        assert_eq!(wrapped("one two three", 8, 0), "one two\nthree");
        assert_eq!(wrapped("one two three", 7, 0), "one two\nthree");
        assert_eq!(wrapped("one two three", 6, 0), "one\ntwo\nthree");
        assert_eq!(wrapped("one\ntwo three", 80, 0), "one\ntwo three");
        assert_eq!(wrapped("", 80, 0), "");
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        assert_eq!(
            wrapped("in runs/induction now", 6, 0),
            "in\nruns/induction\nnow"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(wrapped("猫 犬 鳥", 6, 0), "猫 犬\n鳥");
        assert_eq!(wrapped("🐈 🐕 🐦", 5, 0), "🐈 🐕\n🐦");
    }

    #[test]
    fn lines_after_the_first_stand_below_its_text() {
        let text = wrapped("task   repeat, 64 tokens, sequences", 20, 7);
        assert_eq!(text, "task   repeat, 64\n       tokens,\n       sequences");
    }

    #[test]
    fn no_line_is_wider_than_a_reader_likes() {
        let text = wrapped(&"word ".repeat(100), 300, 0);
        assert!(text.lines().all(|line| line.width() <= MOST_COLUMNS));
        assert!(text.lines().next().unwrap().width() > MOST_COLUMNS - 5);
    }
}
