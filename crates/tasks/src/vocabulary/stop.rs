//! Text that ends what a model writes.

use super::{UnknownToken, Vocabulary};

/// A text whose appearance ends what a model writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    text: String,
    /// Its tokens, where they are names.
    tokens: Vec<u32>,
}

impl Vocabulary {
    /// The stop at `text`.
    ///
    /// # Errors
    /// If it is empty, or has a name or a character that is no token, so that it never comes.
    pub fn stop(&self, text: &str) -> Result<Stop, UnknownToken> {
        let tokens = match self {
            Self::Names(_) | Self::Characters(_) => self.encode(text)?,
            // A part of a word comes with the word.
            Self::Bytes | Self::Words(_) | Self::Pieces(_) => Vec::new(),
        };
        if text.trim().is_empty() && matches!(self, Self::Names(_)) || text.is_empty() {
            return Err(UnknownToken(text.to_owned()));
        }
        let text = text.to_owned();
        Ok(Stop { text, tokens })
    }

    /// Whether `written` has come to `stop` with its last token. Where tokens spell a text, the text
    /// counts, however it was cut; names are no text, so there the tokens count.
    ///
    /// ```
    /// use headlight_tasks::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::Bytes;
    /// let stop = vocabulary.stop("\n\n")?;
    /// assert!(!vocabulary.has_come_to(&stop, b"a\n".map(u32::from).as_slice()));
    /// assert!(vocabulary.has_come_to(&stop, b"a\n\n".map(u32::from).as_slice()));
    /// # Ok::<(), headlight_tasks::UnknownToken>(())
    /// ```
    #[must_use]
    pub fn has_come_to(&self, stop: &Stop, written: &[u32]) -> bool {
        if let Self::Names(_) = self {
            return written.ends_with(&stop.tokens);
        }
        // A token spells a byte at least, but for some whose rules give it none.
        let reach = stop.text.len() + 8;
        let end = &written[written.len().saturating_sub(reach)..];
        self.decode(end).contains(&stop.text)
    }
}
