//! Does a head attend from a word to the word it depends on? Scores against gold relations.

use std::collections::BTreeMap;

use headlight_heads::{HeadName, Relation, RelationScore, RelationScores, Score, first_largest};

use crate::{
    LayerPattern,
    bootstrap::{Share, interval_of_ratio, mean},
};

/// Scores every head of a layer on every relation between a word and an earlier one.
///
/// Under the relation's own name stands the mean of `A[dependent, source]`; under `next NAME` the
/// mean of `A[dependent − 1, source]`, the position that has to *predict* the dependent word and so
/// needs its source. The ceiling is 1, or less where a window hides some sources. There are two
/// nulls on the same rows: uniform attention, `1/(q + 1)` (or one over the keys that are seen), and
/// the same head at the same distance: the mean of `A[q′, q′ − d]` over all other queries `q′` of
/// these sequences, averaged over the distances `d` of the relation. A head that only knows
/// positions scores its second null.
///
/// Relations whose source comes later are left out, since a causal head cannot see it. The interval
/// is a 95 % bootstrap over sequences.
///
/// # Panics
/// If there are not as many lists of relations as sequences, a position lies outside of them, or
/// queries see keys after themselves.
///
/// ```
/// use headlight_heads::Relation;
/// use headlight_lens::{LayerPattern, score_relations};
///
/// // One head, one sequence of 3 tokens; the third depends on the first.
/// let weights = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.7, 0.1, 0.2];
/// let relation = Relation { name: "verb→subject".into(), dependent: 2, source: 0 };
/// let scores = score_relations(LayerPattern::new([1, 1, 3], &weights), &[vec![relation]]);
/// let score = scores[0]["verb→subject"].score;
/// assert!((score.value - 0.7).abs() < 1e-6); // A[2, 0]
/// assert_eq!(score.null, 1.0 / 3.0);
/// assert_eq!(scores[0]["next verb→subject"].score.value, 0.5); // A[1, 0]
/// ```
#[must_use]
pub fn score_relations(pattern: LayerPattern, relations: &[Vec<Relation>]) -> Vec<RelationScores> {
    pattern.assert_causal();
    let pairs = pairs_of(relations);
    let score = |head| {
        pairs
            .iter()
            .map(|(name, pairs)| (name.clone(), score_pairs(pattern, head, pairs)))
            .collect()
    };
    (0..pattern.n_heads()).map(score).collect()
}

/// How far above both nulls of [`score_relations`] each head of a layer is on every relation: for each
/// sequence that has the relation, the mean over its pairs of `A[q, k]` less the larger of `1/(q + 1)`
/// and what the head gives elsewhere at the same distance.
///
/// # Panics
/// As [`score_relations`].
///
/// ```
/// use headlight_heads::Relation;
/// use headlight_lens::{LayerPattern, relation_excess};
///
/// let weights = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.7, 0.1, 0.2];
/// let relation = Relation { name: "verb→subject".into(), dependent: 2, source: 0 };
/// let excess = relation_excess(LayerPattern::new([1, 1, 3], &weights), &[vec![relation]]);
/// // 0.7 − 1/3: no other query is at distance 2.
/// assert!((excess[0]["verb→subject"][0] - 0.3667).abs() < 1e-4);
/// ```
#[must_use]
pub fn relation_excess(
    pattern: LayerPattern,
    relations: &[Vec<Relation>],
) -> Vec<BTreeMap<String, Vec<f64>>> {
    pattern.assert_causal();
    let pairs = pairs_of(relations);
    let mut heads = Vec::new();
    for head in 0..pattern.n_heads() {
        let mut excess = BTreeMap::new();
        for (name, pairs) in &pairs {
            excess.insert(name.clone(), excess_of(pattern, head, pairs));
        }
        heads.push(excess);
    }
    heads
}

fn excess_of(pattern: LayerPattern, head: usize, pairs: &Pairs) -> Vec<f64> {
    let elsewhere = mean_at_distance_elsewhere(pattern, head, pairs);
    let mut of_sequences = Vec::new();
    for (sequence, pairs) in pairs.iter().enumerate() {
        let mut sum = 0.0;
        for &(query, key) in pairs {
            let seen = pattern.seen(query);
            let uniform = if seen.contains(&key) {
                1.0 / seen.len() as f64
            } else {
                0.0
            };
            let weight = f64::from(pattern.row(sequence, head, query)[key]);
            sum += weight - uniform.max(elsewhere[query - key]);
        }
        if !pairs.is_empty() {
            of_sequences.push(sum / pairs.len() as f64);
        }
    }
    of_sequences
}

/// The head that follows a relation best: the largest score above both of its nulls, and of equal
/// ones the first. A claim about the best of many heads is to be read on other sequences than those
/// it was chosen on.
///
/// ```
/// use headlight_lens::best_head;
/// use headlight_heads::{HeadName, Interval, RelationScore, RelationScores, Score};
///
/// let head = |head, value, distance_null| {
///     let score = Score { value, null: 0.1, ceiling: 1.0, interval: Interval::point(value) };
///     let scores = RelationScores::from([("verb→subject".to_owned(), RelationScore { score, distance_null, rows: 9 })]);
///     (HeadName { layer: 0, head }, scores)
/// };
/// // The first scores more, but as much at the same distance anywhere.
/// assert_eq!(best_head(&[head(0, 0.9, 0.8), head(1, 0.7, 0.2)], "verb→subject"), Some(HeadName { layer: 0, head: 1 }));
/// let equal = [head(2, 0.9, 0.2), head(3, 0.9, 0.2)];
/// assert_eq!(best_head(&equal, "verb→subject"), Some(HeadName { layer: 0, head: 2 }));
/// ```
#[must_use]
pub fn best_head(heads: &[(HeadName, RelationScores)], relation: &str) -> Option<HeadName> {
    let above = |scores: &RelationScores| {
        let RelationScore {
            score,
            distance_null,
            ..
        } = scores.get(relation)?;
        Some(score.value - score.null.max(*distance_null))
    };
    let known = heads
        .iter()
        .filter_map(|(head, scores)| Some((*head, above(scores)?)));
    let (head, _) = first_largest(known, |(_, above)| *above)?;
    Some(head)
}

/// Query and key, for each sequence.
type Pairs = Vec<Vec<(usize, usize)>>;

/// The pairs of every relation and of its `next`, in the order in which they occur.
fn pairs_of(relations: &[Vec<Relation>]) -> Vec<(String, Pairs)> {
    let mut pairs: Vec<(String, Pairs)> = Vec::new();
    let mut add = |name: String, sequence: usize, query: usize, key: usize| {
        let index = pairs
            .iter()
            .position(|(known, _)| *known == name)
            .unwrap_or_else(|| {
                pairs.push((name, vec![Vec::new(); relations.len()]));
                pairs.len() - 1
            });
        pairs[index].1[sequence].push((query, key));
    };
    for (sequence, relations) in relations.iter().enumerate() {
        for relation in relations.iter().filter(|relation| relation.is_visible()) {
            add(
                relation.name.to_string(),
                sequence,
                relation.dependent,
                relation.source,
            );
            add(
                format!("next {}", relation.name),
                sequence,
                relation.dependent - 1,
                relation.source,
            );
        }
    }
    pairs
}

fn score_pairs(pattern: LayerPattern, head: usize, pairs: &Pairs) -> RelationScore {
    let shares = |value: &dyn Fn(usize, usize, usize) -> f64| -> Vec<Share> {
        let of_sequence = |(sequence, pairs): (usize, &Vec<(usize, usize)>)| Share {
            sum: pairs
                .iter()
                .map(|&(query, key)| value(sequence, query, key))
                .sum(),
            rows: pairs.len(),
        };
        pairs.iter().enumerate().map(of_sequence).collect()
    };
    let elsewhere = mean_at_distance_elsewhere(pattern, head, pairs);
    let found = shares(&|sequence, query, key| f64::from(pattern.row(sequence, head, query)[key]));
    let seen = |query, key| f64::from(u8::from(pattern.seen(query).contains(&key)));
    let of =
        |value: &dyn Fn(usize, usize) -> f64| mean(&shares(&|_, query, key| value(query, key)));
    RelationScore {
        score: Score {
            value: mean(&found).unwrap_or(f64::NAN),
            null: of(&|query, key| seen(query, key) / pattern.seen(query).len() as f64)
                .unwrap_or(f64::NAN),
            ceiling: of(&seen).unwrap_or(f64::NAN),
            interval: interval_of_ratio(&found),
        },
        distance_null: of(&|query, key| elsewhere[query - key]).unwrap_or(f64::NAN),
        rows: found.iter().map(|share| share.rows).sum(),
    }
}

/// For each distance d, the mean of `A[q, q − d]` over the queries that are in no pair.
fn mean_at_distance_elsewhere(pattern: LayerPattern, head: usize, pairs: &Pairs) -> Vec<f64> {
    let length = pattern.length();
    let mut shares = vec![Share::default(); length];
    for (sequence, pairs) in pairs.iter().enumerate() {
        for query in (0..length).filter(|query| pairs.iter().all(|(related, _)| related != query)) {
            let row = pattern.row(sequence, head, query);
            for (share, weight) in shares.iter_mut().zip(row[..=query].iter().rev()) {
                share.sum += f64::from(*weight);
                share.rows += 1;
            }
        }
    }
    // A distance that occurs in pairs only has no elsewhere: nothing can be said against it, and
    // nothing for it.
    shares
        .iter()
        .map(|share| share.sum / share.rows.max(1) as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use headlight_heads::Interval;

    use super::*;

    #[test]
    fn of_equal_heads_the_first_is_the_best() {
        let score = Score {
            value: 0.5,
            null: 0.25,
            ceiling: 1.0,
            interval: Interval::point(0.5),
        };
        let relation = |distance_null| RelationScore {
            score,
            distance_null,
            rows: 9,
        };
        let head = |head, distance_null| {
            let scores = [("verb→subject".to_owned(), relation(distance_null))];
            (HeadName { layer: 0, head }, RelationScores::from(scores))
        };
        let heads = [head(0, 0.375), head(1, 0.25), head(2, 0.125)];
        let best = best_head(&heads, "verb→subject");
        assert_eq!(best, Some(HeadName { layer: 0, head: 1 }));
    }
}
