//! A sequence of one vocabulary in the tokens of another.

use headlight_heads::Relation;

use crate::{Sequence, UnknownToken, Vocabulary};

/// A sequence in the tokens of a vocabulary that its task does not have, with its gold relations
/// between these tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recut {
    /// Its tokens.
    pub sequence: Sequence,
    /// The relations whose words end where a token ends, in the tokens that end them.
    pub relations: Vec<Relation>,
}

impl Recut {
    /// The words of `tokens`, whose names are `names`, with spaces between them as a text that
    /// `vocabulary` cuts. At most `inputs` tokens and the target after them are kept. Every target is
    /// scored. A relation to or from the first token is left out, since heads rest there whatever it
    /// is.
    ///
    /// # Errors
    /// The first part of the text that is no token of the vocabulary.
    ///
    /// ```
    /// use headlight_heads::Relation;
    /// use headlight_tasks::{Recut, Vocabulary};
    ///
    /// let names = ["so", "the", "cat", "."].map(str::to_owned);
    /// let noun = [Relation { name: "noun→determiner".into(), dependent: 2, source: 1 }];
    /// let recut = Recut::of(&names, &[0, 1, 2, 3], &noun, &Vocabulary::Bytes, 10)?;
    /// // In bytes, "the" ends with token 5 and "cat" with token 9.
    /// assert_eq!(recut.sequence.tokens, b"so the cat ".map(u32::from));
    /// assert_eq!((recut.relations[0].dependent, recut.relations[0].source), (9, 5));
    /// // A relation to a word that is cut off is none.
    /// assert!(Recut::of(&names, &[0, 1, 2, 3], &noun, &Vocabulary::Bytes, 8)?.relations.is_empty());
    /// # Ok::<(), headlight_tasks::UnknownToken>(())
    /// ```
    pub fn of(
        names: &[String],
        tokens: &[u32],
        relations: &[Relation],
        vocabulary: &Vocabulary,
        inputs: usize,
    ) -> Result<Self, UnknownToken> {
        let mut text = String::new();
        let mut ends = Vec::new();
        for &token in tokens {
            let name = &names[token as usize];
            if !text.is_empty() {
                text.push(' ');
            }
            text += name;
            ends.push(text.len());
        }
        let mut cut = vocabulary.encode(&text)?;
        let mut last_tokens = Vec::new();
        for end in ends {
            let begin = vocabulary.encode(&text[..end])?;
            let ends_a_token = cut.starts_with(&begin) && begin.len() > 1;
            last_tokens.push(ends_a_token.then_some(begin.len() - 1));
        }
        cut.truncate(inputs + 1);
        let scored = vec![true; cut.len().saturating_sub(1)];
        let mut kept = Vec::new();
        for relation in relations {
            let places = (
                last_tokens[relation.dependent],
                last_tokens[relation.source],
            );
            if let (Some(dependent), Some(source)) = places
                && dependent.max(source) < scored.len()
            {
                kept.push(Relation {
                    name: relation.name.clone(),
                    dependent,
                    source,
                });
            }
        }
        Ok(Self {
            sequence: Sequence {
                tokens: cut,
                scored,
            },
            relations: kept,
        })
    }
}
