//! Rows that are not finite: a query, a key or a value that holds NaN or ±∞.
//!
//! A masked weight is 0, but 0·NaN and 0·∞ are NaN, so a product of matrices would carry such a row
//! to queries that may not attend to it. Here each product reads 0 in place of the row, and the
//! score of each pair to which the row belongs becomes NaN before the mask selects. NaN then
//! travels through scores and weights alone, which are exact where masked.
//!
//! Almost all tensors are finite. These are looked at once, and neither copied nor marked.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Shape, TensorData},
};
use headlight_vector::{Kernel, Simd, all_finite, vectorised};
use rayon::prelude::*;

use super::{head::matrix, tile::Place};

/// The rows that are not finite.
#[derive(Debug, Clone, Default)]
pub(crate) struct Poison {
    queries: Rows,
    keys: Rows,
}

/// A flag for each row of a tensor `[batch, heads, seq, width]`.
#[derive(Debug, Clone, Default)]
struct Rows {
    heads: usize,
    seq: usize,
    /// `[batch, heads, seq]`, true for a row that is not finite; empty if all rows are finite.
    flags: Vec<bool>,
}

impl Poison {
    /// The rows of `query` that are not finite, and the keys whose row in one of `keys` (keys,
    /// values) is not.
    pub fn of(query: &FlexTensor, keys: &[&FlexTensor]) -> Self {
        let tensors = [&[query], keys].concat();
        if is_finite(&tensors) {
            return Self::default();
        }
        let mut all_keys = Rows::default();
        for tensor in keys {
            all_keys = all_keys.or(Rows::of(tensor));
        }
        Self {
            queries: Rows::of(query),
            keys: all_keys,
        }
    }

    /// The same, and the rows of the output's gradient that are not finite.
    pub fn and_upstream(&self, upstream: &FlexTensor) -> Self {
        let mut poison = self.clone();
        if !is_finite(&[upstream]) {
            poison.queries = poison.queries.or(Rows::of(upstream));
        }
        poison
    }

    /// A tensor with a row for each query: 0 in the rows that are not finite.
    pub fn out_of_queries(&self, tensor: FlexTensor) -> FlexTensor {
        self.queries.zeroed_in(tensor)
    }

    /// A tensor with a row for each key: 0 in the rows that are not finite.
    pub fn out_of_keys(&self, tensor: FlexTensor) -> FlexTensor {
        self.keys.zeroed_in(tensor)
    }

    /// Sets the scores of a tile that are seen to NaN where the query or the key is not finite. Row
    /// `i` of the scores begins at `i·stride`; `heads` is the number of query heads.
    #[inline(always)]
    pub fn mark(&self, scores: &mut [f32], stride: usize, place: &Place, heads: usize) {
        if self.queries.flags.is_empty() && self.keys.flags.is_empty() {
            return;
        }
        let rows = scores.chunks_mut(stride);
        for (query, scores) in place.queries.clone().zip(rows) {
            let query_is_marked = self.queries.has(place.batch, place.head, heads, query);
            let keys = place.keys.start + place.seen.start..;
            for (key, score) in keys.zip(&mut scores[place.seen.clone()]) {
                if query_is_marked || self.keys.has(place.batch, place.head, heads, key) {
                    *score = f32::NAN;
                }
            }
        }
    }
}

impl Rows {
    fn of(tensor: &FlexTensor) -> Self {
        let shape = tensor.layout().shape();
        let (batch, heads, seq) = (shape[0], shape[1], shape[2]);
        let mut flags = Vec::with_capacity(batch * heads * seq);
        for batch in 0..batch {
            for head in 0..heads {
                let rows = matrix(tensor, batch, head, heads);
                for row in 0..seq {
                    flags.push((0..rows.columns).any(|i| !rows.at(row, i).is_finite()));
                }
            }
        }
        Self { heads, seq, flags }
    }

    /// The rows of either.
    fn or(mut self, other: Self) -> Self {
        if self.flags.is_empty() {
            return other;
        }
        for (flag, other) in self.flags.iter_mut().zip(other.flags) {
            *flag |= other;
        }
        self
    }

    /// Whether `row` is not finite for query head `head` of `heads`.
    #[inline(always)]
    fn has(&self, batch: usize, head: usize, heads: usize, row: usize) -> bool {
        if self.flags.is_empty() {
            return false;
        }
        let own_head = head / (heads / self.heads);
        self.flags[(batch * self.heads + own_head) * self.seq + row]
    }

    /// The tensor with 0 in these rows.
    fn zeroed_in(&self, tensor: FlexTensor) -> FlexTensor {
        if self.flags.is_empty() {
            return tensor;
        }
        let shape = tensor.layout().shape();
        let (batch, heads, width) = (shape[0], shape[1], shape[3]);
        let mut numbers = Vec::with_capacity(self.flags.len() * width);
        for batch in 0..batch {
            for head in 0..heads {
                let rows = matrix(&tensor, batch, head, heads);
                for row in 0..rows.rows {
                    let is_zero = self.has(batch, head, heads, row);
                    let number = |i| if is_zero { 0.0 } else { rows.at(row, i) };
                    numbers.extend((0..width).map(number));
                }
            }
        }
        let shape = Shape::new([batch, heads, self.seq, width]);
        FlexTensor::from_data(TensorData::new(numbers, shape))
    }
}

/// Whether every number of these tensors is finite.
fn is_finite(tensors: &[&FlexTensor]) -> bool {
    let sequences: Vec<(&FlexTensor, usize)> = tensors
        .iter()
        .flat_map(|tensor| (0..tensor.layout().shape()[0]).map(move |batch| (*tensor, batch)))
        .collect();
    sequences
        .into_par_iter()
        .all(|(tensor, batch)| vectorised(FiniteSequence { tensor, batch }))
}

/// All heads of a sequence.
struct FiniteSequence<'a> {
    tensor: &'a FlexTensor,
    batch: usize,
}

impl Kernel for FiniteSequence<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> bool {
        let Self { tensor, batch } = self;
        let layout = tensor.layout();
        let (shape, strides) = (layout.shape(), layout.strides());
        let axes = || (1..4).map(|axis| (shape[axis], strides[axis] as usize));
        let count: usize = axes().map(|(size, _)| size).product();
        let last: usize = axes().map(|(size, stride)| (size - 1) * stride).sum();
        if last + 1 == count {
            // The numbers lie side by side, in whichever order of axes.
            let first = layout.start_offset() + batch * strides[0] as usize;
            return all_finite(&tensor.storage::<f32>()[first..first + count]);
        }
        let heads = shape[1];
        (0..heads).all(|head| {
            let rows = matrix(tensor, batch, head, heads);
            (0..rows.rows).all(|row| match rows.row(row) {
                Some(row) => all_finite(row),
                None => (0..rows.columns).all(|i| rows.at(row, i).is_finite()),
            })
        })
    }
}
