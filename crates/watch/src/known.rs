//! A model whose program is known, and what follows from the program for its heads.

use headlight_compile::{Compiled, Part, Place, Program, Trace, programs};
use headlight_heads::{HeadName, Measure, Role};
use headlight_run::{Config, Error, ErrorKind, InitializationKind, TaskConfig};
use headlight_tasks::program_code;

/// A program, and the model that it was compiled to.
#[derive(Debug, Clone)]
pub struct Known {
    /// The program.
    pub code: Program,
    /// The model.
    pub compiled: Compiled,
}

/// What the program of a head says of its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// At every query it selects the targets of this measure, and nothing else.
    Role(Measure),
    /// Of each measure, it does so at less than half of the queries.
    NoRole,
    /// Neither.
    Open,
}

impl Expected {
    /// Whether a role that was read from a pattern is right. `None` where the program leaves it open.
    #[must_use]
    pub fn verdict(self, found: Role) -> Option<RoleVerdict> {
        match (self, found) {
            (Self::Role(expected), Role::Of(found)) if expected == found => {
                Some(RoleVerdict::Found)
            }
            (Self::Role(_), _) => Some(RoleVerdict::Missed),
            (Self::NoRole, Role::Of(_)) => Some(RoleVerdict::FalselyFound),
            (Self::NoRole, Role::Mixed) => Some(RoleVerdict::RightlyNone),
            (Self::Open, _) => None,
        }
    }
}

/// Whether a role is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleVerdict {
    /// The head must have it, and has it.
    Found,
    /// The head must have another one.
    Missed,
    /// The head must have none, and has one.
    FalselyFound,
    /// The head must have none, and has none.
    RightlyNone,
}

impl RoleVerdict {
    /// In a table.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missed => "missed",
            Self::FalselyFound => "falsely found",
            Self::RightlyNone => "rightly none",
        }
    }
}

impl Known {
    /// The program of a run whose weights were compiled and not trained; `None` of other runs.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn of(config: &Config) -> Result<Option<Self>, Error> {
        let TaskConfig::Program(program) = &config.task else {
            return Ok(None);
        };
        let is_compiled = config.model.initialization == InitializationKind::Compiled;
        if !is_compiled || config.train.steps > 0 {
            return Ok(None);
        }
        Self::compiled(program_code(program)?, config.model.coldness()).map(Some)
    }

    /// A program, and what it compiles to.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub fn compiled(code: Program, coldness: f64) -> Result<Self, Error> {
        let compiled = code
            .compile(coldness)
            .map_err(|error| Error::because(ErrorKind::Config, "[task]", error))?;
        Ok(Self { code, compiled })
    }

    /// What the program answers, in words; `None` of a random program.
    #[must_use]
    pub fn answers(&self) -> Option<&'static str> {
        let named = |entry: &&programs::Entry| entry.name == self.code.name();
        programs::ALL.iter().find(named).map(|entry| entry.answers)
    }

    /// What the program computed on the tokens of a sequence, whose first is the start; nothing if
    /// the sequence is none of the program's.
    #[must_use]
    pub fn trace(&self, tokens: &[u32]) -> Option<Trace<'_>> {
        let (_start, input) = tokens.split_first()?;
        let mut names = Vec::new();
        for &token in input {
            names.push(self.compiled.vocabulary.get(token as usize)?);
        }
        self.code.run(&names).ok()
    }

    /// What the program says of the role of a head, on sequences whose first token is the start.
    /// `None` if the head computes nothing.
    #[must_use]
    pub fn expected_role(&self, head: HeadName, sequences: &[Vec<u32>]) -> Option<Expected> {
        let variable = &self.compiled.truth.computed_by(head)?.variable;
        Some(self.expected_of(variable, sequences))
    }

    /// What the program says of the role of the head that computes a variable, on sequences whose
    /// first token is the start.
    #[must_use]
    pub fn expected_of(&self, variable: &str, sequences: &[Vec<u32>]) -> Expected {
        let mut is_open = false;
        for measure in Measure::BUILT_IN {
            let fidelity = self.fidelity(variable, measure, sequences);
            if fidelity == 1.0 {
                return Expected::Role(measure);
            }
            is_open |= fidelity >= 0.5;
        }
        if is_open {
            Expected::Open
        } else {
            Expected::NoRole
        }
    }

    /// The share of queries with targets at which the head of a variable selects targets and nothing
    /// else; 0 without such queries. A head that selects every equal token selects its own too; that
    /// counts as duplicate tokens. The first two tokens are left out: there the token before is the
    /// first one.
    #[must_use]
    pub fn fidelity(&self, variable: &str, measure: Measure, sequences: &[Vec<u32>]) -> f64 {
        let (mut faithful, mut all) = (0_usize, 0_usize);
        for tokens in sequences {
            let trace = self.trace(tokens);
            let pattern = trace.and_then(|trace| trace.pattern(variable));
            let (Some(pattern), [_start, input @ ..]) = (pattern, &tokens[..]) else {
                continue;
            };
            for query in 2..input.len() {
                let targets = measure.targets(input, query);
                if targets.is_empty() {
                    continue;
                }
                all += 1;
                let selects = |key: &usize| pattern[query + 1][key + 1] > 0.0;
                let selected: Vec<usize> = (0..=query).filter(selects).collect();
                let is_own = |key| measure == Measure::DuplicateToken && key == query;
                let is_target = |key: &usize| targets.contains(key);
                let only_targets = selected.iter().all(|key| is_target(key) || is_own(*key));
                faithful += usize::from(only_targets && selected.iter().any(is_target));
            }
        }
        faithful as f64 / all.max(1) as f64
    }

    /// The value that a row of the stream holds of a variable: the name of the largest direction, or
    /// the number. Nothing where no direction of a category is above ½.
    ///
    /// # Panics
    /// If the row is not of the model's width.
    #[must_use]
    pub fn value_in(&self, place: &Place, stream: &[f32]) -> String {
        let names = &self.compiled.directions[place.directions.clone()];
        let values = &stream[place.directions.clone()];
        let (Some(name), Some(value)) = (names.first(), values.first()) else {
            return String::new();
        };
        if *name == place.variable {
            // One direction, that of a number.
            return format!("{}", (f64::from(*value) * 1e3).round() / 1e3 + 0.0);
        }
        let largest = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
        match largest {
            Some(at) if values[at] > 0.5 => names[at][place.variable.len() + 1..].to_owned(),
            _ => String::new(),
        }
    }

    /// Who reads what a part writes, as far as a variable goes along: `keys of L1H0`.
    #[must_use]
    pub fn readers(&self, part: Part, variable: &str) -> Vec<String> {
        let edges = self.compiled.truth.carrying();
        let carries = edges.filter(|edge| {
            edge.from == part && edge.carries.iter().any(|carried| carried == variable)
        });
        carries.map(|edge| edge.to.to_string()).collect()
    }
}
