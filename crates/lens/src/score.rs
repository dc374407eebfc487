//! Head scores: value, uniform null, ceiling and interval.
#![allow(
    clippy::inline_always,
    reason = "vector width is chosen outside, so loops must be compiled inside the caller"
)]

use std::ops::Range;

use headlight_heads::{MayAttend, Score, ScoreName, Scores};
use headlight_vector::{Kernel, LANES, Simd, entropy as entropy_of, vectorised};

use crate::{
    RoleTargets,
    bootstrap::{Share, interval_of_ratio, mean},
    target_weights::{OfSequence, Targets},
};

/// The patterns of the heads of one layer, `[batch, heads, queries, keys]` row by row: of a causal
/// layer with queries = keys, unless another constructor says otherwise.
#[derive(Debug, Clone, Copy)]
pub struct LayerPattern<'a> {
    n_heads: usize,
    length: usize,
    keys: usize,
    weights: &'a [f32],
    may_attend: MayAttend,
    has_start: bool,
}

impl<'a> LayerPattern<'a> {
    /// # Panics
    /// If the number of weights is not `batch · n_heads · length²`.
    #[must_use]
    pub fn new([batch, n_heads, length]: [usize; 3], weights: &'a [f32]) -> Self {
        assert_eq!(
            weights.len(),
            batch * n_heads * length * length,
            "patterns of {batch} sequences, {n_heads} heads, length {length}"
        );
        Self {
            n_heads,
            length,
            keys: length,
            weights,
            may_attend: MayAttend::Causal,
            has_start: false,
        }
    }

    /// The patterns of a layer whose queries see all keys, of which there may be another number: an
    /// encoder, or cross-attention. In cross-attention `query − key` is no distance and queries and
    /// keys are other tokens, so its heads are scored on targets of one's own: [`score_targets`].
    ///
    /// # Panics
    /// If the number of weights is not `batch · n_heads · queries · keys`.
    #[must_use]
    pub fn of_all_keys([batch, n_heads, queries, keys]: [usize; 4], weights: &'a [f32]) -> Self {
        assert_eq!(
            weights.len(),
            batch * n_heads * queries * keys,
            "patterns of {batch} sequences, {n_heads} heads, {queries} queries, {keys} keys"
        );
        Self {
            n_heads,
            length: queries,
            keys,
            weights,
            may_attend: MayAttend::All,
            has_start: false,
        }
    }

    /// The same of a model whose queries see `window` keys at most, their own among them: nulls and
    /// ceilings are those of what can be seen.
    ///
    /// ```
    /// use headlight_heads::Measure;
    /// use headlight_lens::{LayerPattern, score_layer};
    ///
    /// // Three tokens, a window of two: the third sees the second and itself, never the first.
    /// let weights = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5];
    /// let pattern = LayerPattern::new([1, 1, 3], &weights).with_window(Some(2));
    /// let scores = &score_layer(pattern, &[vec![4, 5, 6]])[0];
    /// let previous = scores[&Measure::PreviousToken.into()];
    /// assert_eq!((previous.null, previous.ceiling), (0.5, 1.0));
    /// // Of the queries 1 and 2 the second cannot see the first token.
    /// let first = scores[&Measure::FirstToken.into()];
    /// assert_eq!((first.null, first.ceiling), (0.25, 0.5));
    /// ```
    #[must_use]
    pub fn with_window(self, window: Option<usize>) -> Self {
        Self {
            may_attend: MayAttend::causal(window),
            ..self
        }
    }

    /// The same of sequences whose first token is the start of the sequence, if `has_start`. Scores
    /// leave it out: it is no query, no key of the null, and the first token is the one behind it.
    /// What a head gives to the start counts for nothing.
    ///
    /// ```
    /// use headlight_heads::Measure;
    /// use headlight_lens::{LayerPattern, score_layer};
    ///
    /// // The start and three tokens: the third looks at the second, the others at the start.
    /// let start = [1.0, 0.0, 0.0, 0.0];
    /// let weights = [start, start, start, [0.0, 0.0, 1.0, 0.0]].concat();
    /// let pattern = LayerPattern::new([1, 1, 4], &weights).with_start(true);
    /// let scores = &score_layer(pattern, &[vec![9, 4, 5, 6]])[0];
    /// // Of two queries, one looks one back; evenly that would be (1/2 + 1/3)/2.
    /// let previous = scores[&Measure::PreviousToken.into()];
    /// assert!(previous.value == 0.5 && (previous.null - 5.0 / 12.0).abs() < 1e-12);
    /// assert_eq!(scores[&Measure::FirstToken.into()].value, 0.0);
    /// ```
    #[must_use]
    pub fn with_start(self, has_start: bool) -> Self {
        Self { has_start, ..self }
    }

    /// The number of tokens that scores leave out at the beginning.
    pub(crate) fn start(&self) -> usize {
        usize::from(self.has_start)
    }

    /// The keys that a query sees and that scores count.
    pub(crate) fn counted(&self, query: usize) -> Range<usize> {
        let seen = self.seen(query);
        seen.start.max(self.start())..seen.end
    }

    /// The keys that a query sees.
    pub(crate) fn seen(&self, query: usize) -> Range<usize> {
        self.may_attend.keys(query, self.keys)
    }

    /// The number of heads.
    pub(crate) fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// Panics if a query sees a key after itself: then `query − key` is no distance.
    pub(crate) fn assert_causal(&self) {
        assert!(
            self.may_attend != MayAttend::All,
            "a distance back needs a causal pattern"
        );
    }

    /// The number of queries.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// The number of sequences.
    pub(crate) fn sequences(&self) -> usize {
        self.weights.len() / (self.n_heads * self.length * self.keys).max(1)
    }

    /// All weights of one head, query by query.
    pub(crate) fn of_head(&self, sequence: usize, head: usize) -> &'a [f32] {
        let size = self.length * self.keys;
        &self.weights[(sequence * self.n_heads + head) * size..][..size]
    }

    /// The weights of one query on all keys.
    pub(crate) fn row(&self, sequence: usize, head: usize, query: usize) -> &'a [f32] {
        &self.of_head(sequence, head)[query * self.keys..][..self.keys]
    }

    /// The weights of one query up to the last key that it sees, and on as many keys after it as make
    /// a whole number of vectors: what a query cannot see is 0 and adds nothing to a sum.
    #[inline(always)]
    pub(crate) fn row_to(&self, sequence: usize, head: usize, query: usize) -> &'a [f32] {
        &self.row(sequence, head, query)
            [..self.seen(query).end.next_multiple_of(LANES).min(self.keys)]
    }
}

/// Scores every head of a layer on every measure that the sequences allow, and on
/// [entropy](ScoreName::Entropy).
///
/// A measure without a single row (no token occurs twice, say) is left out. The interval is a 95 %
/// bootstrap over sequences, the same for the same input.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, score_layer};
///
/// // One head, one sequence of 2 tokens: the second token attends to the first with weight 0.9.
/// let scores = score_layer(LayerPattern::new([1, 1, 2], &[1.0, 0.0, 0.9, 0.1]), &[vec![4, 5]]);
/// let previous = scores[0][&Measure::PreviousToken.into()];
/// assert!((previous.value - 0.9).abs() < 1e-6);
/// assert_eq!(previous.null, 0.5);
/// assert!(!scores[0].contains_key(&Measure::Induction.into()));
/// ```
#[must_use]
pub fn score_layer(pattern: LayerPattern, tokens: &[Vec<u32>]) -> Vec<Scores> {
    score_layer_on(pattern, &RoleTargets::of(&pattern, tokens))
}

/// [`score_layer`] with targets that were looked for before.
///
/// # Panics
/// If the targets are not those of the patterns.
#[must_use]
pub fn score_layer_on(pattern: LayerPattern, targets: &RoleTargets) -> Vec<Scores> {
    let mut scores: Vec<Scores> = (0..pattern.n_heads)
        .map(|head| entropy(&pattern, head, pattern.sequences()))
        .collect();
    for (measure, targets) in &targets.measures {
        let Some(measured) = score_on(&pattern, targets) else {
            continue;
        };
        for (scores, score) in scores.iter_mut().zip(measured) {
            scores.insert((*measure).into(), score);
        }
    }
    scores
}

/// Every head's mean weight on the targets, over the queries that count. `None` if none counts. The
/// ceiling is the share of these queries that see a target.
fn score_on(pattern: &LayerPattern, targets: &Targets) -> Option<Vec<Score>> {
    let null = mean(&shares(targets, |_, sequence| sequence.uniform))?;
    let ceiling = mean(&shares(targets, |_, sequence| sequence.reachable as f64))?;
    let mut scores = Vec::new();
    for head in 0..pattern.n_heads {
        let shares = shares(targets, |index, _| targets.weight_in(pattern, head, index));
        scores.push(Score {
            value: mean(&shares).unwrap_or(f64::NAN),
            null,
            ceiling,
            interval: interval_of_ratio(&shares),
        });
    }
    Some(scores)
}

/// A sum over each sequence, with the queries of it that count.
fn shares(targets: &Targets, sum: impl Fn(usize, &OfSequence) -> f64) -> Vec<Share> {
    let mut shares = Vec::new();
    for (index, sequence) in targets.sequences().iter().enumerate() {
        shares.push(Share {
            sum: sum(index, sequence),
            rows: sequence.counted,
        });
    }
    shares
}

/// The entropy of a head's rows, each divided by that of uniform attention; a row of a single key
/// says nothing.
fn entropy(pattern: &LayerPattern, head: usize, sequences: usize) -> Scores {
    let most: Vec<f64> = (0..pattern.length)
        .map(|q| (pattern.seen(q).len() as f64).ln())
        .collect();
    let rows = most.iter().filter(|&&most| most > 0.0).count();
    let of_sequence = |sequence| Share {
        sum: vectorised(Entropies {
            pattern,
            sequence,
            head,
            most: &most,
        }),
        rows,
    };
    let shares: Vec<Share> = (0..sequences).map(of_sequence).collect();
    let Some(value) = mean(&shares) else {
        return Scores::new();
    };
    let score = Score {
        value,
        null: 1.0,
        ceiling: 1.0,
        interval: interval_of_ratio(&shares),
    };
    Scores::from([(ScoreName::Entropy, score)])
}

/// The entropies of a head's rows in one sequence, each over the most it can be.
struct Entropies<'a> {
    pattern: &'a LayerPattern<'a>,
    sequence: usize,
    head: usize,
    most: &'a [f64],
}

impl Kernel for Entropies<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f64 {
        let mut sum = 0.0;
        for (q, most) in self.most.iter().enumerate() {
            if *most > 0.0 {
                sum +=
                    f64::from(entropy_of(self.pattern.row_to(self.sequence, self.head, q))) / most;
            }
        }
        sum
    }
}

/// Scores every head of a layer on target keys of one's own: its mean weight on them, over the
/// queries that count. A query counts if `targets`, given sequence and query, gives any keys, be it
/// an empty list. `None` if none counts.
///
/// The null is the same of uniform attention. The ceiling is the share of these queries that see a
/// target. The interval is a 95 % bootstrap over sequences.
///
/// ```
/// use headlight_lens::{LayerPattern, score_targets};
///
/// // Cross-attention: one head, one sequence, 2 queries, 4 keys. Query q looks for key 3 − q.
/// let weights = [0.1, 0.1, 0.1, 0.7, 0.2, 0.2, 0.5, 0.1];
/// let pattern = LayerPattern::of_all_keys([1, 1, 2, 4], &weights);
/// let score = score_targets(&pattern, |_, query| Some([3 - query])).unwrap()[0];
/// assert!((score.value - 0.6).abs() < 1e-6); // (0.7 + 0.5) / 2
/// assert_eq!((score.null, score.ceiling), (0.25, 1.0));
/// ```
#[must_use]
pub fn score_targets<I: IntoIterator<Item = usize>>(
    pattern: &LayerPattern,
    targets: impl Fn(usize, usize) -> Option<I>,
) -> Option<Vec<Score>> {
    score_on(pattern, &Targets::new(pattern, targets))
}
