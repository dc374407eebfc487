//! The keys that a row of scores may see, without a matrix of flags.

use std::ops::Range;

use crate::{Mask, Positions, mask_rule::Rule, positions::shared_or_own, score_shape::ScoreShape};

/// The rules of a mask, evaluated row by row.
#[derive(Debug)]
pub(crate) struct VisibleKeys {
    rules: Vec<Rule>,
    positions: Positions,
    /// The number of keys in each sequence, `[1 or batch]`, where they stand in order without gaps
    /// and every rule speaks of positions: what a row sees is then one run of columns.
    in_order: Option<Vec<usize>>,
}

impl VisibleKeys {
    pub fn new(mask: &Mask, shape: &ScoreShape) -> Self {
        let positions = mask.positions_for(shape.queries, shape.keys);
        mask.assert_fits(shape, &positions);
        let by_position = mask
            .rules
            .iter()
            .all(|rule| !matches!(rule, Rule::Array(_)));
        Self {
            rules: mask.rules.clone(),
            in_order: positions.keys_in_order().filter(|_| by_position),
            positions,
        }
    }

    /// A run of columns that includes every column that `row` may see, and no other column if
    /// [`in_runs`](Self::in_runs).
    pub fn run(&self, batch: usize, row: usize) -> Range<usize> {
        let Some(in_order) = &self.in_order else {
            return 0..self.positions.len().1;
        };
        let keys = *shared_or_own(in_order, batch);
        if keys == 0 {
            return 0..0;
        }
        let query = self.positions.query(batch, row);
        let first = self.positions.key(batch, 0).unwrap_or(0);
        let (mut low, mut high) = (first, first + keys as i64);
        for rule in &self.rules {
            match rule {
                Rule::Causal => high = high.min(query + 1),
                Rule::Window(width) => {
                    high = high.min(query + 1);
                    low = low.max(
                        query
                            .saturating_sub(i64::try_from(*width).unwrap_or(i64::MAX))
                            .saturating_add(1),
                    );
                }
                Rule::Lengths(lengths) => {
                    high = high.min(i64::try_from(lengths[batch]).unwrap_or(i64::MAX));
                }
                Rule::Array(_) => {}
            }
        }
        if high <= low {
            0..0
        } else {
            (low - first) as usize..(high - first) as usize
        }
    }

    /// Whether [`run`](Self::run) holds visible columns only.
    pub fn in_runs(&self) -> bool {
        self.in_order.is_some()
    }

    /// Whether `row` may see `column`.
    pub fn sees(&self, batch: usize, head: usize, row: usize, column: usize) -> bool {
        let query = (row, self.positions.query(batch, row));
        self.positions.key(batch, column).is_some_and(|key| {
            self.rules
                .iter()
                .all(|rule| rule.allows(batch, head, query, (column, key)))
        })
    }
}
