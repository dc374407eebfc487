//! Handles of variables, and selectors: what a program is written with.

use std::fmt::Display;

use crate::{Error, variable::Which};

/// The name of the variable that has the position.
pub(crate) const INDICES: &str = "indices";

/// A value of a categorical variable. Its `Display` names the value.
pub trait Value: Clone + PartialEq + Display {}

impl<T: Clone + PartialEq + Display> Value for T {}

/// A categorical variable of a program: at every position one of few values.
#[derive(Debug, Clone, PartialEq)]
pub struct Category<T> {
    pub(crate) name: String,
    pub(crate) values: Vec<T>,
}

impl<T> Category<T> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values that it can have.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

/// A numerical variable of a program: at every position a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub(crate) name: String,
}

impl Number {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Which keys a query selects, among those at its own position and before: what a head's pattern
/// is. It may select several keys, or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    pub(crate) keys: String,
    pub(crate) queries: String,
    key_names: Vec<String>,
    query_names: Vec<String>,
    /// `[query][key]`
    pub(crate) table: Vec<Vec<bool>>,
}

/// A selector that chooses one key at most. Only such a one can move a category: the mean of two
/// one-hot values is no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub(crate) selector: Selector,
    pub(crate) which: Which,
}

/// Selects the keys for which `selects(key, query)` is true (Weiss et al. 2021, section 3). A query
/// sees the keys at its own position and before.
///
/// ```
/// use headlight_compile::{Draft, Layout, select};
///
/// let draft = Draft::new("example", ["a", "b"], Layout::Prefix { length: 4 })?;
/// let (tokens, indices) = (draft.tokens(), draft.indices());
/// // One position back: never more than one key.
/// assert!(select(&indices, &indices, |key, query| key + 1 == *query).only().is_ok());
/// // Earlier positions: several keys.
/// let error = select(&indices, &indices, |key, query| key < query).only().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the query 2 of indices selects indices = 0 and 1; take the .latest() or the .first() of them"
/// );
/// // A token can stand at several positions.
/// let error = select(&tokens, &tokens, |key, query| key == query).only().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the keys of tokens may stand at several positions; take the .latest() or the .first() of them"
/// );
/// # Ok::<(), headlight_compile::Error>(())
/// ```
#[must_use]
pub fn select<K: Value, Q: Value>(
    keys: &Category<K>,
    queries: &Category<Q>,
    selects: impl Fn(&K, &Q) -> bool,
) -> Selector {
    let mut table = Vec::new();
    for query in &queries.values {
        table.push(keys.values.iter().map(|key| selects(key, query)).collect());
    }
    Selector {
        keys: keys.name.clone(),
        queries: queries.name.clone(),
        key_names: keys.values.iter().map(ToString::to_string).collect(),
        query_names: queries.values.iter().map(ToString::to_string).collect(),
        table,
    }
}

impl Selector {
    /// The selected key, of which there is one at most.
    ///
    /// # Errors
    /// If there may be several: the keys are not positions, or a query selects two of them.
    pub fn only(self) -> Result<Choice, Error> {
        if self.keys != INDICES {
            return Err(Error::SeveralPositions { keys: self.keys });
        }
        for (query, row) in self.table.iter().enumerate() {
            let mut selected = (0..row.len()).filter(|&key| row[key]);
            if let (Some(first), Some(second)) = (selected.next(), selected.next()) {
                return Err(Error::SeveralKeys {
                    query: self.query_names[query].clone(),
                    first: self.key_names[first].clone(),
                    second: self.key_names[second].clone(),
                    queries: self.queries,
                    keys: self.keys,
                });
            }
        }
        Ok(self.choosing(Which::Only))
    }

    /// Of the selected keys the one nearest to the query.
    #[must_use]
    pub fn latest(self) -> Choice {
        self.choosing(Which::Latest)
    }

    /// Of the selected keys the one furthest from the query.
    #[must_use]
    pub fn first(self) -> Choice {
        self.choosing(Which::First)
    }

    fn choosing(self, which: Which) -> Choice {
        Choice {
            selector: self,
            which,
        }
    }
}
