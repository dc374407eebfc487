//! The weight of every head on the targets of every measure, query by query.

use headlight_heads::Measure;

use crate::LayerPattern;

/// The target keys of one measure at each query of some sequences.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    /// `[sequence · length + query]`; none where the query sees no target.
    rows: Vec<Option<Row>>,
    length: usize,
    keys: Vec<usize>,
    /// `[sequence]`: the queries that have a target, seen or not.
    counted: Vec<usize>,
}

/// The targets of one query.
#[derive(Debug, Clone, Copy)]
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

    /// The weights of one head on the targets of each query; 0 where it sees none.
    fn weights(&self, pattern: &LayerPattern, head: usize) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.rows.len());
        for sequence in 0..pattern.sequences() {
            for query in 0..self.length {
                weights.push(self.weight(pattern, head, sequence, query) as f32);
            }
        }
        weights
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

/// The weight of every head on the targets of every measure, query by query: what
/// [`role_ranges`](crate::role_ranges) and [`role_checks`](crate::role_checks) are computed from.
#[derive(Debug, Clone)]
pub struct TargetWeights {
    sequences: usize,
    targets: Vec<(Measure, Targets)>,
    /// `[head][measure]`, then `[sequence · length + query]`.
    weights: Vec<Vec<f32>>,
}

impl TargetWeights {
    /// Of the heads of all layers, first layer first.
    ///
    /// # Panics
    /// If `tokens` are not as many and as long as the patterns.
    #[must_use]
    pub fn of(layers: &[LayerPattern], tokens: &[Vec<u32>]) -> Self {
        let Some(first_layer) = layers.first() else {
            return Self {
                sequences: tokens.len(),
                targets: Vec::new(),
                weights: Vec::new(),
            };
        };
        let of_measure = |measure| (measure, Targets::of(measure, first_layer, tokens));
        let targets: Vec<(Measure, Targets)> = Measure::ALL.map(of_measure).into();
        let mut weights = Vec::new();
        for layer in layers {
            for head in 0..layer.n_heads() {
                for (_, targets) in &targets {
                    weights.push(targets.weights(layer, head));
                }
            }
        }
        Self {
            sequences: tokens.len(),
            targets,
            weights,
        }
    }

    /// The number of heads of all layers.
    pub(crate) fn n_heads(&self) -> usize {
        self.weights.len() / self.targets.len().max(1)
    }

    /// The number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.sequences
    }

    /// The weights of each head on each measure, head by head.
    pub(crate) fn series(&self) -> Vec<Series<'_>> {
        let mut all = Vec::with_capacity(self.weights.len());
        for (index, weights) in self.weights.iter().enumerate() {
            let (measure, targets) = &self.targets[index % self.targets.len()];
            all.push(Series {
                head: index / self.targets.len(),
                measure: *measure,
                targets,
                weights,
            });
        }
        all
    }
}

/// The weights of one head on the targets of one measure.
#[derive(Clone, Copy)]
pub(crate) struct Series<'a> {
    pub head: usize,
    pub measure: Measure,
    pub targets: &'a Targets,
    weights: &'a [f32],
}

impl Series<'_> {
    /// The weight on the targets of one query; 0 where it sees none.
    pub fn weight(&self, sequence: usize, query: usize) -> f64 {
        f64::from(self.weights[sequence * self.targets.length + query])
    }

    /// The number of queries.
    pub fn length(&self) -> usize {
        self.targets.length
    }
}
