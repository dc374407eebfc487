//! What does a head give to the places of a match when no match is there? The same model sees the
//! tokens in another order; a head that goes by position scores the same.

use headlight_heads::{Measure, Relation, RelationScores, Scores};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::{LayerPattern, score::score_targets, score_relations};

/// Swaps of two tokens tried to take the last matches away.
const TRIES: usize = 2000;

/// Sequences beside the same tokens in another order, in which no earlier token equals the current
/// one where it did before, and other words stand where words have their gold sources. Where tokens
/// are few, that cannot be reached everywhere: such places are not scored.
///
/// The null of gold relations and of the measures that [ask tokens](Measure::asks_tokens): patterns
/// on [`contexts`](Self::contexts), scored at the places that the sequences themselves give.
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, ShuffledContext};
///
/// let tokens = [vec![7, 8, 9, 7]];
/// let shuffled = ShuffledContext::new(&tokens, &[], 0);
/// let order = &shuffled.contexts()[0];
/// assert_ne!(order[0], order[3]); // the match of position 3 is gone
/// assert_eq!(order.iter().sum::<u32>(), 31); // no token is
///
/// // A head that looks two back whatever the tokens are, 1 after the match of position 3 by accident.
/// let weights: Vec<f32> = [0, 0, 0, 1].iter().flat_map(|&key| (0..4).map(move |k| f32::from(u8::from(k == key)))).collect();
/// let scores = shuffled.scores(LayerPattern::new([1, 1, 4], &weights));
/// // So the shuffled context says: this is no induction.
/// assert_eq!(scores[0][&Measure::Induction.into()].value, 1.0);
/// ```
#[derive(Debug, Clone)]
pub struct ShuffledContext<'a> {
    tokens: &'a [Vec<u32>],
    relations: Vec<Vec<Relation>>,
    contexts: Vec<Vec<u32>>,
    /// The tokens at the beginning that stay where they are and are no matches.
    start: usize,
}

impl<'a> ShuffledContext<'a> {
    /// Shuffles by `seed`. `relations` are those of each sequence, or none at all.
    #[must_use]
    pub fn new(tokens: &'a [Vec<u32>], relations: &[Vec<Relation>], seed: u64) -> Self {
        Self::with_start(tokens, relations, seed, false)
    }

    /// The same of sequences whose first token is the start of the sequence, if `has_start`. It stays
    /// where it is, as in every sequence that the model knows. The patterns that are scored are those
    /// [with the start](LayerPattern::with_start).
    #[must_use]
    pub fn with_start(
        tokens: &'a [Vec<u32>],
        relations: &[Vec<Relation>],
        seed: u64,
        has_start: bool,
    ) -> Self {
        let start = usize::from(has_start);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut contexts = Vec::with_capacity(tokens.len());
        let mut kept = Vec::with_capacity(tokens.len());
        for (sequence, tokens) in tokens.iter().enumerate() {
            let relations = relations.get(sequence).map_or(&[][..], Vec::as_slice);
            let context = shuffle(tokens, relations, start, &mut rng);
            let is_gone =
                |relation: &&Relation| context[relation.source] != tokens[relation.source];
            kept.push(relations.iter().filter(is_gone).cloned().collect());
            contexts.push(context);
        }
        Self {
            tokens,
            relations: kept,
            contexts,
            start,
        }
    }

    /// The sequences that the model is to see.
    #[must_use]
    pub fn contexts(&self) -> &[Vec<u32>] {
        &self.contexts
    }

    /// The measures that ask tokens, for each head of a layer, over the queries that have lost all
    /// their matches; the null of each is what uniform attention scores on these. Where tokens are
    /// few, they are the early ones.
    ///
    /// # Panics
    /// If the pattern is not that of [`contexts`](Self::contexts), or one of them has a start and the
    /// other has not.
    #[must_use]
    pub fn scores(&self, pattern: LayerPattern) -> Vec<Scores> {
        let start = self.start;
        assert_eq!(
            start,
            pattern.start(),
            "the tokens left out at the beginning"
        );
        let mut scores = vec![Scores::new(); pattern.n_heads()];
        for measure in Measure::all()
            .into_iter()
            .filter(|measure| measure.asks_tokens())
        {
            let targets = |sequence: usize, query: usize| {
                let query = query.checked_sub(start)?;
                let mut targets = measure.targets(&self.tokens[sequence][start..], query);
                let still = measure.targets(&self.contexts[sequence][start..], query);
                let are_gone =
                    !targets.is_empty() && targets.iter().all(|key| !still.contains(key));
                for key in &mut targets {
                    *key += start;
                }
                are_gone.then_some(targets)
            };
            let Some(measured) = score_targets(&pattern, targets) else {
                continue;
            };
            for (scores, score) in scores.iter_mut().zip(measured) {
                scores.insert(measure.into(), score);
            }
        }
        scores
    }

    /// The gold relations whose source is another word now, for each head of a layer.
    ///
    /// # Panics
    /// If the pattern is not that of [`contexts`](Self::contexts).
    #[must_use]
    pub fn relation_scores(&self, pattern: LayerPattern) -> Vec<RelationScores> {
        score_relations(pattern, &self.relations)
    }
}

/// Draws an order of the tokens from `start` on, then swaps tokens as long as matches stay; what makes
/// it worse is undone.
fn shuffle(tokens: &[u32], relations: &[Relation], start: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let pairs: Vec<(usize, usize)> = (start..tokens.len())
        .flat_map(|query| (start..query).map(move |key| (key, query)))
        .collect();
    let equal: Vec<(usize, usize)> = pairs
        .into_iter()
        .filter(|&(key, query)| tokens[key] == tokens[query])
        .collect();
    let matches = |order: &[u32]| {
        equal
            .iter()
            .filter(|&&(key, query)| order[key] == order[query])
            .count()
            + relations
                .iter()
                .filter(|relation| order[relation.source] == tokens[relation.source])
                .count()
    };
    let mut order = tokens.to_vec();
    order[start..].shuffle(rng);
    let mut left = matches(&order);
    for _ in 0..TRIES {
        if left == 0 {
            break;
        }
        let [a, b] = [(); 2].map(|()| rng.random_range(start..order.len()));
        order.swap(a, b);
        match matches(&order) {
            now if now <= left => left = now,
            _ => order.swap(a, b),
        }
    }
    order
}
