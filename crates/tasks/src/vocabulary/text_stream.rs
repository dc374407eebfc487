//! The text of tokens that come one by one.

use super::Vocabulary;

/// Spells tokens as they come. A character of several tokens is held back until it is whole.
///
/// ```
/// use headlight_tasks::{TextStream, Vocabulary};
///
/// let mut stream = TextStream::new(&Vocabulary::Bytes);
/// let [first, second] = [0xC3, 0xA9]; // é
/// assert_eq!(stream.push(first), "");
/// assert_eq!(stream.push(second), "é");
/// assert_eq!(stream.push(first), "");
/// assert_eq!(stream.rest(), "\u{fffd}");
/// ```
#[derive(Debug)]
pub struct TextStream<'a> {
    vocabulary: &'a Vocabulary,
    /// The tokens since the last but one place where the text was whole: what a token spells may
    /// depend on the token before it.
    tokens: Vec<u32>,
    /// How many of them were spelled.
    spelled: usize,
}

impl<'a> TextStream<'a> {
    /// Nothing was spelled yet.
    #[must_use]
    pub fn new(vocabulary: &'a Vocabulary) -> Self {
        Self {
            vocabulary,
            tokens: Vec::new(),
            spelled: 0,
        }
    }

    /// What `token` adds to the text.
    pub fn push(&mut self, token: u32) -> String {
        self.tokens.push(token);
        let added = self.added();
        if added.is_empty() || added.ends_with(char::REPLACEMENT_CHARACTER) {
            return String::new();
        }
        self.tokens.drain(..self.spelled);
        self.spelled = self.tokens.len();
        added
    }

    /// What was held back.
    #[must_use]
    pub fn rest(self) -> String {
        self.added()
    }

    fn added(&self) -> String {
        let before = self.vocabulary.decode(&self.tokens[..self.spelled]);
        let after = self.vocabulary.decode(&self.tokens);
        after.strip_prefix(&before).unwrap_or_default().to_owned()
    }
}
