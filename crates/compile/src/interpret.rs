//! The interpreter: what a program computes, token by token. It is the definition; a compiled model
//! must compute the same.

use crate::{
    Compiled, Error, Program,
    numbers::place,
    variable::{Choice, Domain, Id, Operation, Selector, Which},
};

/// What a program computed on one input: the value of every variable at every position.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace<'a> {
    program: &'a Program,
    /// `[variable][position]`
    values: Vec<Vec<Seen>>,
}

/// The value of a variable at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Seen {
    /// The number of the value in its domain.
    Class(usize),
    Number(f64),
}

impl Seen {
    fn class(self) -> usize {
        match self {
            Self::Class(class) => class,
            Self::Number(number) => unreachable!("{number} is no class: handles are typed"),
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Class(class) => unreachable!("class {class} is no number: handles are typed"),
        }
    }
}

impl Program {
    /// Runs the program on these tokens.
    ///
    /// # Errors
    /// If there are none or too many, or one is unknown.
    ///
    /// ```
    /// use headlight_compile::programs;
    ///
    /// let histogram = programs::histogram(5)?;
    /// let trace = histogram.run(&["a", "b", "a", "a"])?;
    /// assert_eq!(trace.answers(), ["1", "1", "2", "3"]); // how many of this token so far
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    pub fn run<T: AsRef<str>>(&self, input: &[T]) -> Result<Trace<'_>, Error> {
        self.run_with(input, |_, _| None)
    }

    /// Runs the program with some variables as they were on another input: what patching and
    /// resampling do to the heads that compute them (interchange intervention, Geiger et al. 2021).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// If the other input has another length, or is of another program.
    ///
    /// ```
    /// use headlight_compile::programs;
    ///
    /// let program = programs::induction(4)?;
    /// let other = program.run(&["b", "a", "a", "b"])?; // previous: - b a a
    /// let input = ["a", "b", "c", "a"]; // previous: - a b c
    /// assert_eq!(program.run(&input)?.answers()[3], "b");
    /// // The latest position whose previous token was a is now the last one.
    /// assert_eq!(program.interchanged(&input, &other, &["previous"])?.answers()[3], "a");
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    pub fn interchanged<T: AsRef<str>>(
        &self,
        input: &[T],
        other: &Trace,
        variables: &[&str],
    ) -> Result<Trace<'_>, Error> {
        assert!(
            other.program == self && other.values[0].len() == input.len(),
            "the other input is not of this program and length"
        );
        self.run_with(input, |id, name| {
            variables.contains(&name).then(|| other.values[id].clone())
        })
    }

    /// Runs the program with the values of some variables given.
    fn run_with<T: AsRef<str>>(
        &self,
        input: &[T],
        given: impl Fn(Id, &str) -> Option<Vec<Seen>>,
    ) -> Result<Trace<'_>, Error> {
        let most = self.layout.positions();
        if !(1..=most).contains(&input.len()) {
            return Err(Error::Input {
                program: self.name.clone(),
                found: input.len(),
                most,
            });
        }
        let known = self.variables[0].domain.names();
        let mut tokens = Vec::new();
        for token in input {
            let class = known.iter().position(|name| name == token.as_ref());
            tokens.push(class.ok_or_else(|| Error::Token {
                program: self.name.clone(),
                token: token.as_ref().to_owned(),
                known: known.join(", "),
            })?);
        }
        let mut trace = Trace {
            program: self,
            values: Vec::new(),
        };
        for (id, variable) in self.variables.iter().enumerate() {
            let values = given(id, &variable.name).unwrap_or_else(|| {
                let positions = 0..tokens.len();
                positions
                    .map(|at| trace.value(&variable.operation, &tokens, at))
                    .collect()
            });
            trace.values.push(values);
        }
        Ok(trace)
    }
}

impl Trace<'_> {
    /// The answer at every position.
    #[must_use]
    pub fn answers(&self) -> Vec<&str> {
        let names = self.program.answers();
        let answers = &self.values[self.program.answer];
        answers
            .iter()
            .map(|seen| names[seen.class()].as_str())
            .collect()
    }

    /// What the residual stream of a compiled model holds at the end, behind the start of the
    /// sequence: `[position][direction]`.
    #[must_use]
    pub fn stream(&self, compiled: &Compiled) -> Vec<Vec<f64>> {
        let positions = self.values[0].len();
        let mut stream = vec![vec![0.0; compiled.shape.d_model]; positions];
        for (position, stream) in stream.iter_mut().enumerate() {
            for place in &compiled.truth.places {
                let Some(id) = self.program.id(&place.variable) else {
                    continue;
                };
                match self.values[id][position] {
                    Seen::Number(number) => stream[place.directions.start] = number,
                    Seen::Class(class) => stream[place.directions.start + class] = 1.0,
                }
            }
        }
        stream
    }

    /// The pattern of the head that computes a variable, `[query][key]`. Both begin with the start
    /// of the sequence, which gets all attention where nothing is selected. `None` if no head
    /// computes it.
    ///
    /// ```
    /// use headlight_compile::programs;
    ///
    /// let program = programs::previous_token(3)?;
    /// let trace = program.run(&["a", "b"])?;
    /// let pattern = trace.pattern("previous").unwrap();
    /// assert_eq!(pattern, [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
    /// # Ok::<(), headlight_compile::Error>(())
    /// ```
    #[must_use]
    pub fn pattern(&self, variable: &str) -> Option<Vec<Vec<f64>>> {
        let operation = &self.program.variables[self.program.id(variable)?].operation;
        let selector = operation.selector()?;
        let positions = self.values[0].len();
        let mut pattern = vec![vec![0.0; positions + 1]; positions + 1];
        pattern[0][0] = 1.0;
        for query in 0..positions {
            let keys = match operation {
                Operation::Fetch { choice, .. } => self.chosen(choice, query).into_iter().collect(),
                _ => self.selected(selector, query),
            };
            let counts_start = keys.is_empty() || matches!(operation, Operation::Rest { .. });
            let share = 1.0 / (keys.len() + usize::from(counts_start)) as f64;
            let row = &mut pattern[query + 1];
            for key in keys {
                row[key + 1] = share;
            }
            if counts_start {
                row[0] = share;
            }
        }
        Some(pattern)
    }

    fn value(&self, operation: &Operation, tokens: &[usize], at: usize) -> Seen {
        let class = |id: Id| self.values[id][at].class();
        match operation {
            Operation::Tokens => Seen::Class(tokens[at]),
            Operation::Indices => Seen::Class(at),
            Operation::Map { from, table } => Seen::Class(table[class(*from)]),
            Operation::MapTwo { left, right, table } => {
                Seen::Class(table[class(*left)][class(*right)])
            }
            Operation::Classes { from, table } => {
                let Domain::Numbers(Some(numbers)) = &self.program.variables[*from].domain else {
                    unreachable!("classes are of listed numbers")
                };
                Seen::Class(table[place(numbers, self.values[*from][at].number())])
            }
            Operation::Fetch {
                choice,
                values,
                table,
                otherwise,
            } => Seen::Class(match self.chosen(choice, at) {
                Some(key) => table[self.values[*values][key].class()],
                None => *otherwise,
            }),
            Operation::Mean {
                selector,
                values,
                numbers,
                otherwise,
            } => {
                let keys = self.selected(selector, at);
                if keys.is_empty() {
                    return Seen::Number(*otherwise);
                }
                let mut sum = 0.0;
                for &key in &keys {
                    sum += numbers[self.values[*values][key].class()];
                }
                Seen::Number(sum / keys.len() as f64)
            }
            Operation::Rest { selector } => {
                let selected = self.selected(selector, at).len();
                Seen::Number(1.0 / (1.0 + selected as f64))
            }
        }
    }

    /// The keys that `query` selects, at its own position and before.
    fn selected(&self, selector: &Selector, query: usize) -> Vec<usize> {
        let row = &selector.table[self.values[selector.queries][query].class()];
        let keys = &self.values[selector.keys];
        (0..=query).filter(|&key| row[keys[key].class()]).collect()
    }

    fn chosen(&self, choice: &Choice, query: usize) -> Option<usize> {
        let selected = self.selected(&choice.selector, query);
        match choice.which {
            Which::Only | Which::First => selected.first().copied(),
            Which::Latest => selected.last().copied(),
        }
    }
}
