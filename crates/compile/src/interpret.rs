//! The interpreter: what a program computes, token by token. It is the definition; a compiled model
//! must compute the same.

use crate::{
    Compiled, Error, Input, Part, Program,
    compile::parts,
    reading::{Reading, Seen, Slot, SwappedReads},
    variable::{Id, Operation},
};

/// What a program computed on one input: the value of every variable at every position.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace<'a> {
    program: &'a Program,
    /// `[variable][position]`
    values: Vec<Vec<Seen>>,
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
        self.run_with(input, |_| Changed::None)
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
        self.assert_alike(other, input.len());
        self.run_with(input, |id| {
            let is_changed = variables.contains(&self.variables[id].name.as_str());
            if is_changed {
                Changed::Value(&other.values[id])
            } else {
                Changed::None
            }
        })
    }

    /// The answer at every position if `to` gets what `from` wrote on another input, and all else is
    /// as on this one: what patching one edge does to the model (path patching, Wang et al. 2023).
    ///
    /// An edge that carries a variable need not change an answer alone: that depends on the inputs.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`interchanged`](Self::interchanged).
    ///
    /// ```
    /// use headlight_compile::{Input, Part, programs};
    ///
    /// let program = programs::induction(4)?;
    /// let input = ["a", "b", "c", "a"]; // the latest a was followed by b
    /// let other = program.run(&["c", "b", "c", "a"])?; // no a before
    /// let along = |from: &str, to| program.answers_along(&input, &other, from.parse().unwrap(), to);
    /// let head = "L1H0".parse()?;
    /// // The head that looks for the token after an equal one reads "previous" as its keys.
    /// assert_eq!(along("L0H0", Input::Keys(head))?[3], "-");
    /// // The token at the only place that it looks at is the same, and it reads nothing else.
    /// assert_eq!(along("embedding", Input::Values(head))?[3], "b");
    /// assert_eq!(along("L0H0", Input::Values(head))?[3], "b");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answers_along<T: AsRef<str>>(
        &self,
        input: &[T],
        other: &Trace,
        from: Part,
        to: Input,
    ) -> Result<Vec<&str>, Error> {
        self.assert_alike(other, input.len());
        let parts = parts(self);
        let written: Vec<Id> = (0..parts.len())
            .filter(|&id| parts[id] == Some(from))
            .collect();
        let reader = match to {
            Input::Queries(head) => (Part::Head(head), Slot::Queries),
            Input::Keys(head) => (Part::Head(head), Slot::Keys),
            Input::Values(head) => (Part::Head(head), Slot::Values),
            Input::FeedForward(layer) => (Part::FeedForward(layer), Slot::Map),
            Input::Logits if written.contains(&self.answer) => {
                return Ok(self.answers_in(&other.values));
            }
            Input::Logits => return Ok(self.run(input)?.answers()),
        };
        let reads = SwappedReads {
            other: &other.values,
            slot: reader.1,
            variables: &written,
        };
        let trace = self.run_with(input, |id| {
            if parts[id] == Some(reader.0) {
                Changed::Reads(reads)
            } else {
                Changed::None
            }
        })?;
        Ok(trace.answers())
    }

    fn assert_alike(&self, other: &Trace, length: usize) {
        assert!(
            other.program == self && other.values[0].len() == length,
            "the other input is not of this program and length"
        );
    }

    /// The names of the answers; values `[variable][position]`.
    fn answers_in(&self, values: &[Vec<Seen>]) -> Vec<&str> {
        let names = self.answers();
        let answers = values[self.answer].iter();
        answers.map(|seen| names[seen.class()].as_str()).collect()
    }

    /// Runs the program with what `changed` says of each variable.
    fn run_with<'b, T: AsRef<str>>(
        &self,
        input: &[T],
        changed: impl Fn(Id) -> Changed<'b>,
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
            let mut reading = trace.reading();
            match changed(id) {
                Changed::None => {}
                Changed::Reads(swapped) => reading.swapped = Some(swapped),
                Changed::Value(values) => {
                    trace.values.push(values.to_vec());
                    continue;
                }
            }
            let values =
                (0..tokens.len()).map(|at| reading.value(&variable.operation, &tokens, at));
            let values = values.collect();
            trace.values.push(values);
        }
        Ok(trace)
    }
}

/// What is as it was on another input, when a variable is computed.
enum Changed<'a> {
    /// Nothing.
    None,
    /// The variable itself.
    Value(&'a [Seen]),
    /// Some of what it reads.
    Reads(SwappedReads<'a>),
}

impl<'a> Trace<'a> {
    /// The answer at every position.
    #[must_use]
    pub fn answers(&self) -> Vec<&'a str> {
        self.program.answers_in(&self.values)
    }

    /// Whether a part wrote something else on the other input.
    ///
    /// ```
    /// use headlight_compile::{Part, programs};
    ///
    /// let program = programs::previous_token(3)?;
    /// let traces = [program.run(&["a", "b"])?, program.run(&["a", "c"])?];
    /// assert!(traces[0].differs(&traces[1], Part::Embedding));
    /// // The last token is before no other.
    /// assert!(!traces[0].differs(&traces[1], "L0H0".parse()?));
    /// assert!(!traces[0].differs(&traces[1], Part::Positions));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the other input is of another program or length.
    #[must_use]
    pub fn differs(&self, other: &Trace, part: Part) -> bool {
        self.program.assert_alike(other, self.values[0].len());
        let parts = parts(self.program);
        (0..parts.len()).any(|id| parts[id] == Some(part) && self.values[id] != other.values[id])
    }

    /// The values so far, nothing changed.
    fn reading(&self) -> Reading<'_> {
        Reading {
            program: self.program,
            values: &self.values,
            swapped: None,
        }
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
        let reading = self.reading();
        for query in 0..positions {
            let keys = match operation {
                Operation::Fetch { choice, .. } => {
                    reading.chosen(choice, query).into_iter().collect()
                }
                _ => reading.selected(selector, query),
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
}
