//! The shape of the scores.

/// The shape of the scores to which a mask is applied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreShape {
    pub batch: usize,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
}

impl ScoreShape {
    /// Panics unless `dims` can be broadcast to the scores.
    pub(crate) fn assert_broadcast(&self, what: &str, dims: [usize; 4]) {
        let scores = [self.batch, self.heads, self.queries, self.keys];
        assert!(
            dims.iter()
                .zip(scores)
                .all(|(&own, score)| own == 1 || own == score),
            "{what} of shape {dims:?} does not fit scores of shape {scores:?} [batch, heads, queries, keys]"
        );
    }
}
