//! Variables: what a program computes at every position.

/// The number of a variable in its program.
pub(crate) type Id = usize;

/// One line of a program: a value at every position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variable {
    pub name: String,
    pub domain: Domain,
    pub operation: Operation,
}

/// The values that a variable can have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Domain {
    /// The names of the values. A model holds them one-hot.
    Classes(Vec<String>),
    /// All values in order, or `None` if they are too many to list. A model holds the number itself.
    Numbers(Option<Vec<f64>>),
}

impl Domain {
    /// The number of basis directions that hold it.
    pub fn width(&self) -> usize {
        match self {
            Self::Classes(names) => names.len(),
            Self::Numbers(_) => 1,
        }
    }

    /// The names of the classes; none of a number.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Classes(names) => names,
            Self::Numbers(_) => &[],
        }
    }
}

/// How a variable is computed. Classes are numbered as in their domain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    /// The token at the position.
    Tokens,
    /// The position, counted from 0 behind the start-of-sequence token.
    Indices,
    /// `table[from]`
    Map { from: Id, table: Vec<usize> },
    /// `table[left][right]`
    MapTwo {
        left: Id,
        right: Id,
        table: Vec<Vec<usize>>,
    },
    /// `table[i]` where the number is the i-th of its domain.
    Classes { from: Id, table: Vec<usize> },
    /// The class of `values` at the one key that is selected. `table` has the class here of each
    /// class there.
    Fetch {
        choice: Choice,
        values: Id,
        table: Vec<usize>,
        otherwise: usize,
    },
    /// The mean of `numbers[values]` over the keys that are selected.
    Mean {
        selector: Selector,
        values: Id,
        numbers: Vec<f64>,
        otherwise: f64,
    },
    /// `1/(1 + w)` of the `w` keys that are selected.
    Rest { selector: Selector },
}

impl Operation {
    /// The variables that it reads.
    pub fn reads(&self) -> Vec<Id> {
        match self {
            Self::Tokens | Self::Indices => Vec::new(),
            Self::Map { from, .. } | Self::Classes { from, .. } => vec![*from],
            Self::MapTwo { left, right, .. } => vec![*left, *right],
            Self::Fetch { choice, values, .. } => {
                vec![choice.selector.keys, choice.selector.queries, *values]
            }
            Self::Mean {
                selector, values, ..
            } => vec![selector.keys, selector.queries, *values],
            Self::Rest { selector } => vec![selector.keys, selector.queries],
        }
    }

    /// The selector of a head; none of an element-wise map.
    pub fn selector(&self) -> Option<&Selector> {
        match self {
            Self::Fetch { choice, .. } => Some(&choice.selector),
            Self::Mean { selector, .. } | Self::Rest { selector } => Some(selector),
            _ => None,
        }
    }
}

/// Which keys a query selects, among those at its own position and before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selector {
    pub keys: Id,
    pub queries: Id,
    /// `[class of the query][class of the key]`
    pub table: Vec<Vec<bool>>,
}

/// A selector that chooses one key at most.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub selector: Selector,
    pub which: Which,
}

/// Which of the selected keys is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The only one.
    Only,
    /// The one nearest to the query.
    Latest,
    /// The one furthest from the query.
    First,
}
