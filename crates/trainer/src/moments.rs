//! Moments that matter: measurements whose patterns are kept besides those of `log.patterns_every`,
//! so that a page can show heads while they form.

use headlight_run::PatternFile;

/// Steps that stand evenly on a logarithmic axis, eight a decade, in hundredths.
const EIGHTHS: [u128; 8] = [100, 133, 178, 237, 316, 422, 562, 750];

/// Whether a measurement at `step`, the first since `step - every`, is the first to reach one of
/// eight steps a decade: 1, 1.33, 1.78, 2.37, 3.16, 4.22, 5.62, 7.5, 10, …
pub(crate) fn is_spaced(step: usize, every: usize) -> bool {
    let before = step.saturating_sub(every) as u128;
    let step = step as u128;
    let mut decade = 1;
    while decade <= step {
        for eighth in EIGHTHS {
            let reached = (eighth * decade).div_ceil(100);
            if before < reached && reached <= step {
                return true;
            }
        }
        decade *= 10;
    }
    false
}

/// Whether one more moment of these patterns keeps all of them within so many megabytes.
pub(crate) fn has_room(kept: usize, patterns: &[&PatternFile], megabytes: usize) -> bool {
    let bytes: usize = patterns.iter().map(|patterns| patterns.bytes()).sum();
    kept.saturating_add(1).saturating_mul(bytes) <= megabytes.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dense_early_and_rare_late() {
        let spaced = |every: usize| -> Vec<usize> {
            let measured = (1..=2500 / every).map(|at| at * every);
            measured.filter(|&step| is_spaced(step, every)).collect()
        };
        assert_eq!(
            spaced(50),
            [
                50, 100, 150, 200, 250, 350, 450, 600, 750, 1000, 1350, 1800, 2400
            ]
        );
        assert_eq!(spaced(1)[..10], [1, 2, 3, 4, 5, 6, 8, 10, 14, 18]);
        // Measured rarely, every measurement reaches another eighth.
        assert_eq!(spaced(1000), [1000, 2000]);
    }

    #[test]
    fn the_budget_is_not_passed() {
        // 2 layers, 1 sequence, 2 heads, 500 queries and keys: 1 MB.
        let patterns = PatternFile::quantise(
            [2, 1, 2, 500],
            &vec![0.0; 4 * 500 * 500],
            vec![vec![0; 500]],
        );
        assert!(has_room(1, &[&patterns], 2));
        assert!(!has_room(2, &[&patterns], 2));
        assert!(!has_room(1, &[&patterns, &patterns], 2));
        assert!(!has_room(0, &[&patterns], 0));
    }
}
