//! Sums and maxima in lanes: many numbers are added at once, in a fixed order.

use crate::{exp, ln};

/// The number of lanes. A loop over a multiple of it has no slow remainder.
pub const LANES: usize = 32;

/// The largest value of a row, −∞ for an empty one; NaN is ignored here and makes the sum of the
/// row NaN.
#[inline(always)]
#[must_use]
pub fn max_of(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = if x > *lane { x } else { *lane };
    }
    // In halves: few steps that wait for each other.
    let mut half = LANES / 2;
    while half > 0 {
        let (left, right) = lanes.split_at_mut(half);
        for (left, &x) in left.iter_mut().zip(&*right) {
            *left = if x > *left { x } else { *left };
        }
        half /= 2;
    }
    lanes[0]
}

/// Replaces each `x` by `e^{x − shift}` and returns the sum.
#[inline(always)]
pub fn exp_and_sum(row: &mut [f32], shift: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exp(*x - shift);
            *lane += *x;
        }
    }
    let mut sum: f32 = lanes.iter().sum();
    for x in chunks.into_remainder() {
        *x = exp(*x - shift);
        sum += *x;
    }
    sum
}

/// `Σ a·b`
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = left
        .remainder()
        .iter()
        .zip(right.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in left.zip(right) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Whether no number is NaN or ±∞.
#[inline(always)]
#[must_use]
pub fn all_finite(row: &[f32]) -> bool {
    // The bits of |x| grow with |x|. Those of ∞ come after all finite numbers, and those of NaN
    // after ∞. Whole numbers may be compared in any order, so the loop vectorises.
    let largest = row
        .iter()
        .fold(0, |largest, x| largest.max(x.abs().to_bits()));
    largest < f32::INFINITY.to_bits()
}

/// `Σ x`
#[inline(always)]
#[must_use]
pub fn sum_of(row: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// `−Σ x ln x` over the numbers that are positive and normal; smaller ones add less than 10⁻³⁵
/// each.
#[inline(always)]
#[must_use]
pub fn entropy(row: &[f32]) -> f32 {
    let term = |x: f32| {
        if x >= f32::MIN_POSITIVE {
            -x * ln(x)
        } else {
            0.0
        }
    };
    let mut lanes = [0.0; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|&x| term(x)).sum();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += term(x);
        }
    }
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, vectorised};

    struct ExpAndSum<'a>(&'a mut [f32]);

    impl Kernel for ExpAndSum<'_> {
        type Output = f32;

        #[inline(always)]
        fn run(self) -> f32 {
            exp_and_sum(self.0, 1.0)
        }
    }

    #[test]
    fn one_number_that_is_not_finite_is_found_at_every_place() {
        assert!(all_finite(&[]));
        for length in 1..100 {
            let mut row = vec![-f32::MAX; length];
            assert!(all_finite(&row));
            for place in 0..length {
                for number in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    row[place] = number;
                    assert!(!all_finite(&row), "{number} at {place} of {length}");
                }
                row[place] = f32::MIN_POSITIVE;
            }
        }
    }

    #[test]
    fn sums_and_maxima_of_every_length() {
        for length in 0..100 {
            let row: Vec<f32> = (0..length)
                .map(|i| ((i * 37 + 11) % 50) as f32 / 10.0 - 2.0)
                .collect();
            assert_eq!(
                max_of(&row),
                row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
            );
            let exact: f64 = row.iter().map(|&x| f64::from(x - 1.0).exp()).sum();
            let mut powers = row.clone();
            let sum = vectorised(ExpAndSum(&mut powers));
            assert!((f64::from(sum) - exact).abs() <= 1e-6 * exact.max(1.0));
            let squares: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let plain: f64 = row.iter().map(|&x| f64::from(x)).sum();
            assert!((f64::from(sum_of(&row)) - plain).abs() < 1e-4);
            assert!((f64::from(dot(&row, &row)) - squares).abs() < 1e-4);
        }
    }
}
