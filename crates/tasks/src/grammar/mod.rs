//! `grammar`: a small English whose words depend on each other in known ways.
//!
//! ```text
//! the cat that the dogs chase sits down . she … , says mary . … back in paris .
//! ```
//! Determiners and nouns, verbs and their subjects (across prepositional phrases and relative
//! clauses), pronouns and their antecedents, names that must be repeated: each is a gold relation,
//! and each is a question a model can be asked. [`rules`] has the grammar, `lexicon.toml` its
//! words.

mod discourse;
mod lexicon;
mod rules;

use headlight_heads::Relation;

pub use lexicon::{Lexicon, LexiconError};

use self::discourse::Discourse;
use super::{Question, RowKey, Sequence, Task, Vocabulary};

/// Sentences of the grammar, one after the other, from the beginning of one. Every target is
/// scored: this is language modelling.
///
/// The words so far tell which rules were applied, so the probability of the next word is known
/// exactly, and the best predictor pays `−ln P(word | words before)`: on average the entropy of the
/// grammar per word.
#[derive(Debug, Clone)]
pub struct Grammar {
    lexicon: Lexicon,
    n_ctx: usize,
}

impl Grammar {
    /// Texts of `n_ctx` inputs in the words of `lexicon`.
    #[must_use]
    pub fn new(lexicon: Lexicon, n_ctx: usize) -> Self {
        Self { lexicon, n_ctx }
    }

    /// The text read again, so that its relations and questions are known.
    fn read(&self, sequence: &Sequence) -> Discourse<'_> {
        let mut discourse = Discourse::new(&self.lexicon);
        let _ = sequence
            .tokens
            .iter()
            .try_for_each(|&token| discourse.read(token).map(|_| ()));
        discourse
    }
}

impl Task for Grammar {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::of_names(self.lexicon.texts())
    }

    fn sequence(&self, row: RowKey) -> Sequence {
        let mut rng = row.rng();
        let mut discourse = Discourse::new(&self.lexicon);
        for _ in 0..=self.n_ctx {
            discourse.write(&mut rng);
        }
        Sequence {
            tokens: discourse.words().to_vec(),
            scored: vec![true; self.n_ctx],
        }
    }

    /// Infinite at a word that the grammar does not allow.
    fn bayes_losses(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut discourse = Discourse::new(&self.lexicon);
        let losses = sequence
            .tokens
            .iter()
            .map(|&token| discourse.read(token).map_or(f64::INFINITY, |p| -p.ln()));
        Some(losses.skip(1).collect())
    }

    /// Each word class that may follow begins another word, so the likeliest word is one of the
    /// likeliest class.
    fn best_accuracies(&self, sequence: &Sequence) -> Option<Vec<f64>> {
        let mut discourse = Discourse::new(&self.lexicon);
        let mut best = Vec::with_capacity(self.n_ctx);
        for (position, &token) in sequence.tokens.iter().enumerate() {
            if position > 0 {
                best.push(discourse.likeliest());
            }
            discourse.read(token)?;
        }
        Some(best)
    }

    fn relations(&self, sequence: &Sequence) -> Vec<Relation> {
        self.read(sequence).relations
    }

    fn questions(&self, sequence: &Sequence) -> Vec<Question> {
        self.read(sequence).questions
    }
}

#[cfg(test)]
mod tests;
