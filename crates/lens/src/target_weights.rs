//! The weight of every head on the targets of every measure, query by query.

use std::ops::Range;

use headlight_heads::Measure;

use crate::LayerPattern;

/// The target keys of one score at each query of some sequences.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    length: usize,
    n_keys: usize,
    /// The tokens at the beginning that scores leave out.
    pub start: usize,
    /// `[sequence · length + query]`; none where the query sees no target.
    rows: Vec<Option<Row>>,
    /// The visible targets, each at `query · n_keys + key`, sequence by sequence.
    places: Vec<usize>,
    sequences: Vec<OfSequence>,
}

/// The targets of one query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    first: usize,
    count: usize,
    /// What uniform attention gives them.
    pub null: f64,
}

/// The targets of one sequence.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfSequence {
    places: Range<usize>,
    /// The queries that count, whether or not they see a target.
    pub counted: usize,
    /// Those of them that see one.
    pub reachable: usize,
    /// What uniform attention gives the targets, summed over queries.
    pub uniform: f64,
}

impl Targets {
    /// The targets of a measure; `tokens` are those of the pattern.
    pub fn of(measure: Measure, pattern: &LayerPattern, tokens: &[Vec<u32>]) -> Self {
        let start = pattern.start();
        Self::new(pattern, |sequence, query| {
            let tokens = &tokens[sequence][start..];
            let targets = measure.each_target(tokens, query.checked_sub(start)?);
            let mut targets = targets.map(move |key| key + start).peekable();
            // A query without a target does not count.
            targets.peek().is_some().then_some(targets)
        })
    }

    /// The targets that the queries of `pattern` see. A query counts if `targets`, given sequence
    /// and query, gives any list, be it an empty one.
    pub fn new<I: IntoIterator<Item = usize>>(
        pattern: &LayerPattern,
        targets: impl Fn(usize, usize) -> Option<I>,
    ) -> Self {
        let (length, n_keys) = (pattern.length(), pattern.keys());
        let mut all = Self {
            length,
            n_keys,
            start: pattern.start(),
            rows: Vec::with_capacity(pattern.sequences() * length),
            places: Vec::new(),
            sequences: Vec::with_capacity(pattern.sequences()),
        };
        for index in 0..pattern.sequences() {
            let mut sequence = OfSequence::default();
            sequence.places.start = all.places.len();
            for query in 0..length {
                let (seen, first) = (pattern.counted(query), all.places.len());
                if let Some(keys) = targets(index, query) {
                    sequence.counted += 1;
                    for key in keys {
                        if seen.contains(&key) {
                            all.places.push(query * n_keys + key);
                        }
                    }
                }
                let count = all.places.len() - first;
                // The start of a sequence sees nothing that counts.
                let null = count as f64 / seen.len().max(1) as f64;
                sequence.reachable += usize::from(count > 0);
                sequence.uniform += null;
                let row = (count > 0).then_some(Row { first, count, null });
                all.rows.push(row);
            }
            sequence.places.end = all.places.len();
            all.sequences.push(sequence);
        }
        all
    }

    /// What counts in each sequence.
    pub fn sequences(&self) -> &[OfSequence] {
        &self.sequences
    }

    /// The targets of one query.
    pub fn row(&self, sequence: usize, query: usize) -> Option<&Row> {
        self.rows[sequence * self.length + query].as_ref()
    }

    /// The target keys of one query; none where it sees none.
    pub fn keys(&self, sequence: usize, query: usize) -> impl Iterator<Item = usize> + '_ {
        let row = self.row(sequence, query);
        let places = row.map_or(&[][..], |row| &self.places[row.first..][..row.count]);
        places.iter().map(move |place| place - query * self.n_keys)
    }

    /// The weight of one head on all targets of a sequence.
    pub fn weight_in(&self, pattern: &LayerPattern, head: usize, sequence: usize) -> f64 {
        let weights = pattern.of_head(sequence, head);
        let places = &self.places[self.sequences[sequence].places.clone()];
        places.iter().map(|&place| f64::from(weights[place])).sum()
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
        self.keys(sequence, query)
            .map(|key| f64::from(weights[key]))
            .sum()
    }

    /// The weights of one head on the targets of each query; 0 where it sees none.
    fn weights(&self, pattern: &LayerPattern, head: usize) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.rows.len());
        for (sequence, rows) in self.rows.chunks(self.length).enumerate() {
            let of_sequence = pattern.of_head(sequence, head);
            for row in rows {
                let mut sum = 0.0;
                if let Some(row) = row {
                    for &place in &self.places[row.first..row.first + row.count] {
                        sum += of_sequence[place];
                    }
                }
                weights.push(sum);
            }
        }
        weights
    }
}

/// The target keys of every measure at each query of some sequences: the same for all heads and
/// layers, so they are looked for once.
#[derive(Debug, Clone)]
pub struct RoleTargets {
    pub(crate) measures: Vec<(Measure, Targets)>,
    sequences: usize,
}

impl RoleTargets {
    /// The targets in causal layers whose queries see `window` keys at most, before there is any
    /// pattern. The first token is the start of the sequence if `has_start`.
    ///
    /// # Panics
    /// If the sequences are not equally long.
    #[must_use]
    pub fn causal(tokens: &[Vec<u32>], window: Option<usize>, has_start: bool) -> Self {
        let length = tokens.first().map_or(0, Vec::len);
        // Only the keys that a query sees are asked of the pattern, not its weights.
        let blank = vec![0.0; tokens.len() * length * length];
        let pattern = LayerPattern::new([tokens.len(), 1, length], &blank)
            .with_window(window)
            .with_start(has_start);
        Self::of(&pattern, tokens)
    }

    /// The targets that the queries of `pattern` see; `tokens` are those of the pattern.
    ///
    /// # Panics
    /// If `tokens` are not as many and as long as the pattern, as queries and as keys.
    #[must_use]
    pub fn of(pattern: &LayerPattern, tokens: &[Vec<u32>]) -> Self {
        assert!(
            tokens.len() == pattern.sequences()
                && pattern.keys() == pattern.length()
                && tokens.iter().all(|row| row.len() == pattern.length()),
            "{} sequences do not fit the patterns",
            tokens.len()
        );
        let of_measure = |measure| (measure, Targets::of(measure, pattern, tokens));
        Self {
            measures: Measure::all().into_iter().map(of_measure).collect(),
            sequences: tokens.len(),
        }
    }
}

/// The weight of every head on the targets of every measure, query by query: what
/// [`role_ranges`](crate::role_ranges) and [`role_checks`](crate::role_checks) are computed from.
#[derive(Debug, Clone)]
pub struct TargetWeights<'a> {
    targets: &'a RoleTargets,
    /// `[head][measure]`, then `[sequence · length + query]`.
    weights: Vec<Vec<f32>>,
}

impl<'a> TargetWeights<'a> {
    /// Of no head yet; those of each layer are [added](Self::add), first layer first.
    #[must_use]
    pub fn new(targets: &'a RoleTargets) -> Self {
        let weights = Vec::new();
        Self { targets, weights }
    }

    /// Of the heads of all layers, first layer first.
    ///
    /// # Panics
    /// If the targets are not those of the patterns.
    #[must_use]
    pub fn of(layers: &[LayerPattern], targets: &'a RoleTargets) -> Self {
        let mut weights = Self::new(targets);
        for layer in layers {
            weights.add(layer);
        }
        weights
    }

    /// Adds the heads of a layer, whose pattern may be dropped then.
    ///
    /// # Panics
    /// If the targets are not those of the pattern.
    pub fn add(&mut self, layer: &LayerPattern) {
        for head in 0..layer.n_heads() {
            for (_, targets) in &self.targets.measures {
                self.weights.push(targets.weights(layer, head));
            }
        }
    }

    /// The number of heads of all layers.
    pub(crate) fn n_heads(&self) -> usize {
        self.weights.len() / self.targets.measures.len()
    }

    /// The number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.targets.sequences
    }

    /// The weights of each head on each measure, head by head.
    pub(crate) fn series(&self) -> Vec<Series<'_>> {
        let measures = &self.targets.measures;
        let mut all = Vec::with_capacity(self.weights.len());
        for (index, weights) in self.weights.iter().enumerate() {
            let (measure, targets) = &measures[index % measures.len()];
            all.push(Series {
                head: index / measures.len(),
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
