//! Positions of the rows and columns of the score matrix in their sequence.

/// The position of each query (row) and each key (column) in its sequence.
///
/// Every rule of a [`Mask`](crate::Mask) about order (`causal`, `window`, `lengths`) compares these
/// positions, never row and column numbers. So one rule serves a full pass, a pass over new tokens
/// only, and a cache whose slots are out of order.
///
/// An empty cache slot has no position, and no query may attend to it.
///
/// ```
/// use headlight_attention::Positions;
///
/// // Two new queries after three keys already seen: the last query is at the last key.
/// let positions = Positions::aligned_at_end(2, 5);
/// assert_eq!(positions.query(0, 0), 3);
/// assert_eq!(positions.query(0, 1), 4);
/// assert_eq!(positions.key(0, 4), Some(4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions {
    queries: Vec<Vec<i64>>,
    keys: Vec<Vec<Option<i64>>>,
}

impl Positions {
    /// Keys at `0 .. keys`, queries at the last `queries` of these, the same for each batch row.
    ///
    /// With more queries than keys the first queries get negative positions: they precede every
    /// key.
    #[must_use]
    pub fn aligned_at_end(queries: usize, keys: usize) -> Self {
        let first_query = keys as i64 - queries as i64;
        Self {
            queries: vec![(first_query..keys as i64).collect()],
            keys: vec![(0..keys as i64).map(Some).collect()],
        }
    }

    /// Positions from lists: one list for the whole batch, or one for each batch row.
    ///
    /// - `queries`: `[1 or batch][queries]`
    /// - `keys`: `[1 or batch][keys]`, `None` for an empty slot
    ///
    /// # Panics
    ///
    /// If there is no row, or the rows of one argument differ in length.
    ///
    /// ```
    /// # use headlight_attention::Positions;
    /// // A cache of three slots, out of order, the last one empty; a query at position 5.
    /// let positions = Positions::new(vec![vec![5]], vec![vec![Some(4), Some(3), None]]);
    /// assert_eq!(positions.len(), (1, 3));
    /// assert_eq!([0, 1, 2].map(|slot| positions.distance(0, 0, slot)), [Some(1), Some(2), None]);
    /// ```
    #[must_use]
    pub fn new(queries: Vec<Vec<i64>>, keys: Vec<Vec<Option<i64>>>) -> Self {
        assert!(
            !queries.is_empty() && !keys.is_empty(),
            "positions need at least one row for queries and one for keys"
        );
        assert!(
            queries.iter().all(|row| row.len() == queries[0].len())
                && keys.iter().all(|row| row.len() == keys[0].len()),
            "positions: all rows must have the same length"
        );
        Self { queries, keys }
    }

    /// Keeps one row if all rows are equal, so that the mask is built once for the batch.
    pub(crate) fn shared_if_equal(mut self) -> Self {
        if self.queries.iter().all(|row| *row == self.queries[0])
            && self.keys.iter().all(|row| *row == self.keys[0])
        {
            self.queries.truncate(1);
            self.keys.truncate(1);
        }
        self
    }

    /// The position of query `row` in batch row `batch`.
    #[must_use]
    pub fn query(&self, batch: usize, row: usize) -> i64 {
        shared_or_own(&self.queries, batch)[row]
    }

    /// The position of key `column` in batch row `batch`, `None` where the slot is empty.
    #[must_use]
    pub fn key(&self, batch: usize, column: usize) -> Option<i64> {
        shared_or_own(&self.keys, batch)[column]
    }

    /// The distance `q − k` from query `row` back to key `column`: negative if the key comes after
    /// the query, `None` if the slot is empty.
    #[must_use]
    pub fn distance(&self, batch: usize, row: usize, column: usize) -> Option<i64> {
        Some(self.query(batch, row) - self.key(batch, column)?)
    }

    /// `[1 or batch][queries]`
    pub(crate) fn query_rows(&self) -> &[Vec<i64>] {
        &self.queries
    }

    /// `[1 or batch][keys]`, with any number for an empty slot.
    pub(crate) fn key_rows(&self) -> Vec<Vec<i64>> {
        self.keys
            .iter()
            .map(|row| row.iter().map(|position| position.unwrap_or(0)).collect())
            .collect()
    }

    /// One more than the largest position of a key, `[1 or batch]`.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        let length = |row: &Vec<Option<i64>>| {
            let last = row.iter().flatten().copied().max().unwrap_or(-1);
            usize::try_from(last + 1).unwrap_or(0)
        };
        self.keys.iter().map(length).collect()
    }

    /// The number of queries and of keys.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        (self.queries[0].len(), self.keys[0].len())
    }

    /// Whether there is no query or no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let (queries, keys) = self.len();
        queries == 0 || keys == 0
    }

    /// The number of lists: 1, or the batch size.
    pub(crate) fn rows(&self) -> usize {
        self.queries.len().max(self.keys.len())
    }

    /// The number of keys in each row, `[1 or batch]`, if they stand one after the other without
    /// gaps and empty slots come last; else `None`.
    #[cfg(feature = "flex")]
    pub(crate) fn keys_in_order(&self) -> Option<Vec<usize>> {
        self.keys.iter().map(|row| count_in_order(row)).collect()
    }

    /// Whether some slot is empty.
    pub(crate) fn has_empty_slots(&self) -> bool {
        self.keys.iter().flatten().any(Option::is_none)
    }
}

/// The number of keys before the first empty slot, if each stands one after the last and no key
/// comes after an empty slot.
#[cfg(feature = "flex")]
fn count_in_order(row: &[Option<i64>]) -> Option<usize> {
    let count = row.iter().take_while(|key| key.is_some()).count();
    let (keys, empty) = row.split_at(count);
    let in_order = keys
        .windows(2)
        .all(|pair| matches!(pair, [Some(a), Some(b)] if *b == a + 1));
    (in_order && empty.iter().all(Option::is_none)).then_some(count)
}

pub(crate) fn shared_or_own<T>(rows: &[T], batch: usize) -> &T {
    if rows.len() == 1 {
        &rows[0]
    } else {
        &rows[batch]
    }
}
