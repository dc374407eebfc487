//! A text while it is written or read, word by word.

use headlight_heads::Relation;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{
    lexicon::{Gender, Lexicon, Number, Part},
    rules::{Act, Goal, Role, Terminal},
};
use crate::Question;

/// A determiner and its noun, which stands later.
pub const DETERMINER_TO_NOUN: &str = "determiner→noun";
/// A noun and its determiner.
pub const NOUN_TO_DETERMINER: &str = "noun→determiner";
/// A verb and the noun, name or pronoun it agrees with.
pub const VERB_TO_SUBJECT: &str = "verb→subject";
/// A personal or reflexive pronoun and what it stands for.
pub const PRONOUN_TO_ANTECEDENT: &str = "pronoun→antecedent";
/// A name that had to be repeated and where it stood last.
pub const NAME_TO_LAST_NAME: &str = "name→last name";

/// A noun, name or pronoun in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Referent {
    /// Where it stands.
    pub position: usize,
    /// What verbs and pronouns agree with.
    pub number: Number,
    /// What pronouns agree with.
    pub gender: Gender,
}

/// The state of a text: what is still to be written, and what later words may refer to. It follows
/// from the words so far alone.
#[derive(Debug, Clone)]
pub struct Discourse<'a> {
    pub(super) lexicon: &'a Lexicon,
    /// What is still to be written of this sentence, the next on top.
    goals: Vec<Goal>,
    words: Vec<u32>,
    /// Every noun, name and pronoun so far.
    referents: Vec<Referent>,
    /// Subjects that wait for their verbs, the innermost on top.
    waiting: Vec<Referent>,
    determiner: Option<usize>,
    /// The main subject of this sentence, unless it is a pronoun.
    main_subject: Option<Referent>,
    /// The main subject of the sentence before, unless it was a pronoun.
    pub(super) last_subject: Option<Referent>,
    /// Where a person was named last, and the name.
    pub(super) last_person: Option<(usize, u32)>,
    /// Where a place was named last, and the name.
    pub(super) last_place: Option<(usize, u32)>,
    /// The gold relations so far.
    pub relations: Vec<Relation>,
    /// What a reader can be asked about the words so far.
    pub questions: Vec<Question>,
}

/// A word class that may come next, with its probability and the state's stack after it.
struct Continuation {
    probability: f64,
    terminal: Terminal,
    act: Act,
    goals: Vec<Goal>,
}

impl<'a> Discourse<'a> {
    /// An empty text.
    #[must_use]
    pub fn new(lexicon: &'a Lexicon) -> Self {
        Self {
            lexicon,
            goals: Vec::new(),
            words: Vec::new(),
            referents: Vec::new(),
            waiting: Vec::new(),
            determiner: None,
            main_subject: None,
            last_subject: None,
            last_person: None,
            last_place: None,
            relations: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// The words so far.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Draws the next word.
    pub fn write(&mut self, rng: &mut ChaCha8Rng) {
        loop {
            match self.goals.pop().unwrap_or(Goal::Sentence) {
                Goal::Word(terminal, act) => {
                    let token = match terminal {
                        Terminal::Only(token) => token,
                        Terminal::Any(part) => {
                            let words = self.lexicon.words_of(part);
                            words[rng.random_range(0..words.len())]
                        }
                    };
                    return self.take(token, act);
                }
                goal => {
                    let mut left: f64 = rng.random();
                    let mut alternatives = self.alternatives(goal);
                    let chosen = alternatives.iter().position(|(probability, _)| {
                        left -= probability;
                        left < 0.0
                    });
                    let (_, goals) =
                        alternatives.swap_remove(chosen.unwrap_or(alternatives.len() - 1));
                    self.goals.extend(goals.into_iter().rev());
                }
            }
        }
    }

    /// Reads a word that somebody wrote: its probability, or `None` if the grammar never writes it
    /// here.
    pub fn read(&mut self, token: u32) -> Option<f64> {
        let fits = |terminal| match terminal {
            Terminal::Only(only) => only == token,
            Terminal::Any(part) => self.lexicon.word(token).part == part,
        };
        // Alternatives begin with different words, so at most one continuation fits.
        let next = self
            .continuations()
            .into_iter()
            .find(|next| fits(next.terminal))?;
        let probability = next.probability / self.choices(next.terminal);
        self.goals = next.goals;
        self.take(token, next.act);
        Some(probability)
    }

    /// The probability of the likeliest next word.
    #[must_use]
    pub fn likeliest(&self) -> f64 {
        let of_word = |next: &Continuation| next.probability / self.choices(next.terminal);
        let continuations = self.continuations();
        continuations.iter().map(of_word).fold(0.0, f64::max)
    }

    /// Each word that may come next, with its probability.
    #[cfg(test)]
    pub fn distribution(&self) -> Vec<(u32, f64)> {
        self.continuations()
            .into_iter()
            .flat_map(|next| {
                let probability = next.probability / self.choices(next.terminal);
                let words = match next.terminal {
                    Terminal::Only(token) => vec![token],
                    Terminal::Any(part) => self.lexicon.words_of(part).to_vec(),
                };
                words.into_iter().map(move |token| (token, probability))
            })
            .collect()
    }

    fn choices(&self, terminal: Terminal) -> f64 {
        match terminal {
            Terminal::Only(_) => 1.0,
            Terminal::Any(part) => self.lexicon.words_of(part).len() as f64,
        }
    }

    fn continuations(&self) -> Vec<Continuation> {
        let mut found = Vec::new();
        let mut open = vec![(1.0, self.goals.clone())];
        while let Some((probability, mut goals)) = open.pop() {
            match goals.pop().unwrap_or(Goal::Sentence) {
                Goal::Word(terminal, act) => found.push(Continuation {
                    probability,
                    terminal,
                    act,
                    goals,
                }),
                goal => open.extend(self.alternatives(goal).into_iter().map(
                    |(share, alternative)| {
                        let mut goals = goals.clone();
                        goals.extend(alternative.into_iter().rev());
                        (probability * share, goals)
                    },
                )),
            }
        }
        found
    }

    /// The innermost subject without a verb.
    pub(super) fn waiting_subject(&self) -> Referent {
        *self
            .waiting
            .last()
            .expect("a subject comes before its verb")
    }

    /// The noun just written.
    pub(super) fn last_noun(&self) -> Option<Referent> {
        self.referents.last().copied()
    }

    /// The particle that the verb just written must have.
    pub(super) fn particle(&self) -> Option<u32> {
        self.words
            .last()
            .and_then(|&verb| self.lexicon.word(verb).particle)
    }

    /// The token of a word that the rules name.
    pub(super) fn function_word(&self, text: &str) -> u32 {
        self.lexicon
            .token(text)
            .expect("every lexicon has the function words")
    }

    /// Appends a word and draws the consequences.
    fn take(&mut self, token: u32, act: Act) {
        let position = self.words.len();
        match act {
            Act::Nothing => {}
            Act::Determine => self.determiner = Some(position),
            Act::Name(role) => self.name(token, role),
            Act::Agree { subject, open } => {
                if open {
                    self.waiting.pop();
                }
                self.relate(VERB_TO_SUBJECT, position, subject.position);
                self.ask_agreement(token, subject);
            }
            Act::StandFor(antecedent) => {
                self.relate(PRONOUN_TO_ANTECEDENT, position, antecedent.position);
                self.ask_standing_for(Part::Pronoun, "pronoun", token, antecedent);
                let pronoun = Referent {
                    position,
                    ..antecedent
                };
                self.referents.push(pronoun);
                self.waiting.push(pronoun);
            }
            Act::Reflect(antecedent) => {
                self.relate(PRONOUN_TO_ANTECEDENT, position, antecedent.position);
                self.ask_standing_for(Part::Reflexive, "reflexive", token, antecedent);
            }
            Act::Place => self.last_place = Some((position, token)),
            Act::Repeat(source) => {
                self.relate(NAME_TO_LAST_NAME, position, source);
                self.ask_name(token);
                match self.lexicon.word(token).part {
                    Part::Place => self.last_place = Some((position, token)),
                    _ => self.last_person = Some((position, token)),
                }
            }
            Act::End => self.last_subject = self.main_subject.take(),
        }
        self.words.push(token);
    }

    /// A noun or a person's name.
    fn name(&mut self, token: u32, role: Role) {
        let position = self.words.len();
        let word = self.lexicon.word(token);
        let number = match word.part {
            Part::Noun(number) => number,
            _ => Number::Singular,
        };
        let referent = Referent {
            position,
            number,
            gender: word.gender.unwrap_or(Gender::Neuter),
        };
        if word.part == Part::Person {
            self.last_person = Some((position, token));
        }
        if let Some(determiner) = self.determiner.take() {
            self.relate(DETERMINER_TO_NOUN, determiner, position);
            self.relate(NOUN_TO_DETERMINER, position, determiner);
        }
        self.referents.push(referent);
        if role == Role::MainSubject {
            self.main_subject = Some(referent);
        }
        if role != Role::Other {
            self.waiting.push(referent);
        }
    }

    fn relate(&mut self, name: &'static str, dependent: usize, source: usize) {
        self.relations.push(Relation {
            name: name.into(),
            dependent,
            source,
        });
    }

    /// The verb in the right number, or in the other?
    fn ask_agreement(&mut self, verb: u32, subject: Referent) {
        let after = self
            .referents
            .iter()
            .filter(|referent| referent.position > subject.position);
        let distractors = match after.count() {
            0 => "agreement, no noun between",
            1 => "agreement, 1 noun between",
            2 => "agreement, 2 nouns between",
            _ => "agreement, 3 or more between",
        };
        let mut kinds = vec!["agreement", distractors];
        match self.last_noun() {
            Some(nearest) if nearest.position != subject.position => {
                kinds.push("agreement, nearest noun not the subject");
                kinds.extend(
                    (nearest.number != subject.number)
                        .then_some("agreement, nearest noun of other number"),
                );
            }
            _ => kinds.push("agreement, nearest noun the subject"),
        }
        self.ask(
            verb,
            self.lexicon.word(verb).other_number.into_iter().collect(),
            kinds,
        );
    }

    /// The right pronoun, or one of the three others?
    fn ask_standing_for(
        &mut self,
        part: Part,
        kind: &'static str,
        pronoun: u32,
        antecedent: Referent,
    ) {
        let mut kinds = vec![kind];
        let nearest = self
            .last_noun()
            .filter(|nearest| nearest.position != antecedent.position);
        let misleads = |nearest: Referent| {
            self.lexicon
                .standing_for(part, nearest.gender, nearest.number)
                != pronoun
        };
        if nearest.is_some_and(misleads) {
            kinds.push(match part {
                Part::Reflexive => "reflexive, nearest noun takes another",
                _ => "pronoun, nearest noun takes another",
            });
        }
        self.ask(pronoun, self.others_of(part, pronoun), kinds);
    }

    /// The name that stood last, or any other of its class?
    fn ask_name(&mut self, name: u32) {
        let part = self.lexicon.word(name).part;
        let others = self.others_of(part, name);
        let is_place = part == Part::Place;
        let mut kinds = vec![
            "name",
            if is_place {
                "name of a place"
            } else {
                "name of a person"
            },
        ];
        if self.words.iter().any(|word| others.contains(word)) {
            kinds.push("name, others named before");
        }
        self.ask(name, others, kinds);
    }

    fn others_of(&self, part: Part, token: u32) -> Vec<u32> {
        self.lexicon
            .words_of(part)
            .iter()
            .copied()
            .filter(|&other| other != token)
            .collect()
    }

    fn ask(&mut self, right: u32, wrong: Vec<u32>, kinds: Vec<&'static str>) {
        // The first word of all is nobody's target.
        if let Some(input) = self.words.len().checked_sub(1) {
            self.questions.push(Question {
                input,
                right,
                wrong,
                kinds: kinds.into_iter().map(Into::into).collect(),
            });
        }
    }
}
