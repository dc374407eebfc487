//! The only way between text and token ids.

mod characters;
mod chunks;
mod names;
mod pieces;
mod spelling;
mod stop;
mod text_stream;
mod trained;
mod words;

use std::sync::Arc;

use headlight_run::{Error, ErrorKind, TaskConfig, TextTokens};

pub use self::{
    characters::Characters,
    names::Names,
    pieces::{NoPieces, Pieces},
    stop::Stop,
    text_stream::TextStream,
    trained::train_bpe,
    words::Words,
};
pub(crate) use self::{
    chunks::{ChunkSizes, EncodeError, encode_in_chunks},
    words::{word_pattern, words},
};

/// The tokens that a model knows, with the rule that cuts a text into them.
///
/// [`encode`](Self::encode) and [`decode`](Self::decode) are inverse: `decode(encode(t)) == t` for
/// every text `t` that the tokens can spell. What some kinds lose:
///
/// | kind | what `decode(encode(t))` is |
/// |---|---|
/// | names between spaces; names of one character also without spaces | `t` with one space between names |
/// | characters, bytes, words, trained BPE | `t` |
/// | a `tokenizer.json` | `t`, unless its own rules change text: a tokenizer may lower case, drop white space, or have a token for the unknown |
///
/// A byte order mark at the beginning of a text is no part of it, for any kind.
///
/// ```
/// use headlight_tasks::Vocabulary;
///
/// let vocabulary = Vocabulary::of_names(vec!["a".into(), "b".into()]);
/// assert_eq!(vocabulary.encode(" b  a\n")?, [1, 0]);
/// assert_eq!(vocabulary.decode(&[1, 0]), "b a");
/// assert_eq!(vocabulary.encode("a c").unwrap_err().to_string(), "c");
/// assert_eq!(vocabulary.encode("bab a")?, [1, 0, 1, 0]);
/// // A name of two characters could be meant: nothing is guessed.
/// assert!(Vocabulary::of_names(vec!["a".into(), "t0".into()]).encode("aa").is_err());
/// # Ok::<(), headlight_tasks::UnknownToken>(())
/// ```
#[derive(Debug, Clone)]
pub enum Vocabulary {
    /// Token names between white space: every generated task.
    Names(Arc<Names>),
    /// One token for each Unicode scalar value that occurs, in their order.
    Characters(Arc<Characters>),
    /// One token for each byte.
    Bytes,
    /// One token for each word, sign or white space that occurs, in alphabetical order.
    Words(Arc<Words>),
    /// The tokens of a Hugging Face tokenizer.
    Pieces(Pieces),
}

/// The first part of a text that is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownToken(pub(crate) String);

/// The tokens of bytes.
const BYTES: usize = 256;

impl Vocabulary {
    /// Token names, by id, which stand between spaces.
    #[must_use]
    pub fn of_names(names: Vec<String>) -> Self {
        Self::Names(Arc::new(Names::new(names)))
    }

    /// One token for each of `characters`, which are in order.
    pub(crate) fn of_characters(characters: Vec<char>) -> Self {
        Self::Characters(Arc::new(Characters::new(characters)))
    }

    /// One token for each of `words`.
    pub(crate) fn of_words(words: Vec<String>) -> Self {
        Self::Words(Arc::new(Words::new(words)))
    }

    /// The vocabulary of a run, from the run's own files alone: the names in its `vocabulary.json`
    /// and, for a text that is cut by a tokenizer, the bytes of its `tokenizer.json`.
    ///
    /// # Errors
    /// If the names are none of this kind of tokens, or the tokenizer is missing, damaged or has
    /// other tokens.
    ///
    /// ```
    /// use headlight_run::{TaskConfig, TextConfig, TextTokens};
    /// use headlight_tasks::Vocabulary;
    ///
    /// let task = TaskConfig::Text(TextConfig { path: "a.txt".into(), tokens: TextTokens::Words });
    /// let names = vec!["lamp".into(), "the".into(), "␣lamp".into()];
    /// let vocabulary = Vocabulary::of_run(&task, names, None)?;
    /// assert_eq!(vocabulary.encode("the lamp").unwrap(), [1, 2]);
    /// # Ok::<(), headlight_run::Error>(())
    /// ```
    pub fn of_run(
        task: &TaskConfig,
        names: Vec<String>,
        tokenizer: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let TaskConfig::Text(text) = task else {
            return Ok(Self::of_names(names));
        };
        let wrong = |message: &str| Error::damaged("vocabulary.json", message);
        match text.tokens {
            TextTokens::Characters => {
                let characters = all_named(&names, spelling::named_character, "character")?;
                if !characters.is_sorted_by(|a, b| a < b) {
                    return Err(wrong("its characters are not in their order"));
                }
                Ok(Self::of_characters(characters))
            }
            TextTokens::Bytes if names.len() != BYTES => Err(wrong("has not 256 names of bytes")),
            TextTokens::Bytes => Ok(Self::Bytes),
            TextTokens::Words => {
                let words = all_named(&names, spelling::named_word, "word")?;
                Ok(Self::of_words(words))
            }
            TextTokens::Tokenizer(_) | TextTokens::Trained(_) | TextTokens::Model => {
                let place = "tokenizer.json";
                let missing = || {
                    let message = "is missing: the run's text is cut by a tokenizer";
                    Error::of(ErrorKind::Missing, place, message)
                };
                let pieces = Pieces::parse(tokenizer.ok_or_else(missing)?)
                    .map_err(|error| Error::damaged(place, &error).caused_by(error))?;
                let are_its_names = names.starts_with(&pieces.names())
                    || names.starts_with(&pieces.names_in_file());
                let fit = names.len() <= pieces.len() || text.tokens == TextTokens::Model;
                if !are_its_names || !fit {
                    let message = "is not the tokenizer that the run was trained with: its tokens differ from vocabulary.json";
                    return Err(Error::damaged(place, message));
                }
                Ok(Self::Pieces(pieces))
            }
        }
    }

    /// The tokens of a `tokenizer.json`, such as stands beside a model.
    ///
    /// # Errors
    /// If it is no tokenizer, or has more tokens than a vocabulary may have.
    pub fn of_tokenizer(json: &[u8]) -> Result<Self, NoPieces> {
        Ok(Self::Pieces(Pieces::parse(json)?))
    }

    /// The tokens that a text is made of: all but those that a tokenizer adds, which begin, end or
    /// fill texts, and ids that no token has.
    ///
    /// ```
    /// use headlight_tasks::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::of_names(vec!["a".into(), "b".into()]);
    /// assert_eq!(vocabulary.ordinary(), [0, 1]);
    /// ```
    #[must_use]
    pub fn ordinary(&self) -> Vec<u32> {
        match self {
            Self::Pieces(pieces) => pieces.ordinary(),
            _ => (0..self.len() as u32).collect(),
        }
    }

    /// The number of tokens; ids are below it.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is no vocabulary without tokens"
    )]
    pub fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.by_id.len(),
            Self::Characters(characters) => characters.by_id.len(),
            Self::Bytes => BYTES,
            Self::Words(words) => words.by_id.len(),
            Self::Pieces(pieces) => pieces.len(),
        }
    }

    /// Printable names by id, each unlike all others. They are for display: a text is what
    /// [`decode`](Self::decode) gives.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Names(names) => names.by_id.clone(),
            Self::Characters(characters) => {
                let characters = characters.by_id.iter().copied();
                characters.map(spelling::character_name).collect()
            }
            Self::Bytes => (0..=u8::MAX).map(spelling::byte_name).collect(),
            Self::Words(words) => {
                let words = words.by_id.iter();
                words.map(|word| spelling::word_name(word)).collect()
            }
            Self::Pieces(pieces) => pieces.names(),
        }
    }

    /// The tokens of `text`.
    ///
    /// # Errors
    /// The first part of it that is no token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, UnknownToken> {
        let text = without_mark(text);
        match self {
            Self::Names(names) => names.encode(text),
            Self::Characters(characters) => characters.encode(text),
            Self::Bytes => Ok(text.bytes().map(u32::from).collect()),
            Self::Words(words) => words.encode(text),
            Self::Pieces(pieces) => pieces.encode(text),
        }
    }

    /// [`names`](Self::names) for a model with `size` logits: some embeddings are padded to a round
    /// number of rows, for which no token stands.
    ///
    /// ```
    /// use headlight_tasks::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::of_names(vec!["a".into()]);
    /// assert_eq!(vocabulary.names_for(2), ["a", "unused 1"]);
    /// ```
    #[must_use]
    pub fn names_for(&self, size: usize) -> Vec<String> {
        let mut names = self.names();
        names.extend((names.len()..size).map(|token| format!("unused {token}")));
        names
    }

    /// The text that `tokens` spell. Bytes that are not UTF-8 become `U+FFFD`.
    ///
    /// # Panics
    /// If a token is none of this vocabulary.
    #[must_use]
    pub fn decode(&self, tokens: &[u32]) -> String {
        match self {
            Self::Names(names) => names.decode(tokens),
            Self::Characters(characters) => {
                let character = |&token: &u32| characters.by_id[token as usize];
                tokens.iter().map(character).collect()
            }
            Self::Bytes => {
                let bytes: Vec<u8> = tokens.iter().map(|&token| token as u8).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Self::Words(words) => {
                let word = |&token: &u32| words.by_id[token as usize].as_str();
                tokens.iter().map(word).collect()
            }
            Self::Pieces(pieces) => pieces.decode(tokens),
        }
    }

    /// A text with about `tokens`, a cut of a longer text, that reads back to at most `most` tokens.
    /// They are the same tokens, but for a few at each end that the cut halved. A tokenizer that
    /// begins every text with a mark (`▁`) adds that, where the cut has no place to begin with it.
    #[must_use]
    pub fn prompt(&self, tokens: &[u32], most: usize) -> String {
        if let Some(readable) = self.readable(&tokens[..tokens.len().min(most)]) {
            return self.decode(readable);
        }
        for end in (1..=tokens.len()).rev() {
            let text = self.decode(&tokens[..end]);
            if self.encode(&text).is_ok_and(|tokens| tokens.len() <= most) {
                return text;
            }
        }
        String::new()
    }

    /// The longest cut of `tokens` whose text reads back to the same tokens.
    fn readable<'a>(&self, tokens: &'a [u32]) -> Option<&'a [u32]> {
        const MOST_GIVEN_UP: usize = 16;
        for given_up in 0..=MOST_GIVEN_UP.min(tokens.len().saturating_sub(1)) {
            for first in 0..=given_up {
                let cut = &tokens[first..tokens.len() - (given_up - first)];
                if !cut.is_empty() && self.encode(&self.decode(cut)).as_deref() == Ok(cut) {
                    return Some(cut);
                }
            }
        }
        None
    }

    /// The tokenizer as the run keeps it in `tokenizer.json`; `None` where the names of
    /// `vocabulary.json` say everything.
    #[must_use]
    pub fn tokenizer_json(&self) -> Option<String> {
        match self {
            Self::Pieces(pieces) => Some(pieces.json().to_owned()),
            _ => None,
        }
    }
}

/// What each of `names` in `vocabulary.json` stands for.
fn all_named<T>(
    names: &[String],
    named: impl Fn(&str) -> Option<T>,
    what: &str,
) -> Result<Vec<T>, Error> {
    let each = |name: &String| {
        let wrong = || Error::damaged("vocabulary.json", format_args!("is no {what}"));
        named(name).ok_or_else(|| wrong().value(name))
    };
    names.iter().map(each).collect()
}

/// A byte order mark says how a file is written; it is no part of the text.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests;
