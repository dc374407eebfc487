//! The grammar: what may become of each goal, and how likely.
//!
//! The alternatives of a goal begin with different words, so that the words written so far always
//! tell which alternative was taken (the grammar is LL(1)). That is why the probability of the next
//! word is exact.

use super::{
    discourse::{Discourse, Referent},
    lexicon::{Number, Part},
};

/// What is still to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// One sentence.
    Sentence,
    /// A noun with all that belongs to it, or a person's name.
    Phrase(Role, Depth),
    /// After a determiner: adjectives and the noun.
    Nominal(Option<Number>, Role, Depth),
    /// After a noun: nothing, a prepositional phrase or a relative clause.
    Modifier(Depth),
    /// After "that": a clause whose subject or whose object is the noun before.
    Relative(Referent, Depth),
    /// A verb and its object.
    Predicate(Subject, Depth),
    /// After a verb without an object: its particle, or perhaps an adverb.
    Complement,
    /// After a verb with an object: the object.
    Object(Referent, Depth),
    /// Where it happens: nothing, a new place, or back in the place named last.
    Setting,
    /// Who says so: nothing, or the person named last.
    Saying,
    /// A word.
    Word(Terminal, Act),
}

/// How often what is to be written has been nested: modifiers become rarer with depth and end at
/// [`Goal::MOST_NESTED`].
pub type Depth = usize;

/// What a noun is for its verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The subject of the sentence.
    MainSubject,
    /// The subject of a relative clause.
    Subject,
    /// Neither.
    Other,
}

/// The subject of a predicate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subject {
    /// The phrase before it, known when the predicate's turn comes.
    Before,
    /// The phrase before it, in a clause whose object is the noun that the clause modifies: "that
    /// the dogs chase".
    BeforeWithoutObject,
    /// The noun that the clause modifies: "that chases the dogs".
    Known(Referent),
}

/// Which words may stand here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Any word of a class, all equally likely.
    Any(Part),
    /// This word.
    Only(u32),
}

/// What follows from a word for the rest of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// It determines the noun to come.
    Determine,
    /// It is a noun or a name.
    Name(Role),
    /// It is the verb of this subject; `open` if the subject was the last phrase without a verb.
    Agree {
        /// The subject.
        subject: Referent,
        /// Whether the subject waits for its verb.
        open: bool,
    },
    /// It stands for this antecedent, as the subject of a new sentence.
    StandFor(Referent),
    /// It reflects this antecedent.
    Reflect(Referent),
    /// It names a place.
    Place,
    /// It repeats the name at this position.
    Repeat(usize),
    /// It ends the sentence.
    End,
}

impl Goal {
    /// Goals at this depth have no modifiers.
    pub const MOST_NESTED: Depth = 3;
}

/// One way to reach a goal.
pub type Alternative = (f64, Vec<Goal>);

impl Discourse<'_> {
    /// The alternatives of a goal that is no word; their probabilities sum to 1.
    pub fn alternatives(&self, goal: Goal) -> Vec<Alternative> {
        match goal {
            Goal::Sentence => self.sentence(),
            Goal::Phrase(role, depth) => phrase(role, depth),
            Goal::Nominal(number, role, depth) => nominal(number, role, depth),
            Goal::Modifier(depth) => self.modifier(depth),
            Goal::Relative(noun, depth) => vec![
                (0.5, vec![Goal::Predicate(Subject::Known(noun), depth)]),
                (
                    0.5,
                    vec![
                        Goal::Phrase(Role::Subject, depth),
                        Goal::Predicate(Subject::BeforeWithoutObject, depth),
                    ],
                ),
            ],
            Goal::Predicate(subject, depth) => self.predicate(subject, depth),
            Goal::Complement => match self.particle() {
                Some(particle) => vec![(1.0, vec![only(particle)])],
                None => vec![(0.2, vec![any(Part::Adverb)]), (0.8, vec![])],
            },
            Goal::Object(subject, depth) => {
                let reflexive =
                    self.lexicon
                        .standing_for(Part::Reflexive, subject.gender, subject.number);
                vec![
                    (
                        0.3,
                        vec![Goal::Word(Terminal::Only(reflexive), Act::Reflect(subject))],
                    ),
                    (0.7, vec![Goal::Phrase(Role::Other, depth + 1)]),
                ]
            }
            Goal::Setting => self.setting(),
            Goal::Saying => self.saying(),
            Goal::Word(..) => vec![(1.0, vec![goal])],
        }
    }

    /// `Sentence → (Phrase | pronoun) Predicate Setting Saying "."`
    fn sentence(&self) -> Vec<Alternative> {
        let after = |subject: Goal| {
            let end = Goal::Word(Terminal::Only(self.function_word(".")), Act::End);
            vec![
                subject,
                Goal::Predicate(Subject::Before, 0),
                Goal::Setting,
                Goal::Saying,
                end,
            ]
        };
        let phrase = after(Goal::Phrase(Role::MainSubject, 0));
        match self.last_subject {
            Some(subject) => {
                let pronoun =
                    self.lexicon
                        .standing_for(Part::Pronoun, subject.gender, subject.number);
                let pronoun = Goal::Word(Terminal::Only(pronoun), Act::StandFor(subject));
                vec![(0.3, after(pronoun)), (0.7, phrase)]
            }
            None => vec![(1.0, phrase)],
        }
    }

    /// `Modifier → ε | preposition Phrase | "that" Relative`
    fn modifier(&self, depth: Depth) -> Vec<Alternative> {
        let noun = self.last_noun().expect("a modifier follows its noun");
        let (phrase, clause) = match depth {
            0 => (0.35, 0.35),
            1 => (0.25, 0.15),
            2 => (0.1, 0.05),
            Goal::MOST_NESTED.. => return vec![(1.0, vec![])],
        };
        let that = self.function_word("that");
        vec![
            (1.0 - phrase - clause, vec![]),
            (
                phrase,
                vec![any(Part::Preposition), Goal::Phrase(Role::Other, depth + 1)],
            ),
            (clause, vec![only(that), Goal::Relative(noun, depth + 1)]),
        ]
    }

    /// `Predicate → intransitive Complement | transitive Object`, agreeing with the subject
    fn predicate(&self, subject: Subject, depth: Depth) -> Vec<Alternative> {
        let (referent, open) = match subject {
            Subject::Known(referent) => (referent, false),
            Subject::Before | Subject::BeforeWithoutObject => (self.waiting_subject(), true),
        };
        let verb = |part: fn(Number) -> Part| {
            Goal::Word(
                Terminal::Any(part(referent.number)),
                Act::Agree {
                    subject: referent,
                    open,
                },
            )
        };
        match subject {
            Subject::BeforeWithoutObject => vec![(1.0, vec![verb(Part::Transitive)])],
            _ => vec![
                (0.5, vec![verb(Part::Intransitive), Goal::Complement]),
                (
                    0.5,
                    vec![verb(Part::Transitive), Goal::Object(referent, depth)],
                ),
            ],
        }
    }

    /// `Setting → ε | "in" place | "back" "in" place`, the last only for the place named last
    fn setting(&self) -> Vec<Alternative> {
        let [into, back] = ["in", "back"].map(|text| only(self.function_word(text)));
        let new = vec![into, Goal::Word(Terminal::Any(Part::Place), Act::Place)];
        match self.last_place {
            Some((position, place)) => {
                let again = vec![
                    back,
                    into,
                    Goal::Word(Terminal::Only(place), Act::Repeat(position)),
                ];
                vec![(0.7, vec![]), (0.15, new), (0.15, again)]
            }
            None => vec![(0.7, vec![]), (0.3, new)],
        }
    }

    /// `Saying → ε | "," "says" person`, the person named last
    fn saying(&self) -> Vec<Alternative> {
        match self.last_person {
            Some((position, person)) => {
                let [comma, says] = [",", "says"].map(|text| only(self.function_word(text)));
                let name = Goal::Word(Terminal::Only(person), Act::Repeat(position));
                vec![(0.75, vec![]), (0.25, vec![comma, says, name])]
            }
            None => vec![(1.0, vec![])],
        }
    }
}

/// `Phrase → person | determiner Nominal`
fn phrase(role: Role, depth: Depth) -> Vec<Alternative> {
    let determined = |number| {
        let determiner = Goal::Word(Terminal::Any(Part::Determiner(number)), Act::Determine);
        vec![determiner, Goal::Nominal(number, role, depth)]
    };
    vec![
        (
            0.2,
            vec![Goal::Word(Terminal::Any(Part::Person), Act::Name(role))],
        ),
        (0.4, determined(None)),
        (0.2, determined(Some(Number::Singular))),
        (0.2, determined(Some(Number::Plural))),
    ]
}

/// `Nominal → adjective Nominal | noun Modifier`, the noun of the determiner's number
fn nominal(number: Option<Number>, role: Role, depth: Depth) -> Vec<Alternative> {
    const ADJECTIVE: f64 = 0.2;
    let noun = |number| {
        vec![
            Goal::Word(Terminal::Any(Part::Noun(number)), Act::Name(role)),
            Goal::Modifier(depth),
        ]
    };
    let mut alternatives = vec![(
        ADJECTIVE,
        vec![any(Part::Adjective), Goal::Nominal(number, role, depth)],
    )];
    match number {
        Some(number) => alternatives.push((1.0 - ADJECTIVE, noun(number))),
        None => alternatives.extend(
            [Number::Singular, Number::Plural]
                .map(|number| ((1.0 - ADJECTIVE) / 2.0, noun(number))),
        ),
    }
    alternatives
}

fn any(part: Part) -> Goal {
    Goal::Word(Terminal::Any(part), Act::Nothing)
}

fn only(token: u32) -> Goal {
    Goal::Word(Terminal::Only(token), Act::Nothing)
}
