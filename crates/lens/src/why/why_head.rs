//! The terms that make a head look where it looks, over many cells.

use std::collections::BTreeMap;

use headlight_heads::Interval;
use serde::Serialize;

use super::{Cell, Contrast, Ingredient, OpenedHead, cell::Coefficients, grouping::Grouping};
use crate::bootstrap::{Estimate, Share};

/// A term below this share of the sizes of all tells nothing.
const LEAST_TELLING: f64 = 0.002;

/// A mean over cells; its interval by bootstrap over sequences, of which it takes two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellMean {
    /// The mean.
    pub value: f64,
    /// 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

impl CellMean {
    pub(super) fn of(shares: &[Share]) -> Self {
        let with_cells: Vec<Share> = shares
            .iter()
            .copied()
            .filter(|share| share.rows > 0)
            .collect();
        let Estimate { mean, interval } = Estimate::of(&with_cells);
        Self {
            value: mean,
            interval: (with_cells.len() > 1).then_some(interval),
        }
    }
}

/// One term: what a query is made of meets what a key is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// What the query is made of, its mean over all queries taken off; or that mean.
    pub query: Ingredient,
    /// What the key is made of.
    pub key: Ingredient,
    /// What it adds to the margin.
    #[serde(flatten)]
    pub value: CellMean,
    /// The same with a visible key drawn at random in place of the cell's.
    pub random_key: f64,
    /// The same with the matrices turned at random against each other: root mean square over draws.
    /// `None` where no matrix takes part.
    pub turned: Option<f64>,
}

/// What one ingredient of the keys adds to the margin, with all parts of the query together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfKey {
    /// What the key is made of.
    pub key: Ingredient,
    /// What it adds with what is this query's own.
    pub matched: CellMean,
    /// What it adds with the mean of all queries.
    pub for_every_query: CellMean,
}

/// Why a head looks at the keys of some cells and not at others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The number of cells.
    pub cells: usize,
    /// What was taken off the scores.
    pub contrast: Contrast,
    /// The mean weight on the keys of a cell.
    pub weight: CellMean,
    /// The mean of score minus what is taken off, before a softcap: the sum of all terms.
    pub margin: CellMean,
    /// The same with a visible key drawn at random in place of the cell's.
    pub random_key: CellMean,
    /// `Σ|terms|` of a cell, its mean: how much cancels.
    pub sizes: f64,
    /// The largest first. Many small ingredients are counted together.
    pub terms: Vec<Term>,
    /// The terms added up over queries, what is matched most first.
    pub by_key: Vec<OfKey>,
    #[serde(skip)]
    pub(super) groups: Groups,
}

/// In which groups the ingredients of queries and of keys are counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Groups {
    pub queries: Grouping,
    pub keys: Grouping,
}

impl Groups {
    /// Adds the terms of ingredients up to those of groups, `[query group, key group]`.
    fn sum(&self, terms: &[f64]) -> Vec<f64> {
        let columns = self.keys.names.len();
        let mut sums = vec![0.0; self.queries.names.len() * columns];
        for (row, &query) in terms.chunks(self.keys.group.len()).zip(&self.queries.group) {
            for (term, &key) in row.iter().zip(&self.keys.group) {
                sums[query * columns + key] += term;
            }
        }
        sums
    }
}

/// Sums over the cells of one sequence.
#[derive(Debug, Clone, Default)]
struct OfSequence {
    cells: usize,
    weight: f64,
    terms: Vec<f64>,
    random: Vec<f64>,
    position_bias: f64,
    random_position_bias: f64,
    sizes: f64,
}

impl OpenedHead {
    /// Why the head looks at the keys of these cells, `[sequence]`. The [nulls of turned
    /// matrices](Why::against_turned) come in a pass of their own. `None` without a cell.
    ///
    /// # Panics
    /// If a query does not see a key of its cell, or no other key.
    #[must_use]
    pub fn why(&self, cells: &[Vec<Cell>], contrast: Contrast) -> Option<Why> {
        let mut sums = Vec::with_capacity(cells.len());
        for (sequence, cells) in cells.iter().enumerate() {
            sums.push(self.sum_over(sequence, cells, contrast));
        }
        let count: usize = sums.iter().map(|sum| sum.cells).sum();
        if count == 0 {
            return None;
        }
        let mean_terms = added(sums.iter().map(|sum| sum.terms.as_slice()));
        let mut of_queries = row_sizes(&mean_terms, self.keys.len());
        // What is for every query is told by its name.
        of_queries[self.queries.len() - 1] = f64::INFINITY;
        let groups = Groups {
            queries: Grouping::of(&self.queries, &of_queries),
            keys: Grouping::of(&self.keys, &column_sizes(&mean_terms, self.keys.len())),
        };
        let mean = |of: fn(&OfSequence) -> f64| {
            let share = |sum: &OfSequence| Share {
                sum: of(sum),
                rows: sum.cells,
            };
            CellMean::of(&sums.iter().map(share).collect::<Vec<_>>())
        };
        Some(Why {
            cells: count,
            contrast,
            weight: mean(|sum| sum.weight),
            margin: mean(|sum| sum.terms.iter().sum::<f64>() + sum.position_bias),
            random_key: mean(|sum| sum.random.iter().sum::<f64>() + sum.random_position_bias),
            sizes: mean(|sum| sum.sizes).value,
            terms: self.grouped_terms(&groups, &sums, mean),
            by_key: by_key(&groups, &sums),
            groups,
        })
    }

    fn sum_over(&self, sequence: usize, cells: &[Cell], contrast: Contrast) -> OfSequence {
        let size = self.queries.len() * self.keys.len();
        let mut sum = OfSequence {
            terms: vec![0.0; size],
            random: vec![0.0; size],
            ..OfSequence::default()
        };
        for cell in cells {
            let scores = self.scores(sequence, cell.query);
            let coefficients = Coefficients::of(cell, scores, contrast);
            let asked = self.terms(sequence, cell.query, &coefficients.asked);
            let random = self.terms(sequence, cell.query, &coefficients.random);
            let weights = cell
                .keys
                .iter()
                .map(|&key| self.weight(sequence, cell.query, key));
            sum.cells += 1;
            sum.weight += weights.sum::<f64>();
            sum.sizes += asked.sizes();
            sum.position_bias += asked.position_bias;
            sum.random_position_bias += random.position_bias;
            add(&mut sum.terms, &asked.terms);
            add(&mut sum.random, &random.terms);
        }
        sum
    }

    fn grouped_terms(
        &self,
        groups: &Groups,
        sums: &[OfSequence],
        mean: impl Fn(fn(&OfSequence) -> f64) -> CellMean,
    ) -> Vec<Term> {
        let grouped: Vec<Vec<f64>> = sums.iter().map(|sum| groups.sum(&sum.terms)).collect();
        let random = groups.sum(&added(sums.iter().map(|sum| sum.random.as_slice())));
        let cells: usize = sums.iter().map(|sum| sum.cells).sum();
        let mut terms = Vec::new();
        for (row, &query) in groups.queries.names.iter().enumerate() {
            for (column, &key) in groups.keys.names.iter().enumerate() {
                let at = row * groups.keys.names.len() + column;
                let share = |(grouped, sum): (&Vec<f64>, &OfSequence)| Share {
                    sum: grouped[at],
                    rows: sum.cells,
                };
                let shares: Vec<Share> = grouped.iter().zip(sums).map(share).collect();
                terms.push(Term {
                    query,
                    key,
                    value: CellMean::of(&shares),
                    random_key: random[at] / cells as f64,
                    turned: None,
                });
            }
        }
        if self.position_bias.is_some() {
            terms.push(Term {
                query: Ingredient::EveryQuery,
                key: Ingredient::PositionBias,
                value: mean(|sum| sum.position_bias),
                random_key: mean(|sum| sum.random_position_bias).value,
                turned: None,
            });
        }
        terms.sort_by(|a, b| b.value.value.abs().total_cmp(&a.value.value.abs()));
        terms
    }
}

/// For each group of keys the terms of its column: of every query, and of the others together.
fn by_key(groups: &Groups, sums: &[OfSequence]) -> Vec<OfKey> {
    let columns = groups.keys.names.len();
    let is_for_every = |query: &Ingredient| *query == Ingredient::EveryQuery;
    let grouped: Vec<Vec<f64>> = sums.iter().map(|sum| groups.sum(&sum.terms)).collect();
    let mean = |column: usize, for_every: bool| {
        let mut shares = Vec::new();
        for (terms, sum) in grouped.iter().zip(sums) {
            let rows = terms.chunks(columns).zip(&groups.queries.names);
            let rows = rows.filter(|(_, query)| is_for_every(query) == for_every);
            shares.push(Share {
                sum: rows.map(|(row, _)| row[column]).sum(),
                rows: sum.cells,
            });
        }
        CellMean::of(&shares)
    };
    let mut by_key = Vec::new();
    for (column, &key) in groups.keys.names.iter().enumerate() {
        by_key.push(OfKey {
            key,
            matched: mean(column, false),
            for_every_query: mean(column, true),
        });
    }
    by_key.sort_by(|a, b| b.matched.value.abs().total_cmp(&a.matched.value.abs()));
    by_key
}

impl Why {
    /// What is for every query, whatever it holds: the sum of its terms.
    #[must_use]
    pub fn for_every_query(&self) -> f64 {
        let for_every = |term: &&Term| term.query == Ingredient::EveryQuery;
        self.terms
            .iter()
            .filter(for_every)
            .map(|term| term.value.value)
            .sum()
    }

    /// How many of the terms, from the largest on, are at least 0.002 of the sizes of all.
    #[must_use]
    pub fn telling_terms(&self) -> usize {
        let is_telling = |term: &Term| term.value.value.abs() >= LEAST_TELLING * self.sizes;
        self.terms.partition_point(is_telling)
    }

    /// The same with the null of every term, by the names of query and key.
    pub(super) fn with_turned(mut self, turned: &BTreeMap<(Ingredient, Ingredient), f64>) -> Self {
        for term in &mut self.terms {
            term.turned = turned.get(&(term.query, term.key)).copied();
        }
        self
    }
}

/// `[row]`: the sum of the absolute values of each row.
fn row_sizes(terms: &[f64], columns: usize) -> Vec<f64> {
    let size = |row: &[f64]| row.iter().map(|term| term.abs()).sum();
    terms.chunks(columns).map(size).collect()
}

/// `[column]`: the sum of the absolute values of each column.
fn column_sizes(terms: &[f64], columns: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; columns];
    for row in terms.chunks(columns) {
        for (size, term) in sizes.iter_mut().zip(row) {
            *size += term.abs();
        }
    }
    sizes
}

fn add(sum: &mut [f64], more: &[f64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

fn added<'a>(rows: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    for row in rows {
        sum.resize(row.len(), 0.0);
        add(&mut sum, row);
    }
    sum
}
