//! How well do sizes tell what is true from what is not?

use headlight_heads::Interval;

use crate::{Estimate, bootstrap::resamples_of};

/// The area under the ROC curve: the share of pairs of a true and a false thing in which the true one
/// is larger, ties counting half (Hanley & `McNeil` 1982). 1 if all true ones are larger, ½ by chance,
/// 0 if all are smaller. `None` without a true or without a false thing.
///
/// ```
/// use headlight_lens::auroc;
///
/// // 3 is above 2 and 1; 1 is below 2 and ties with 1: (1 + 1 + 0 + ½) / 4.
/// let sizes = [3.0, 2.0, 1.0, 1.0];
/// assert_eq!(auroc(&sizes, &[true, false, true, false]), Some(0.625));
/// assert_eq!(auroc(&sizes, &[true; 4]), None);
/// ```
///
/// # Panics
/// If there are not as many truths as sizes.
#[must_use]
pub fn auroc(sizes: &[f64], truths: &[bool]) -> Option<f64> {
    assert_eq!(sizes.len(), truths.len(), "sizes and truths");
    let of = |is_true: bool| {
        let all = truths.iter().zip(sizes);
        all.filter(move |(truth, _)| **truth == is_true)
            .map(|(_, size)| *size)
    };
    let (mut above, mut all) = (0.0, 0);
    for true_one in of(true) {
        for false_one in of(false) {
            above += if true_one > false_one {
                1.0
            } else if true_one < false_one {
                0.0
            } else {
                0.5
            };
            all += 1;
        }
    }
    (all > 0).then(|| above / f64::from(all))
}

/// The [`auroc`] of the mean sizes of effects, `mean over pairs |effect|`, with its 95 % interval by
/// bootstrap over pairs of prompts.
///
/// # Shapes
/// - `by_pair`: `[thing][pair]`
///
/// ```
/// use headlight_lens::auroc_of_effects;
///
/// let by_pair = [vec![-2.0, -1.0], vec![0.1, -0.1], vec![0.0, 0.0]];
/// let area = auroc_of_effects(&by_pair, &[true, false, false]).unwrap();
/// assert_eq!((area.mean, area.interval.low, area.interval.high), (1.0, 1.0, 1.0));
/// ```
///
/// # Panics
/// If there are not as many truths as things, or not as many effects of each.
#[must_use]
pub fn auroc_of_effects(by_pair: &[Vec<f64>], truths: &[bool]) -> Option<Estimate> {
    let pairs = by_pair.first().map_or(0, Vec::len);
    let size = |counts: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let sum = |effects: &Vec<f64>| {
            let sizes = effects.iter().enumerate();
            sizes
                .map(|(pair, effect)| counts(pair) * effect.abs())
                .sum::<f64>()
                / pairs as f64
        };
        by_pair.iter().map(sum).collect()
    };
    let mean = auroc(&size(&|_| 1.0), truths)?;
    let drawn = resamples_of(pairs);
    let resamples = drawn.first().map_or(0, |counts| counts.len());
    let mut areas = Vec::with_capacity(resamples);
    for resample in 0..resamples {
        areas.extend(auroc(&size(&|pair| drawn[pair][resample]), truths));
    }
    areas.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let index = (quantile * (areas.len().max(1) - 1) as f64).round() as usize;
        areas.get(index).copied().unwrap_or(f64::NAN)
    };
    let interval = Interval {
        low: at(0.025),
        high: at(0.975),
    };
    Some(Estimate { mean, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_that_a_few_pairs_carry_is_unsure() {
        // The true thing has its whole effect on one pair of ten, which a resample may leave out.
        let mut of_one_pair = vec![0.0; 10];
        of_one_pair[3] = 5.0;
        let by_pair = [of_one_pair, vec![0.1; 10]];
        let area = auroc_of_effects(&by_pair, &[true, false]).unwrap();
        assert_eq!(
            (area.mean, area.interval.low, area.interval.high),
            (1.0, 0.0, 1.0)
        );
    }
}
