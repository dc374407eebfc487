//! What one variable reads when it is computed, and its value.

use crate::{
    Program,
    numbers::place,
    variable::{Choice, Domain, Id, Operation, Selector, Which},
};

/// The value of a variable at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Seen {
    /// The number of the value in its domain.
    Class(usize),
    Number(f64),
}

impl Seen {
    pub fn class(self) -> usize {
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

/// As what an operation reads a variable: the three inputs of a head, or that of a feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Queries,
    Keys,
    Values,
    Map,
}

/// Variables that are read in one slot as they were on another input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SwappedReads<'a> {
    /// `[variable][position]`
    pub other: &'a [Vec<Seen>],
    pub slot: Slot,
    pub variables: &'a [Id],
}

/// What one variable reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub program: &'a Program,
    /// `[variable][position]`
    pub values: &'a [Vec<Seen>],
    /// What is read from another input.
    pub swapped: Option<SwappedReads<'a>>,
}

impl Reading<'_> {
    /// A variable at every position, as it is read in this slot.
    fn of(&self, slot: Slot, id: Id) -> &[Seen] {
        match self.swapped {
            Some(swapped) if swapped.slot == slot && swapped.variables.contains(&id) => {
                &swapped.other[id]
            }
            _ => &self.values[id],
        }
    }

    /// The value of an operation at position `at`.
    pub fn value(&self, operation: &Operation, tokens: &[usize], at: usize) -> Seen {
        let mapped = |id: Id| self.of(Slot::Map, id)[at];
        match operation {
            Operation::Tokens => Seen::Class(tokens[at]),
            Operation::Indices => Seen::Class(at),
            Operation::Map { from, table } => Seen::Class(table[mapped(*from).class()]),
            Operation::MapTwo { left, right, table } => {
                Seen::Class(table[mapped(*left).class()][mapped(*right).class()])
            }
            Operation::Classes { from, table } => {
                let Domain::Numbers(Some(numbers)) = &self.program.variables[*from].domain else {
                    unreachable!("classes are of listed numbers")
                };
                Seen::Class(table[place(numbers, mapped(*from).number())])
            }
            Operation::Fetch {
                choice,
                values,
                table,
                otherwise,
            } => Seen::Class(match self.chosen(choice, at) {
                Some(key) => table[self.of(Slot::Values, *values)[key].class()],
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
                let values = self.of(Slot::Values, *values);
                let mut sum = 0.0;
                for &key in &keys {
                    sum += numbers[values[key].class()];
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
    pub fn selected(&self, selector: &Selector, query: usize) -> Vec<usize> {
        let row = &selector.table[self.of(Slot::Queries, selector.queries)[query].class()];
        let keys = self.of(Slot::Keys, selector.keys);
        (0..=query).filter(|&key| row[keys[key].class()]).collect()
    }

    pub fn chosen(&self, choice: &Choice, query: usize) -> Option<usize> {
        let selected = self.selected(&choice.selector, query);
        match choice.which {
            Which::Only | Which::First => selected.first().copied(),
            Which::Latest => selected.last().copied(),
        }
    }
}
