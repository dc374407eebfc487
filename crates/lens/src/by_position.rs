//! A head's scores query by query: a mean over positions hides a head that does one thing on the
//! first positions and another on the rest.

use std::collections::BTreeMap;

use headlight_heads::{Measure, Score};

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// The target keys of one measure at each query of some sequences.
pub(crate) struct Targets {
    /// `[sequence · length + query]`; none where the query sees no target.
    rows: Vec<Option<Row>>,
    length: usize,
    keys: Vec<usize>,
    /// `[sequence]`: the queries that have a target, seen or not.
    counted: Vec<usize>,
}

/// The targets of one query.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    first: usize,
    count: usize,
    /// What uniform attention gives them.
    pub null: f64,
}

impl Targets {
    /// The targets that the queries of `pattern` see; `tokens` are those of the pattern.
    pub fn of(measure: Measure, pattern: &LayerPattern, tokens: &[Vec<u32>]) -> Self {
        let length = pattern.length();
        let mut targets = Self {
            rows: Vec::with_capacity(tokens.len() * length),
            length,
            keys: Vec::new(),
            counted: Vec::with_capacity(tokens.len()),
        };
        for tokens in tokens {
            let mut counted = 0;
            for query in 0..length {
                let (seen, first) = (pattern.seen(query), targets.keys.len());
                let mut all = measure.each_target(tokens, query).peekable();
                counted += usize::from(all.peek().is_some());
                targets.keys.extend(all.filter(|key| seen.contains(key)));
                let count = targets.keys.len() - first;
                let null = count as f64 / seen.len() as f64;
                targets
                    .rows
                    .push((count > 0).then_some(Row { first, count, null }));
            }
            targets.counted.push(counted);
        }
        targets
    }

    /// The targets of one query.
    pub fn row(&self, sequence: usize, query: usize) -> Option<&Row> {
        self.rows[sequence * self.length + query].as_ref()
    }

    /// The queries of one sequence that have a target, seen or not.
    pub fn counted(&self, sequence: usize) -> usize {
        self.counted[sequence]
    }

    /// The target keys of one query; empty where it sees none.
    pub fn keys(&self, sequence: usize, query: usize) -> &[usize] {
        match self.row(sequence, query) {
            Some(row) => &self.keys[row.first..][..row.count],
            None => &[],
        }
    }

    /// The weight of one head on the targets of one query.
    pub fn weight(
        &self,
        pattern: &LayerPattern,
        head: usize,
        sequence: usize,
        query: usize,
    ) -> f64 {
        let weights = pattern.row(sequence, head, query);
        let keys = self.keys(sequence, query);
        keys.iter().map(|&key| f64::from(weights[key])).sum()
    }
}

/// The scores of one head by measure, each by query position; none where no sequence has a target
/// there.
pub type ScoresByPosition = BTreeMap<Measure, Vec<Option<Score>>>;

/// Every head's score on each measure at each query position: the mean over the sequences that
/// have a target there. The null is uniform attention on the same rows, the ceiling is 1, the
/// interval is a 95 % bootstrap over sequences at this position alone.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, scores_by_position};
///
/// // One head, three tokens: query 1 looks one back, query 2 at itself.
/// let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
/// let pattern = LayerPattern::new([1, 1, 3], &weights);
/// let scores = &scores_by_position(pattern, &[vec![4, 5, 6]])[0];
/// let previous = &scores[&Measure::PreviousToken];
/// assert!(previous[0].is_none()); // nothing stands before the first token
/// assert_eq!(previous[1].unwrap().value, 1.0);
/// assert_eq!((previous[2].unwrap().value, previous[2].unwrap().null), (0.0, 1.0 / 3.0));
/// ```
#[must_use]
pub fn scores_by_position(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<ScoresByPosition> {
    let mut heads = vec![ScoresByPosition::new(); pattern.n_heads()];
    for measure in Measure::ALL {
        let targets = Targets::of(measure, &pattern, tokens);
        for (head, scores) in heads.iter_mut().enumerate() {
            let at = |query| score_at(&targets, &pattern, head, query);
            scores.insert(measure, (0..pattern.length()).map(at).collect());
        }
    }
    heads
}

fn score_at(targets: &Targets, pattern: &LayerPattern, head: usize, query: usize) -> Option<Score> {
    let mut weights = Vec::new();
    let mut nulls = Vec::new();
    for sequence in 0..pattern.sequences() {
        if let Some(row) = targets.row(sequence, query) {
            let sum = targets.weight(pattern, head, sequence, query);
            weights.push(Share { sum, rows: 1 });
            nulls.push(Share {
                sum: row.null,
                rows: 1,
            });
        }
    }
    Some(Score {
        value: mean(&weights)?,
        null: mean(&nulls)?,
        ceiling: 1.0,
        interval: interval_of_ratio(&weights),
    })
}
