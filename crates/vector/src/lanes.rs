//! Sums and maxima in lanes: many numbers are added at once, in a fixed order.

use pulp::{
    Simd,
    bytemuck::{cast_slice, pod_read_unaligned},
};

use crate::{Kernel, exp, ln, vectorised};

/// The number of lanes. A loop over a multiple of it has no slow remainder.
pub const LANES: usize = 32;

/// The number of `f32` in the widest vector of any processor. Loops over maxima and exponentials
/// have no slow remainder for a multiple of it.
pub const WIDEST: usize = 16;

/// The sum of all lanes, in halves: few steps that wait for each other.
#[inline(always)]
fn total<const N: usize>(mut lanes: [f32; N]) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[half + i];
        }
        half /= 2;
    }
    lanes[0]
}

/// The largest value of a row, −∞ for an empty one; NaN is ignored here and makes the sum of the
/// row NaN.
#[inline(always)]
#[must_use]
pub fn max_of(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; WIDEST];
    let chunks = row.chunks_exact(WIDEST);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = if x > *lane { x } else { *lane };
    }
    let mut half = WIDEST / 2;
    while half > 0 {
        for i in 0..half {
            let x = lanes[half + i];
            lanes[i] = if x > lanes[i] { x } else { lanes[i] };
        }
        half /= 2;
    }
    lanes[0]
}

/// Adds each of the rows, which lie one after the other, to `sums`.
#[inline(always)]
pub fn add_rows(sums: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

/// The sum of rows of so many numbers, which lie one after the other.
///
/// ```
/// assert_eq!(headlight_vector::sum_of_rows(&[1.0, 2.0, 10.0, 20.0], 2), [11.0, 22.0]);
/// ```
#[must_use]
pub fn sum_of_rows(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    vectorised(SumOfRows {
        sums: &mut sums,
        rows,
    });
    sums
}

struct SumOfRows<'a> {
    sums: &'a mut [f32],
    rows: &'a [f32],
}

impl Kernel for SumOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        add_rows(self.sums, self.rows);
    }
}

/// Replaces each `x` by `e^{x − shift}` and returns the sum.
#[inline(always)]
pub fn exp_and_sum<S: Simd>(simd: S, row: &mut [f32], shift: f32) -> f32 {
    let mut lanes = [0.0; WIDEST];
    let mut chunks = row.chunks_exact_mut(WIDEST);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exp(simd, *x - shift);
            *lane += *x;
        }
    }
    let mut sum = total(lanes);
    for x in chunks.into_remainder() {
        *x = exp(simd, *x - shift);
        sum += *x;
    }
    sum
}

/// Vector number `v` of `numbers`.
#[inline(always)]
fn vector<S: Simd>(numbers: &[f32], v: usize) -> S::f32s {
    pod_read_unaligned(cast_slice(
        &numbers[v * S::F32_LANES..(v + 1) * S::F32_LANES],
    ))
}

/// The sum of all lanes of as many vectors as hold [`LANES`] numbers, in halves.
#[inline(always)]
fn total_of_vectors<S: Simd>(simd: S, mut sums: [S::f32s; LANES]) -> f32 {
    let mut half = LANES / S::F32_LANES / 2;
    while half > 0 {
        for v in 0..half {
            sums[v] = simd.add_f32s(sums[v], sums[half + v]);
        }
        half /= 2;
    }
    simd.reduce_sum_f32s(sums[0])
}

/// `Σ a·b`
///
/// # Panics
/// If one is longer than the other.
#[inline(always)]
#[must_use]
pub fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    assert!(a.len() == b.len(), "{} numbers times {}", a.len(), b.len());
    let mut sums = [simd.splat_f32s(0.0); LANES];
    let (whole, last) = (a.len() / LANES * LANES, a.len() / WIDEST * WIDEST);
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for v in 0..LANES / S::F32_LANES {
            sums[v] = simd.mul_add_e_f32s(vector::<S>(a, v), vector::<S>(b, v), sums[v]);
        }
    }
    if whole < last {
        let (a, b) = (&a[whole..last], &b[whole..last]);
        for v in 0..WIDEST / S::F32_LANES {
            sums[v] = simd.mul_add_e_f32s(vector::<S>(a, v), vector::<S>(b, v), sums[v]);
        }
    }
    let mut sum = total_of_vectors(simd, sums);
    for i in last..a.len() {
        sum += a[i] * b[i];
    }
    sum
}

/// `Σ x`
#[inline(always)]
#[must_use]
pub fn sum_of<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let mut sums = [simd.splat_f32s(0.0); LANES];
    let (whole, last) = (row.len() / LANES * LANES, row.len() / WIDEST * WIDEST);
    for row in row.chunks_exact(LANES) {
        for v in 0..LANES / S::F32_LANES {
            sums[v] = simd.add_f32s(sums[v], vector::<S>(row, v));
        }
    }
    if whole < last {
        for v in 0..WIDEST / S::F32_LANES {
            sums[v] = simd.add_f32s(sums[v], vector::<S>(&row[whole..last], v));
        }
    }
    let mut sum = total_of_vectors(simd, sums);
    for x in &row[last..] {
        sum += x;
    }
    sum
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
    total(lanes) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, for_tests::on_every_processor};

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

    #[derive(Clone, Copy)]
    struct SumsAndMaxima;

    impl Kernel for SumsAndMaxima {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
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
                let sum = exp_and_sum(simd, &mut powers, 1.0);
                assert!((f64::from(sum) - exact).abs() <= 1e-6 * exact.max(1.0));
                let squares: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
                let plain: f64 = row.iter().map(|&x| f64::from(x)).sum();
                assert!((f64::from(sum_of(simd, &row)) - plain).abs() < 1e-4);
                assert!((f64::from(dot(simd, &row, &row)) - squares).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn sums_and_maxima_of_every_length() {
        on_every_processor(SumsAndMaxima);
    }
}
