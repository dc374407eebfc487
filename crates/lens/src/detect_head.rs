//! The numbers of another tool, for comparison with it.

use headlight_heads::Measure;
use serde::Serialize;

use crate::LayerPattern;

/// What `TransformerLens`' `detect_head` (version 4.3) gives a head, by each of its error measures.
/// `D[q, k]` is 1 where `k` is a target key of `q`, else 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DetectHead {
    /// `Σ A∘D / Σ A` over all queries, those without a target too: on one repeated block an
    /// induction head that does nothing else reaches less than ½.
    pub mul: f64,
    /// `1 − Σ|A − D| / T`, T the length, the fraction rounded to three decimals as there: from −1
    /// to 1.
    pub abs: f64,
}

/// What `detect_head` of `TransformerLens` gives each head: its `previous_token_head`,
/// `duplicate_token_head` and `induction_head` have the target keys of the measures of these names.
/// The mean over the sequences, each for itself.
///
/// The start of a sequence is left out, where the pattern [has one](LayerPattern::with_start): its row,
/// and what others give to it.
///
/// For one's own conclusions take [`score_layer`](crate::score_layer), whose scores say on which
/// rows they are taken and what uniform attention has there.
///
/// # Panics
/// If `tokens` are not as many and as long as the patterns.
///
/// ```
/// use headlight_lens::{LayerPattern, detect_head};
/// use headlight_heads::Measure;
///
/// // One head, 3 tokens: all weight on the previous token, but for the first query, which has none.
/// let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
/// let found = detect_head(LayerPattern::new([1, 1, 3], &weights), &[vec![7, 8, 7]], Measure::PreviousToken)[0];
/// assert_eq!((found.mul, found.abs), (2.0 / 3.0, 1.0 - 0.333));
/// ```
#[must_use]
pub fn detect_head(
    pattern: LayerPattern,
    tokens: &[Vec<u32>],
    measure: Measure,
) -> Vec<DetectHead> {
    let fits = tokens.len() == pattern.sequences()
        && pattern.keys() == pattern.length()
        && tokens.iter().all(|row| row.len() == pattern.length());
    assert!(fits, "{} sequences do not fit the patterns", tokens.len());
    let start = pattern.start();
    let length = pattern.length() - start;
    let of_sequence = |head, sequence: usize| {
        let (mut on_targets, mut all, mut apart) = (0.0, 0.0, 0.0);
        for query in 0..length {
            let targets = measure.targets(&tokens[sequence][start..], query);
            let row = &pattern.row(sequence, head, query + start)[start..];
            for (key, &weight) in row.iter().enumerate() {
                let (weight, target) = (
                    f64::from(weight),
                    f64::from(u8::from(targets.contains(&key))),
                );
                on_targets += weight * target;
                all += weight;
                apart += (weight - target).abs();
            }
        }
        let error = 1e3 * apart / length as f64;
        DetectHead {
            // Nothing is left of a head that rests at the start at every query.
            mul: if all > 0.0 { on_targets / all } else { 0.0 },
            abs: 1.0 - error.round_ties_even() / 1e3,
        }
    };
    let of_head = |head| {
        let sum = (0..tokens.len())
            .map(|sequence| of_sequence(head, sequence))
            .fold(DetectHead::default(), |a, b| DetectHead {
                mul: a.mul + b.mul,
                abs: a.abs + b.abs,
            });
        let count = tokens.len() as f64;
        DetectHead {
            mul: sum.mul / count,
            abs: sum.abs / count,
        }
    };
    (0..pattern.n_heads()).map(of_head).collect()
}
