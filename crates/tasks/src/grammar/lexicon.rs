//! The words: what part of speech each is, and which forms belong together.

use std::collections::HashMap;

use serde::Deserialize;

/// Singular or plural.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// One.
    Singular,
    /// More.
    Plural,
}

/// What a pronoun agrees with, besides number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gender {
    /// he, himself
    Masculine,
    /// she, herself
    Feminine,
    /// it, itself
    Neuter,
}

/// The class of a word. The grammar speaks of classes only; within one every word is equally
/// likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// With nouns of one number, or of either.
    Determiner(Option<Number>),
    /// happy
    Adjective,
    /// cat, cats
    Noun(Number),
    /// A person's name.
    Person,
    /// A place's name.
    Place,
    /// near
    Preposition,
    /// A verb without an object; some carry a particle.
    Intransitive(Number),
    /// A verb with an object.
    Transitive(Number),
    /// down
    Particle,
    /// again
    Adverb,
    /// he, she, it, they
    Pronoun,
    /// himself, herself, itself, themselves
    Reflexive,
    /// A word that the grammar names itself: that, in, back, says, the comma and the full stop.
    Function,
}

/// A word form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its spelling, which no other word has.
    pub text: String,
    /// Its class.
    pub part: Part,
    /// Of nouns, names of persons and pronouns.
    pub gender: Option<Gender>,
    /// The same verb or noun in the other number.
    pub other_number: Option<u32>,
    /// The particle that must follow.
    pub particle: Option<u32>,
}

/// All words; a word's token is its place in the list.
#[derive(Debug, Clone)]
pub struct Lexicon {
    words: Vec<Word>,
    by_text: HashMap<String, u32>,
    by_part: HashMap<Part, Vec<u32>>,
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    adjectives: Vec<String>,
    adverbs: Vec<String>,
    prepositions: Vec<String>,
    places: Vec<String>,
    determiners: Determiners,
    names: Names,
    nouns: Nouns,
    verbs: Verbs,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Determiners {
    any: Vec<String>,
    singular: Vec<String>,
    plural: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    masculine: Vec<String>,
    feminine: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nouns {
    masculine: Vec<[String; 2]>,
    feminine: Vec<[String; 2]>,
    neuter: Vec<[String; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verbs {
    intransitive: Vec<[String; 2]>,
    particle: Vec<[String; 3]>,
    transitive: Vec<[String; 2]>,
}

/// Words that the rules name.
const FUNCTION_WORDS: [&str; 6] = [".", ",", "that", "in", "back", "says"];
/// Subject and reflexive form, for each gender and for the plural.
const PRONOUNS: [(&str, &str, Option<Gender>); 4] = [
    ("he", "himself", Some(Gender::Masculine)),
    ("she", "herself", Some(Gender::Feminine)),
    ("it", "itself", Some(Gender::Neuter)),
    ("they", "themselves", None),
];

/// Why a text is no lexicon.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// It is no TOML, or has other tables.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A spelling is empty or has spaces in it.
    #[error("{0:?} is no word")]
    NoWord(String),
    /// A spelling is there for two words.
    #[error("{0} occurs twice")]
    Twice(String),
    /// No word is of this class.
    #[error("there is no {0:?}")]
    EmptyClass(Part),
}

impl Lexicon {
    /// The lexicon that ships.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[must_use]
    pub fn english() -> Self {
        Self::parse(include_str!("lexicon.toml")).expect("the lexicon that ships is valid")
    }

    /// Reads a lexicon.
    ///
    /// # Errors
    /// If the text is no lexicon, a spelling occurs twice or a class is empty.
    pub fn parse(toml: &str) -> Result<Self, LexiconError> {
        use Number::{Plural, Singular};
        let entries: Entries = toml::from_str(toml)?;
        let mut lexicon = Self {
            words: Vec::new(),
            by_text: HashMap::new(),
            by_part: HashMap::new(),
        };
        for text in FUNCTION_WORDS {
            lexicon.add(text, Part::Function, None)?;
        }
        for (subject, reflexive, gender) in PRONOUNS {
            lexicon.add(subject, Part::Pronoun, gender)?;
            lexicon.add(reflexive, Part::Reflexive, gender)?;
        }
        let Determiners {
            any,
            singular,
            plural,
        } = entries.determiners;
        for (part, texts) in [
            (Part::Determiner(None), any),
            (Part::Determiner(Some(Singular)), singular),
            (Part::Determiner(Some(Plural)), plural),
            (Part::Adjective, entries.adjectives),
            (Part::Adverb, entries.adverbs),
            (Part::Preposition, entries.prepositions),
            (Part::Place, entries.places),
        ] {
            texts
                .iter()
                .try_for_each(|text| lexicon.add(text, part, None).map(|_| ()))?;
        }
        for (gender, texts) in [
            (Gender::Masculine, entries.names.masculine),
            (Gender::Feminine, entries.names.feminine),
        ] {
            texts
                .iter()
                .try_for_each(|text| lexicon.add(text, Part::Person, Some(gender)).map(|_| ()))?;
        }
        for (gender, pairs) in [
            (Gender::Masculine, entries.nouns.masculine),
            (Gender::Feminine, entries.nouns.feminine),
            (Gender::Neuter, entries.nouns.neuter),
        ] {
            pairs.iter().try_for_each(|pair| {
                lexicon.add_pair(pair, Part::Noun, Some(gender)).map(|_| ())
            })?;
        }
        let Verbs {
            intransitive,
            particle,
            transitive,
        } = entries.verbs;
        intransitive
            .iter()
            .try_for_each(|pair| lexicon.add_pair(pair, Part::Intransitive, None).map(|_| ()))?;
        transitive
            .iter()
            .try_for_each(|pair| lexicon.add_pair(pair, Part::Transitive, None).map(|_| ()))?;
        for [singular, plural, particle] in particle {
            let particle = match lexicon.token(&particle) {
                Some(known) if lexicon.word(known).part == Part::Particle => known,
                _ => lexicon.add(&particle, Part::Particle, None)?,
            };
            for verb in lexicon.add_pair(&[singular, plural], Part::Intransitive, None)? {
                lexicon.words[verb as usize].particle = Some(particle);
            }
        }
        let needed = [Singular, Plural].into_iter().flat_map(|number| {
            [
                Part::Determiner(Some(number)),
                Part::Noun(number),
                Part::Intransitive(number),
                Part::Transitive(number),
            ]
        });
        let needed = needed.chain([
            Part::Determiner(None),
            Part::Adjective,
            Part::Adverb,
            Part::Preposition,
            Part::Place,
            Part::Person,
        ]);
        for part in needed {
            if lexicon.words_of(part).is_empty() {
                return Err(LexiconError::EmptyClass(part));
            }
        }
        Ok(lexicon)
    }

    fn add(&mut self, text: &str, part: Part, gender: Option<Gender>) -> Result<u32, LexiconError> {
        let token = self.words.len() as u32;
        if text.is_empty() || text.contains(char::is_whitespace) {
            return Err(LexiconError::NoWord(text.to_owned()));
        }
        if self.by_text.insert(text.to_owned(), token).is_some() {
            return Err(LexiconError::Twice(text.to_owned()));
        }
        self.by_part.entry(part).or_default().push(token);
        self.words.push(Word {
            text: text.to_owned(),
            part,
            gender,
            other_number: None,
            particle: None,
        });
        Ok(token)
    }

    /// Adds a singular and its plural, each as the other's counterpart.
    fn add_pair(
        &mut self,
        [singular, plural]: &[String; 2],
        part: impl Fn(Number) -> Part,
        gender: Option<Gender>,
    ) -> Result<[u32; 2], LexiconError> {
        let one = self.add(singular, part(Number::Singular), gender)?;
        let more = self.add(plural, part(Number::Plural), gender)?;
        self.words[one as usize].other_number = Some(more);
        self.words[more as usize].other_number = Some(one);
        Ok([one, more])
    }

    /// Every word's spelling, by token.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }

    /// The word of a token.
    ///
    /// # Panics
    /// If there is no such token.
    #[must_use]
    pub fn word(&self, token: u32) -> &Word {
        &self.words[token as usize]
    }

    /// The token of a spelling.
    #[must_use]
    pub fn token(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// All tokens of a class.
    #[must_use]
    pub fn words_of(&self, part: Part) -> &[u32] {
        self.by_part.get(&part).map_or(&[], Vec::as_slice)
    }

    /// The pronoun or reflexive that stands for something of this gender and number.
    ///
    /// # Panics
    /// If `part` is neither.
    #[must_use]
    pub fn standing_for(&self, part: Part, gender: Gender, number: Number) -> u32 {
        let gender = (number == Number::Singular).then_some(gender);
        let stands = |token: &&u32| self.word(**token).gender == gender;
        *self
            .words_of(part)
            .iter()
            .find(stands)
            .expect("pronouns and reflexives of every gender and number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lexicon_that_ships_has_a_few_hundred_words_and_none_that_needs_an() {
        let lexicon = Lexicon::english();
        assert!(
            (300..500).contains(&lexicon.texts().len()),
            "{}",
            lexicon.texts().len()
        );
        for part in [Part::Adjective, Part::Noun(Number::Singular)] {
            for &token in lexicon.words_of(part) {
                assert!(
                    !lexicon
                        .word(token)
                        .text
                        .starts_with(['a', 'e', 'i', 'o', 'u']),
                    "{:?}",
                    lexicon.word(token)
                );
            }
        }
    }

    #[test]
    fn a_spelling_that_occurs_twice_is_refused() {
        let text = include_str!("lexicon.toml").replace("\"witch\"", "\"wolf\"");
        let error = Lexicon::parse(&text).unwrap_err();
        assert_eq!(error.to_string(), "wolf occurs twice");
    }
}
