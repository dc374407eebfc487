//! The rules of a mask: each rule decides for a pair (query, key) whether the query may attend.

use std::{fmt, sync::Arc};

use burn::tensor::{Bool, Tensor};

use crate::{Positions, score_shape::ScoreShape};

/// One condition on a pair.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    /// `k ≤ q`
    Causal,
    /// `0 ≤ q − k < width`
    Window(usize),
    /// `k < lengths[batch]`
    Lengths(Arc<[usize]>),
    /// The entry of an array at the pair's row and column.
    Array(Arc<KeepArray>),
}

/// An array that is true for pairs that may attend; an axis of size 1 holds for all.
#[derive(Debug, PartialEq)]
pub(crate) struct KeepArray {
    dims: [usize; 4],
    keep: Vec<bool>,
}

impl Rule {
    /// `query` and `key` are (row or column number, position in the sequence).
    pub fn allows(
        &self,
        batch: usize,
        head: usize,
        query: (usize, i64),
        key: (usize, i64),
    ) -> bool {
        let distance = query.1 - key.1;
        match self {
            Self::Causal => distance >= 0,
            Self::Window(width) => {
                distance >= 0 && distance < i64::try_from(*width).unwrap_or(i64::MAX)
            }
            Self::Lengths(lengths) => key.1 < i64::try_from(lengths[batch]).unwrap_or(i64::MAX),
            Self::Array(array) => array.get(batch, head, query.0, key.0),
        }
    }

    /// The sizes of the mask's batch and head axes: 1 along an axis on which no rule depends.
    pub fn copies(rules: &[Self], positions: &Positions, shape: &ScoreShape) -> (usize, usize) {
        let by_batch = positions.rows() > 1 || rules.iter().any(Self::depends_on_batch);
        let by_head = rules.iter().any(Self::depends_on_head);
        (
            if by_batch { shape.batch } else { 1 },
            if by_head { shape.heads } else { 1 },
        )
    }

    fn depends_on_batch(&self) -> bool {
        match self {
            Self::Causal | Self::Window(_) => false,
            Self::Lengths(_) => true,
            Self::Array(array) => array.dims[0] > 1,
        }
    }

    fn depends_on_head(&self) -> bool {
        matches!(self, Self::Array(array) if array.dims[1] > 1)
    }

    /// Panics if the rule was written for another shape.
    pub fn assert_fits(&self, shape: &ScoreShape) {
        match self {
            Self::Causal | Self::Window(_) => {}
            Self::Lengths(lengths) => assert_eq!(
                lengths.len(),
                shape.batch,
                "Mask::lengths has {} entries, the scores have batch {}",
                lengths.len(),
                shape.batch
            ),
            Self::Array(array) => shape.assert_broadcast("Mask::allowed", array.dims),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Causal => f.write_str("causal"),
            Self::Window(width) => write!(f, "window({width})"),
            Self::Lengths(lengths) => write!(f, "lengths{lengths:?}"),
            Self::Array(array) => write!(f, "allowed{:?}", array.dims),
        }
    }
}

impl KeepArray {
    pub fn from_tensor<const D: usize>(keep: Tensor<D, Bool>) -> Self {
        let shape = keep.dims();
        let dims = match shape[..] {
            [queries, keys] => [1, 1, queries, keys],
            [batch, queries, keys] => [batch, 1, queries, keys],
            [batch, heads, queries, keys] => [batch, heads, queries, keys],
            _ => panic!("Mask::allowed takes 2, 3 or 4 axes, not shape {shape:?}"),
        };
        let keep = keep.into_data().iter::<bool>().collect();
        Self { dims, keep }
    }

    fn get(&self, batch: usize, head: usize, row: usize, column: usize) -> bool {
        let index = [batch, head, row, column]
            .into_iter()
            .zip(self.dims)
            .fold(0, |index, (at, size)| {
                index * size + if size == 1 { 0 } else { at }
            });
        self.keep[index]
    }
}
