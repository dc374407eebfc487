//! `exp` over slices, with the widest vectors the processor has.

use pulp::Arch;

/// Below this, f32's `exp` is no longer a normal number; here it is 0.
const SMALLEST: f32 = -87.3;

/// `e^x` for `x ≤ 88`: at most 2 units in the last place from the true value, and 0 below −87.3, −∞ included.
///
/// `e^x = 2^n · e^r` with `n = round(x/ln 2)` and `|r| ≤ ln 2/2`; `e^r` by its Taylor polynomial of degree 7, whose
/// remainder is below 6·10⁻⁹; `2^n` by adding `n` to the exponent bits.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5·2²³ leaves the rounded integer in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x < SMALLEST { SMALLEST } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first exact in few bits: r loses nothing to cancellation.
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    let scaled = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    if x < SMALLEST {
        0.0
    } else if x.is_nan() {
        x
    } else {
        scaled
    }
}

/// `tanh x = 1 − 2/(e^{2x} + 1)`, within 2·10⁻⁷ of the true value.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let bounded = x.clamp(-20.0, 20.0);
    1.0 - 2.0 / (exp(2.0 * bounded) + 1.0)
}

/// Sums and maxima in this many lanes, so that they vectorise.
const LANES: usize = 32;

/// The largest value of a row, −∞ for an empty one; NaN counts for nothing (it shows in the sum).
#[inline(always)]
pub(crate) fn max_of(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |max, &x| if x > max { x } else { max })
}

/// Replaces each `x` by `e^{x − shift}` and gives their sum.
#[inline(always)]
pub(crate) fn exp_and_sum(row: &mut [f32], shift: f32) -> f32 {
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
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Runs `work` compiled for the widest vectors this processor has, chosen at run time.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut worst: f64 = 0.0;
        for i in 0..2_000_000 {
            let x = -87.2 + i as f32 * (175.0 / 2_000_000.0);
            let exact = f64::from(x).exp();
            let unit = f64::from(exact as f32) * f64::from(f32::EPSILON);
            worst = worst.max((f64::from(exp(x)) - exact).abs() / unit);
        }
        assert!(worst < 2.0, "{worst}");
    }

    #[test]
    fn exp_of_masked_scores_is_zero_and_nan_stays() {
        assert_eq!([exp(f32::NEG_INFINITY), exp(-1e30), exp(-88.0), exp(0.0)], [0.0, 0.0, 0.0, 1.0]);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn tanh_is_close_everywhere() {
        for i in -40_000..=40_000 {
            let x = i as f32 / 1000.0;
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 2e-7, "{x}");
        }
    }

    #[test]
    fn sums_and_maxima_of_every_length() {
        for length in 0..100 {
            let row: Vec<f32> = (0..length).map(|i| ((i * 37 + 11) % 50) as f32 / 10.0 - 2.0).collect();
            assert_eq!(max_of(&row), row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let exact: f64 = row.iter().map(|&x| f64::from(x - 1.0).exp()).sum();
            let mut powers = row.clone();
            let sum = vectorised(|| exp_and_sum(&mut powers, 1.0));
            assert!((f64::from(sum) - exact).abs() <= 1e-6 * exact.max(1.0));
            let squares: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            assert!((f64::from(dot(&row, &row)) - squares).abs() < 1e-4);
        }
    }
}
