//! Which roles are sure where many heads were looked at? Of 144 heads and 5 measures some stand out
//! by chance.

use std::collections::BTreeMap;

use headlight_heads::{Interval, Measure, RoleCheck};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{TargetWeights, target_weights::Series};

/// The false discovery rate, and the false coverage rate of the intervals.
const RATE: f64 = 0.05;

/// A mean over sequences that is tested among many: is it above 0?
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanCheck {
    /// The mean.
    pub mean: f64,
    /// Of the null hypothesis "mean ≤ 0", by a one-sided t test over sequences.
    pub p: f64,
    /// Whether the mean is among those that Benjamini and Hochberg's procedure keeps at q = 0.05.
    pub is_sure: bool,
    /// Adjusted for the selection (false coverage rate 0.05).
    #[serde(flatten)]
    pub interval: Interval,
}

/// Which of many means are surely above 0, each given as one value for each of its sequences: as
/// [`role_checks`] with the false discovery rate 0.05 over all means.
///
/// ```
/// use headlight_lens::mean_checks;
///
/// let [clear, none] = mean_checks(&[vec![0.5, 0.6, 0.5, 0.6], vec![0.5, -0.6, 0.6, -0.5]])[..] else { panic!() };
/// assert!(clear.is_sure && clear.interval.low > 0.0);
/// assert!(!none.is_sure && none.p > 0.4);
/// ```
#[must_use]
pub fn mean_checks(values: &[Vec<f64>]) -> Vec<MeanCheck> {
    let tests: Vec<MeanTest> = values.iter().map(|values| MeanTest::of(values)).collect();
    let kept = benjamini_hochberg(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    let outside = share_outside(&kept);
    let mut checks = Vec::new();
    for (test, is_sure) in tests.iter().zip(kept) {
        let half = half_width(test.freedom, test.error, outside);
        checks.push(MeanCheck {
            mean: test.mean,
            p: test.p,
            is_sure,
            interval: Interval {
                low: test.mean - half,
                high: test.mean + half,
            },
        });
    }
    checks
}

/// The test of one mean.
struct MeanTest {
    mean: f64,
    /// The standard error over sequences.
    error: f64,
    /// Sequences less one.
    freedom: f64,
    p: f64,
}

impl MeanTest {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let (freedom, error) = (n - 1.0, (squares / (n - 1.0) / n).sqrt());
        Self {
            mean,
            error,
            freedom,
            p: p_above_zero(mean, error, freedom),
        }
    }
}

/// The test of one head on one measure.
struct Tested {
    head: usize,
    measure: Measure,
    /// The mean weight on targets, and its standard error over sequences.
    value: f64,
    error: f64,
    /// Sequences less one.
    freedom: f64,
    p: f64,
}

/// For each head, first layer first, and each measure: whether its share, (score − null)/(ceiling
/// − null), is surely above ½.
///
/// The null hypothesis is "share ≤ ½", tested by a one-sided t test over sequences. Benjamini and
/// Hochberg's procedure (1995) keeps the false discovery rate at 0.05 over all heads and measures.
/// Of `m` tests, of which `R` are kept, each interval has the coverage 1 − 0.05·R/m, so that the
/// kept ones have a false coverage rate of 0.05 (Benjamini & Yekutieli 2005).
///
/// ```
/// use headlight_heads::Measure;
/// use headlight_lens::{LayerPattern, RoleTargets, TargetWeights, role_checks};
///
/// // Two sequences of two tokens; the second token gives 0.9 and 0.94 to the first.
/// let weights = [1.0, 0.0, 0.9, 0.1, 1.0, 0.0, 0.94, 0.06];
/// let layers = [LayerPattern::new([2, 1, 2], &weights)];
/// let targets = RoleTargets::of(&layers[0], &vec![vec![4, 5]; 2]);
/// let checks = role_checks(&TargetWeights::of(&layers, &targets));
/// let check = checks[0][&Measure::PreviousToken];
/// // The null is 1/2, so half of the way is 0.75: t = (0.92 − 0.75)/0.02 = 8.5 with 1 degree of freedom.
/// assert!((check.p - 0.037).abs() < 0.001);
/// // Of three tests the first token's has the same p, so the bound of both is 0.05·2/3 = 0.033.
/// assert!(!check.is_sure);
/// ```
#[must_use]
pub fn role_checks(weights: &TargetWeights) -> Vec<BTreeMap<Measure, RoleCheck>> {
    let series = weights.series();
    let tests: Vec<Tested> = series
        .iter()
        .filter_map(|series| tested(series, weights.sequences()))
        .collect();
    let kept = benjamini_hochberg(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    let outside = share_outside(&kept);
    let mut checks = vec![BTreeMap::new(); weights.n_heads()];
    for (test, is_sure) in tests.iter().zip(kept) {
        let half = half_width(test.freedom, test.error, outside);
        checks[test.head].insert(
            test.measure,
            RoleCheck {
                p: test.p,
                is_sure,
                low: test.value - half,
                high: test.value + half,
            },
        );
    }
    checks
}

fn tested(series: &Series, n_sequences: usize) -> Option<Tested> {
    // Of each sequence: its queries that count, the weight on their targets, and the weight beyond
    // half of the way from null to ceiling.
    let mut sequences = Vec::new();
    for sequence in 0..n_sequences {
        let counted = series.targets.sequences()[sequence].counted as f64;
        let (mut weight, mut beyond) = (0.0, 0.0);
        for query in 0..series.length() {
            if let Some(row) = series.targets.row(sequence, query) {
                let on_targets = series.weight(sequence, query);
                weight += on_targets;
                beyond += on_targets - f64::midpoint(row.null, 1.0);
            }
        }
        if counted > 0.0 {
            sequences.push((counted, weight, beyond));
        }
    }
    let rows: f64 = sequences.iter().map(|(counted, ..)| counted).sum();
    if rows == 0.0 {
        return None;
    }
    let ratio = |of: fn(&(f64, f64, f64)) -> f64| {
        let mean = sequences.iter().map(of).sum::<f64>() / rows;
        let residual = |sequence| (of(sequence) - mean * sequence.0).powi(2);
        let squares: f64 = sequences.iter().map(residual).sum();
        let n = sequences.len() as f64;
        (mean, (squares * n / (n - 1.0)).sqrt() / rows)
    };
    let (value, error) = ratio(|(_, weight, _)| *weight);
    let (beyond, beyond_error) = ratio(|(.., beyond)| *beyond);
    let freedom = sequences.len() as f64 - 1.0;
    let p = p_above_zero(beyond, beyond_error, freedom);
    Some(Tested {
        head: series.head,
        measure: series.measure,
        value,
        error,
        freedom,
        p,
    })
}

/// Of the null hypothesis that a mean is at most 0.
fn p_above_zero(mean: f64, error: f64, freedom: f64) -> f64 {
    match student(freedom) {
        Some(student) if error > 0.0 => student.sf(mean / error),
        // All sequences say the same.
        Some(_) if mean > 0.0 => 0.0,
        _ => 1.0,
    }
}

/// The share of cases in which an interval of a test that was kept may miss.
fn share_outside(kept: &[bool]) -> f64 {
    let discoveries = kept.iter().filter(|&&kept| kept).count();
    RATE * discoveries.max(1) as f64 / kept.len().max(1) as f64
}

/// Half of an interval that misses in the share `outside` of cases.
fn half_width(freedom: f64, error: f64, outside: f64) -> f64 {
    match student(freedom) {
        Some(student) => student.inverse_cdf(1.0 - outside / 2.0) * error,
        None => f64::INFINITY,
    }
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

/// Which hypotheses are rejected: with the p values in order, all up to the last with
/// `p ≤ RATE·rank/count`.
fn benjamini_hochberg(p: &[f64]) -> Vec<bool> {
    let mut sorted = p.to_vec();
    sorted.sort_by(f64::total_cmp);
    let passes = |&rank: &usize| sorted[rank] <= RATE * (rank + 1) as f64 / p.len() as f64;
    let last = (0..p.len()).rfind(passes).map(|rank| sorted[rank]);
    p.iter()
        .map(|&p| last.is_some_and(|last| p <= last))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benjamini_and_hochberg_keep_what_their_example_keeps() {
        // Benjamini & Hochberg 1995, section 3: 15 p values, of which four are rejected at 0.05.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let kept = benjamini_hochberg(&p);
        assert_eq!(kept.iter().filter(|&&kept| kept).count(), 4);
        assert!(kept[3] && !kept[4]);
        assert!(benjamini_hochberg(&[]).is_empty());
        // A larger p below its own bound takes smaller ones above theirs with it.
        assert_eq!(benjamini_hochberg(&[0.04, 0.03]), [true, true]);
    }
}
