//! Programs: variables that are computed one from another, and the one that is the answer.

use std::collections::BTreeSet;

use crate::{
    Category, Choice, Error, Number, Selector, Value,
    numbers::{MOST_NUMBERS, means, rests, sorted},
    select::INDICES,
    variable::{self, Domain, Id, Operation, Variable},
};

/// The name of the variable that has the token.
const TOKENS: &str = "tokens";
/// The token at position 0 of the model, in front of every input.
pub const START: &str = "<s>";
/// The token between input and answer.
pub const SEPARATOR: &str = "=";
/// The longest input.
const MOST_LENGTH: usize = 64;

/// What an input looks like and where its answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `x_1 … x_n`, with an answer at every position about the tokens up to it.
    Prefix {
        /// The longest input.
        length: usize,
    },
    /// `x_1 … x_m = y_1 … y_m`, where y is the answer: `=` predicts `y_1`, `y_1` predicts `y_2`. So a
    /// program can read a whole input before it answers.
    Answer {
        /// The longest input.
        length: usize,
    },
}

impl Layout {
    /// The tokens of the longest input without the answer.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Prefix { length } | Self::Answer { length } => length,
        }
    }

    /// The positions of a model behind the start-of-sequence token.
    #[must_use]
    pub fn positions(self) -> usize {
        match self {
            Self::Prefix { length } => length,
            Self::Answer { length } => 2 * length,
        }
    }
}

/// A program that is being written. Each method adds one variable and gives its handle.
///
/// Where a method takes `otherwise`, that is the value where nothing is selected.
///
/// # Errors
/// Each method refuses a name that is taken, a handle of another program, and two values of a
/// variable that are written in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft(Program);

/// A finished program. [`run`](Self::run) says what it computes; [`compile`](Self::compile) makes a
/// model that computes the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) layout: Layout,
    pub(crate) alphabet: Vec<String>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) answer: Id,
}

impl Draft {
    /// A program that reads the tokens of `alphabet`.
    ///
    /// # Errors
    /// If the alphabet is empty, has a token twice or a reserved one, or the length is 0 or above
    /// 64.
    pub fn new<T: Into<String>>(
        name: &str,
        alphabet: impl IntoIterator<Item = T>,
        layout: Layout,
    ) -> Result<Self, Error> {
        let alphabet: Vec<String> = alphabet.into_iter().map(Into::into).collect();
        if alphabet.is_empty() {
            return Err(Error::NoAlphabet {
                program: name.to_owned(),
            });
        }
        if !(1..=MOST_LENGTH).contains(&layout.length()) {
            return Err(Error::Length {
                program: name.to_owned(),
                length: layout.length(),
                most: MOST_LENGTH,
            });
        }
        for token in &alphabet {
            if token.is_empty() || token == START || token == SEPARATOR {
                return Err(Error::Name {
                    name: token.clone(),
                });
            }
        }
        let mut tokens = alphabet.clone();
        if let Layout::Answer { .. } = layout {
            tokens.push(SEPARATOR.to_owned());
        }
        let mut draft = Self(Program {
            name: name.to_owned(),
            layout,
            alphabet,
            variables: Vec::new(),
            answer: 0,
        });
        let positions: Vec<i64> = (0..layout.positions() as i64).collect();
        draft.add_category(TOKENS, &tokens, Operation::Tokens)?;
        draft.add_category(INDICES, &positions, Operation::Indices)?;
        Ok(draft)
    }

    /// The token at each position.
    #[must_use]
    pub fn tokens(&self) -> Category<String> {
        Category {
            name: TOKENS.to_owned(),
            values: self.0.variables[0].domain.names().to_vec(),
        }
    }

    /// The position, counted from 0 for the first token of the input.
    #[must_use]
    pub fn indices(&self) -> Category<i64> {
        Category {
            name: INDICES.to_owned(),
            values: (0..self.0.layout.positions() as i64).collect(),
        }
    }

    /// `to(from)`, position by position.
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn map<A: Value, B: Value>(
        &mut self,
        name: &str,
        from: &Category<A>,
        to: impl Fn(&A) -> B,
    ) -> Result<Category<B>, Error> {
        let id = self.id_of(from)?;
        let mut values = Vec::new();
        let table = from
            .values
            .iter()
            .map(|value| class(&mut values, to(value)))
            .collect();
        self.add_category(name, &values, Operation::Map { from: id, table })
    }

    /// `to(left, right)`, position by position.
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn map_two<A: Value, B: Value, C: Value>(
        &mut self,
        name: &str,
        left: &Category<A>,
        right: &Category<B>,
        to: impl Fn(&A, &B) -> C,
    ) -> Result<Category<C>, Error> {
        let ids = (self.id_of(left)?, self.id_of(right)?);
        let mut values = Vec::new();
        let mut table = Vec::new();
        for a in &left.values {
            let mut row = Vec::new();
            for b in &right.values {
                row.push(class(&mut values, to(a, b)));
            }
            table.push(row);
        }
        let operation = Operation::MapTwo {
            left: ids.0,
            right: ids.1,
            table,
        };
        self.add_category(name, &values, operation)
    }

    /// `to(number)`, position by position. Every number that can occur is put into its class here.
    ///
    /// # Errors
    /// As [`Draft`], and if the number may have too many values to list.
    pub fn classes<A: Value>(
        &mut self,
        name: &str,
        from: &Number,
        to: impl Fn(f64) -> A,
    ) -> Result<Category<A>, Error> {
        let id = self.id_of_number(from)?;
        let Domain::Numbers(Some(numbers)) = &self.0.variables[id].domain else {
            return Err(Error::ManyNumbers {
                variable: from.name.clone(),
                most: MOST_NUMBERS,
            });
        };
        let mut values = Vec::new();
        let table = numbers
            .iter()
            .map(|&number| class(&mut values, to(number)))
            .collect();
        self.add_category(name, &values, Operation::Classes { from: id, table })
    }

    /// The value at the one key that is selected. A selector that may choose several is no
    /// [`Choice`], so such a program does not compile in Rust.
    ///
    /// ```compile_fail
    /// use headlight_compile::{Draft, Layout, select};
    ///
    /// let mut draft = Draft::new("example", ["a", "b"], Layout::Prefix { length: 4 })?;
    /// let tokens = draft.tokens();
    /// let equal = select(&tokens, &tokens, |key, query| key == query);
    /// draft.aggregate("several", &equal, &tokens, "a".to_owned())?;
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn aggregate<A: Value>(
        &mut self,
        name: &str,
        choice: &Choice,
        values: &Category<A>,
        otherwise: A,
    ) -> Result<Category<A>, Error> {
        let id = self.id_of(values)?;
        let selector = self.selector(&choice.selector)?;
        let mut found = Vec::new();
        let table = values
            .values
            .iter()
            .map(|value| class(&mut found, value.clone()))
            .collect();
        let otherwise = class(&mut found, otherwise);
        let operation = Operation::Fetch {
            choice: variable::Choice {
                selector,
                which: choice.which,
            },
            values: id,
            table,
            otherwise,
        };
        self.add_category(name, &found, operation)
    }

    /// The share of the selected keys at which `flags` is true.
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn share(
        &mut self,
        name: &str,
        selector: &Selector,
        flags: &Category<bool>,
        otherwise: f64,
    ) -> Result<Number, Error> {
        let one_if = |flag: &bool| f64::from(u8::from(*flag));
        self.mean(name, selector, flags, one_if, otherwise)
    }

    /// The mean of `number(value)` over the selected keys.
    ///
    /// # Errors
    /// As [`Draft`], and if a number is not finite.
    pub fn mean<A: Value>(
        &mut self,
        name: &str,
        selector: &Selector,
        values: &Category<A>,
        number: impl Fn(&A) -> f64,
        otherwise: f64,
    ) -> Result<Number, Error> {
        let id = self.id_of(values)?;
        let selector = self.selector(selector)?;
        let numbers: Vec<f64> = values.values.iter().map(number).collect();
        for &number in numbers.iter().chain([&otherwise]) {
            if !number.is_finite() {
                return Err(Error::NotFinite {
                    variable: name.to_owned(),
                    number,
                });
            }
        }
        let domain = means(&numbers, otherwise, self.0.layout.positions());
        let operation = Operation::Mean {
            selector,
            values: id,
            numbers,
            otherwise,
        };
        self.add_number(name, domain, operation)
    }

    /// How many keys are selected. This takes two variables: a head gives `1/(1 + w)`, since it
    /// shares its attention among `w` keys and the start of the sequence. A feed-forward turns that
    /// into `w` (Weiss et al. 2021, section 3).
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn selector_width(
        &mut self,
        name: &str,
        selector: &Selector,
    ) -> Result<Category<i64>, Error> {
        let selector = self.selector(selector)?;
        let rest = format!("1/(1+{name})");
        let domain = Some(rests(self.0.layout.positions()));
        let rest = self.add_number(&rest, domain, Operation::Rest { selector })?;
        self.classes(name, &rest, |rest| (1.0 / rest).round() as i64 - 1)
    }

    /// The program whose answer is this variable.
    ///
    /// # Errors
    /// As [`Draft`].
    pub fn answer<A: Value>(mut self, answer: &Category<A>) -> Result<Program, Error> {
        self.0.answer = self.id_of(answer)?;
        Ok(self.0)
    }

    fn id_of<A: Value>(&self, category: &Category<A>) -> Result<Id, Error> {
        let names = names(&category.values);
        self.find(
            &category.name,
            |domain| matches!(domain, Domain::Classes(known) if *known == names),
        )
    }

    fn id_of_number(&self, number: &Number) -> Result<Id, Error> {
        self.find(&number.name, |domain| matches!(domain, Domain::Numbers(_)))
    }

    fn find(&self, name: &str, fits: impl Fn(&Domain) -> bool) -> Result<Id, Error> {
        let is_meant = |variable: &Variable| variable.name == name && fits(&variable.domain);
        let found = self.0.variables.iter().position(is_meant);
        found.ok_or_else(|| Error::Foreign {
            name: name.to_owned(),
            program: self.0.name.clone(),
        })
    }

    fn selector(&self, selector: &Selector) -> Result<variable::Selector, Error> {
        let (keys, queries) = (
            self.find(&selector.keys, |domain| {
                domain.names().len() == selector.table[0].len()
            })?,
            self.find(&selector.queries, |domain| {
                domain.names().len() == selector.table.len()
            })?,
        );
        Ok(variable::Selector {
            keys,
            queries,
            table: selector.table.clone(),
        })
    }

    fn add_category<A: Value>(
        &mut self,
        name: &str,
        values: &[A],
        operation: Operation,
    ) -> Result<Category<A>, Error> {
        self.0
            .add(name, Domain::Classes(names(values)), operation)?;
        Ok(Category {
            name: name.to_owned(),
            values: values.to_vec(),
        })
    }

    fn add_number(
        &mut self,
        name: &str,
        domain: Option<Vec<f64>>,
        operation: Operation,
    ) -> Result<Number, Error> {
        self.0
            .add(name, Domain::Numbers(domain.map(sorted)), operation)?;
        Ok(Number {
            name: name.to_owned(),
        })
    }
}

impl Program {
    /// Adds a variable at the end.
    pub(crate) fn add(
        &mut self,
        name: &str,
        domain: Domain,
        operation: Operation,
    ) -> Result<Id, Error> {
        let taken = self.variables.iter().any(|variable| variable.name == name);
        if taken || name.is_empty() {
            return Err(Error::Name {
                name: name.to_owned(),
            });
        }
        let mut seen = BTreeSet::new();
        for value in domain.names() {
            if !seen.insert(value) {
                return Err(Error::SameValue {
                    variable: name.to_owned(),
                    value: value.clone(),
                });
            }
        }
        self.variables.push(Variable {
            name: name.to_owned(),
            domain,
            operation,
        });
        Ok(self.variables.len() - 1)
    }

    /// The variable of this name.
    pub(crate) fn id(&self, variable: &str) -> Option<Id> {
        self.variables
            .iter()
            .position(|known| known.name == variable)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its inputs look like.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The tokens of its inputs, without `=` and the start of the sequence.
    #[must_use]
    pub fn alphabet(&self) -> &[String] {
        &self.alphabet
    }

    /// The tokens of the model: those of the inputs, `=` if it has answers of its own, the answers,
    /// and last the start of the sequence.
    ///
    /// ```
    /// use headlight_compile::{Draft, Layout};
    ///
    /// let mut draft = Draft::new("is it a?", ["a", "b"], Layout::Prefix { length: 3 })?;
    /// let tokens = draft.tokens();
    /// let is_a = draft.map("is a", &tokens, |token| token == "a")?;
    /// assert_eq!(draft.answer(&is_a)?.vocabulary(), ["a", "b", "true", "false", "<s>"]);
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    #[must_use]
    pub fn vocabulary(&self) -> Vec<String> {
        let mut names = self.variables[0].domain.names().to_vec();
        for answer in self.answers() {
            if !names.contains(answer) {
                names.push(answer.clone());
            }
        }
        names.push(START.to_owned());
        names
    }

    /// The values that the answer can have.
    #[must_use]
    pub fn answers(&self) -> &[String] {
        self.variables[self.answer].domain.names()
    }
}

fn names<A: Value>(values: &[A]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The number of `value` among `values`; a new one is added.
fn class<A: Value>(values: &mut Vec<A>, value: A) -> usize {
    let found = values.iter().position(|known| *known == value);
    found.unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    })
}
