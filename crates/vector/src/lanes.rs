//! Sums and maxima in lanes: many numbers are added at once, in a fixed order.

use std::slice::from_ref;

use pulp::{
    Simd,
    bytemuck::{cast_slice, pod_read_unaligned},
};

use crate::{Kernel, exp, ln, mul_add, vectorised};

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

/// `Σ a·b`
///
/// # Panics
/// If one is longer than the other.
#[inline(always)]
#[must_use]
pub fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    assert!(a.len() == b.len(), "{} numbers times {}", a.len(), b.len());
    let vectors = LANES / S::F32_LANES;
    let mut sums = [simd.splat_f32s(0.0); LANES];
    let whole = a.len() / LANES * LANES;
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for v in 0..vectors {
            let part = v * S::F32_LANES..(v + 1) * S::F32_LANES;
            let (a, b) = (&a[part.clone()], &b[part]);
            let a: S::f32s = pod_read_unaligned(cast_slice(a));
            let b: S::f32s = pod_read_unaligned(cast_slice(b));
            sums[v] = simd.mul_add_e_f32s(a, b, sums[v]);
        }
    }
    let mut lanes = [0.0; LANES];
    for (lanes, sum) in lanes.chunks_exact_mut(S::F32_LANES).zip(&sums) {
        lanes.copy_from_slice(cast_slice(from_ref(sum)));
    }
    let last = a.len() / WIDEST * WIDEST;
    add_products(simd, &mut lanes, &a[whole..last], &b[whole..last]);
    let mut sum = total(lanes);
    for i in last..a.len() {
        sum += a[i] * b[i];
    }
    sum
}

#[inline(always)]
fn add_products<S: Simd>(simd: S, lanes: &mut [f32], a: &[f32], b: &[f32]) {
    for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
        *lane = mul_add(simd, *a, *b, *lane);
    }
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
    let (whole, vectors) = (row.len() / LANES * LANES, row.len() / WIDEST * WIDEST);
    for chunk in row.chunks_exact(LANES) {
        add(&mut lanes, chunk);
    }
    add(&mut lanes, &row[whole..vectors]);
    let mut sum = total(lanes);
    for x in &row[vectors..] {
        sum += x;
    }
    sum
}

#[inline(always)]
fn add(lanes: &mut [f32], numbers: &[f32]) {
    for (lane, x) in lanes.iter_mut().zip(numbers) {
        *lane += x;
    }
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
                assert!((f64::from(sum_of(&row)) - plain).abs() < 1e-4);
                assert!((f64::from(dot(simd, &row, &row)) - squares).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn sums_and_maxima_of_every_length() {
        on_every_processor(SumsAndMaxima);
    }
}
