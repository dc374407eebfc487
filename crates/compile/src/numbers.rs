//! Which numbers a numerical variable can have.

/// The most values that are listed.
pub(crate) const MOST_NUMBERS: usize = 4096;

/// Numbers closer than this are one number: they differ by rounding.
const SAME: f64 = 1e-9;

/// `1/(1 + w)` for `w` up to the number of positions.
pub(crate) fn rests(positions: usize) -> Vec<f64> {
    (0..=positions).map(|w| 1.0 / (1.0 + w as f64)).collect()
}

/// Every mean of up to `most` of these numbers, and `otherwise`; `None` if they are too many.
///
/// A mean of n numbers is a sum of n over n. The sums of n are those of n − 1 with one more number.
pub(crate) fn means(numbers: &[f64], otherwise: f64, most: usize) -> Option<Vec<f64>> {
    let numbers = sorted(numbers.to_vec());
    let mut sums = vec![0.0];
    let mut means = vec![otherwise];
    for n in 1..=most {
        let mut longer = Vec::new();
        for sum in &sums {
            longer.extend(numbers.iter().map(|number| sum + number));
        }
        sums = sorted(longer);
        means.extend(sums.iter().map(|sum| sum / n as f64));
        means = sorted(means);
        if sums.len().max(means.len()) > MOST_NUMBERS {
            return None;
        }
    }
    Some(means)
}

/// In order, each number once.
pub(crate) fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.dedup_by(|b, a| *b - *a < SAME);
    numbers
}

/// The place of `number` in an ordered list that has it.
///
/// # Panics
/// If it is not in the list.
pub(crate) fn place(numbers: &[f64], number: f64) -> usize {
    let after = numbers.partition_point(|known| *known < number - SAME);
    let found = numbers
        .get(after)
        .is_some_and(|known| (known - number).abs() <= SAME);
    assert!(found, "{number} is not among the values that can occur");
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_zeros_and_ones_are_the_fractions() {
        let fractions = means(&[1.0, 0.0], 0.0, 3).unwrap();
        let expected = [0.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0];
        assert_eq!(fractions.len(), expected.len());
        for (found, expected) in fractions.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn too_many_means_are_not_listed() {
        let odd: Vec<f64> = (0..12).map(|i| f64::from(i).exp()).collect();
        assert_eq!(means(&odd, 0.0, 20), None);
    }

    #[test]
    fn a_number_is_found_in_spite_of_rounding() {
        assert_eq!(place(&[0.1, 0.3, 0.5], 0.1 + 0.2), 1);
    }
}
