//! What is a positional head made of?

use headlight_heads::{HeadName, first_largest};
use serde::Serialize;

use super::Circuits;

/// How far back positions look for each other, whatever tokens stand there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FavouriteDistance {
    /// The distance at which most queries have their largest positional score.
    pub distance: usize,
    /// The share of queries, from the second on, that do.
    pub share: f64,
    /// What scores in no order give at this distance: the mean of 1/(keys seen), where it is seen
    /// at all.
    pub null: f64,
}

/// The distance at which the table `W_pos·W_QK·W_posᵀ` has the largest score of a row, keys after
/// the query apart, most often. It is the most frequent of many: a share slightly above its null
/// means nothing. The ceiling is 1: then positions alone make the head look so far back. `None`
/// where positions are not added to the stream.
///
/// # Panics
/// If there is no such head.
#[must_use]
pub fn favourite_distance(circuits: &Circuits, head: HeadName) -> Option<FavouriteDistance> {
    let table = circuits.positional_qk(head)?;
    let mut counts = vec![0_u32; table.rows()];
    let mut null = vec![0.0; table.rows()];
    table.for_each_row(|query, scores| {
        let first = (query + 1).saturating_sub(circuits.window(head));
        let seen = first..=query;
        if query == 0 {
            return;
        }
        // Of equal scores the nearest key counts.
        let Some(key) = first_largest(seen.clone().rev(), |&key| scores[key]) else {
            return;
        };
        counts[query - key] += 1;
        for key in seen {
            null[query - key] += 1.0 / (query - first + 1) as f64;
        }
    });
    let queries = table.rows().saturating_sub(1) as f64;
    let distance = first_largest(0..counts.len(), |&distance| f64::from(counts[distance]))?;
    Some(FavouriteDistance {
        distance,
        share: f64::from(counts[distance]) / queries,
        null: null[distance] / queries,
    })
}
