//! Random programs: the population on which methods are judged.

use rand::{RngExt, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    Draft, Error, Layout, Program,
    numbers::{means, rests, sorted},
    variable::{Choice, Domain, Id, Operation, Selector, Which},
};

/// The largest number of values of a variable that others read.
const MOST_VALUES: usize = 12;

/// A program of `lines` variables over four letters, for inputs up to `length`, that follows from
/// the seed. The answer is the last line that has classes.
///
/// A line is, with equal chance, a map of one variable, a map of two, a fetched value, a count, or a
/// share put into classes of quarters. What it reads is drawn from all categorical lines before it.
/// A selector compares by equality, by distance in positions, by order, or by a random table.
///
/// # Errors
/// If the length is 0 or too large.
///
/// ```
/// use headlight_compile::random_program;
///
/// let program = random_program(7, 4, 6)?;
/// assert_eq!(program, random_program(7, 4, 6)?);
/// assert_ne!(program, random_program(8, 4, 6)?);
/// assert!(program.compile(100.0).is_ok());
/// # Ok::<(), headlight_compile::Error>(())
/// ```
pub fn random_program(seed: u64, lines: usize, length: usize) -> Result<Program, Error> {
    let name = format!("random_{seed}");
    let draft = Draft::new(&name, ["a", "b", "c", "d"], Layout::Prefix { length })?;
    let tokens = draft.tokens();
    let mut writer = Writer {
        program: draft.answer(&tokens)?,
        rng: ChaCha8Rng::seed_from_u64(seed),
    };
    for line in 0..lines {
        writer.add_line(&format!("v{line}"))?;
    }
    Ok(writer.program)
}

struct Writer {
    program: Program,
    rng: ChaCha8Rng,
}

impl Writer {
    fn add_line(&mut self, name: &str) -> Result<(), Error> {
        self.program.answer = match self.rng.random_range(0..5) {
            0 => self.add_map(name)?,
            1 => self.add_map_two(name)?,
            2 => self.add_fetch(name)?,
            3 => self.add_width(name)?,
            _ => self.add_share(name)?,
        };
        Ok(())
    }

    fn add_map(&mut self, name: &str) -> Result<Id, Error> {
        let from = self.categorical();
        let (domain, table) = self.map_of(self.width(from));
        self.program
            .add(name, domain, Operation::Map { from, table })
    }

    fn add_map_two(&mut self, name: &str) -> Result<Id, Error> {
        let (left, right) = (self.categorical(), self.categorical());
        let (rows, columns) = (self.width(left), self.width(right));
        let (domain, flat) = self.map_of(rows * columns);
        let table = flat.chunks(columns).map(<[usize]>::to_vec).collect();
        self.program
            .add(name, domain, Operation::MapTwo { left, right, table })
    }

    fn add_fetch(&mut self, name: &str) -> Result<Id, Error> {
        let (selector, one_back) = self.selector();
        let latest_or_first = *[Which::Latest, Which::First]
            .choose(&mut self.rng)
            .unwrap_or(&Which::Latest);
        let which = if one_back {
            Which::Only
        } else {
            latest_or_first
        };
        let values = self.categorical();
        let mut names = self.program.variables[values].domain.names().to_vec();
        let table = (0..names.len()).collect();
        let otherwise = names
            .iter()
            .position(|name| name == "-")
            .unwrap_or_else(|| {
                names.push("-".to_owned());
                names.len() - 1
            });
        let operation = Operation::Fetch {
            choice: Choice { selector, which },
            values,
            table,
            otherwise,
        };
        self.program.add(name, Domain::Classes(names), operation)
    }

    fn add_width(&mut self, name: &str) -> Result<Id, Error> {
        let (selector, _) = self.selector();
        let positions = self.program.layout.positions();
        let numbers = sorted(rests(positions));
        // The largest number, 1, is the rest of an empty selection.
        let table = (0..numbers.len()).rev().collect();
        let names = (0..=positions).map(|count| count.to_string()).collect();
        let rest = self.program.add(
            &format!("1/(1+{name})"),
            Domain::Numbers(Some(numbers)),
            Operation::Rest { selector },
        )?;
        self.program.add(
            name,
            Domain::Classes(names),
            Operation::Classes { from: rest, table },
        )
    }

    fn add_share(&mut self, name: &str) -> Result<Id, Error> {
        let (selector, _) = self.selector();
        let values = self.categorical();
        let mut numbers = Vec::new();
        for _ in 0..self.width(values) {
            numbers.push(f64::from(u8::from(self.rng.random_bool(0.5))));
        }
        let positions = self.program.layout.positions();
        let listed = means(&[0.0, 1.0], 0.0, positions).unwrap_or_default();
        let quarter = |share: &f64| (4.0 * share + 1e-9).floor() as usize;
        let table = listed.iter().map(quarter).collect();
        let operation = Operation::Mean {
            selector,
            values,
            numbers,
            otherwise: 0.0,
        };
        let share = format!("share {name}");
        let from = self
            .program
            .add(&share, Domain::Numbers(Some(listed)), operation)?;
        let names = (0..=4).map(|quarter| format!("{quarter}/4")).collect();
        self.program.add(
            name,
            Domain::Classes(names),
            Operation::Classes { from, table },
        )
    }

    /// A selector, and whether it selects one position at a fixed distance.
    fn selector(&mut self) -> (Selector, bool) {
        let kind = self.rng.random_range(0..4);
        let (keys, queries) = match kind {
            0 => (1, 1),
            1 => {
                let same = self.categorical();
                (same, same)
            }
            _ => (self.categorical(), self.categorical()),
        };
        let distance = self.rng.random_range(1..=3);
        let (rows, columns) = (self.width(queries), self.width(keys));
        let mut table = vec![vec![false; columns]; rows];
        for (query, row) in table.iter_mut().enumerate() {
            for (key, selects) in row.iter_mut().enumerate() {
                *selects = match kind {
                    0 => key + distance == query,
                    1 => key == query,
                    2 => key < query,
                    _ => self.rng.random_bool(0.3),
                };
            }
        }
        let selector = Selector {
            keys,
            queries,
            table,
        };
        (selector, kind == 0)
    }

    /// A random map of `from` values to two to four new ones, each of which occurs.
    fn map_of(&mut self, from: usize) -> (Domain, Vec<usize>) {
        let to = self.rng.random_range(2..=4).min(from);
        let mut table: Vec<usize> = (0..to).collect();
        for _ in to..from {
            table.push(self.rng.random_range(0..to));
        }
        let names = (0..to).map(|class| format!("v{class}")).collect();
        (Domain::Classes(names), table)
    }

    /// A categorical variable with few values.
    fn categorical(&mut self) -> Id {
        let mut known: Vec<Id> = Vec::new();
        for (id, variable) in self.program.variables.iter().enumerate() {
            let names = variable.domain.names();
            if (2..=MOST_VALUES).contains(&names.len()) {
                known.push(id);
            }
        }
        known.choose(&mut self.rng).copied().unwrap_or(0)
    }

    fn width(&self, id: Id) -> usize {
        self.program.variables[id].domain.width()
    }
}
