//! `exp`, `ln`, `tanh` and `erf` as polynomials.

/// Below this, `exp` in f32 is no longer a normal number. Here it is 0.
const SMALLEST: f32 = -87.3;

/// `e^x` for `x ≤ 88`: at most 2 units in the last place from the true value, and 0 below −87.3, −∞
/// included.
///
/// `e^x = 2^n · e^r` with `n = round(x/ln 2)` and `|r| ≤ ln 2/2`; `e^r` by its Taylor polynomial of
/// degree 7, whose remainder is below 6·10⁻⁹; `2^n` by adding `n` to the exponent bits.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
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
    for c in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
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

/// `ln x` for positive normal numbers, within 2·10⁻⁷ · max(1, |ln x|) of the true value.
///
/// `ln x = n ln 2 + ln m` with `√½ ≤ m < √2`, and `ln m = 2 (s + s³/3 + s⁵/5 + …)` with `s = (m −
/// 1)/(m + 1)`, `|s| < .172`; the first omitted term is below 10⁻⁹.
///
/// ```
/// assert!((headlight_vector::ln(0.5) + 0.693_147_2).abs() < 2e-7);
/// ```
#[inline(always)]
#[must_use]
pub fn ln(x: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    // Whole powers of 2 between x and [√½, √2), from the exponent bits.
    let n = (x.to_bits().wrapping_sub(SQRT_HALF) as i32) >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((n as u32) << 23));
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut p = 1.0 / 9.0;
    for c in [1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = p * square + c;
    }
    n as f32 * std::f32::consts::LN_2 + 2.0 * s * p
}

/// `tanh x = 1 − 2/(e^{2x} + 1)`, within 2·10⁻⁷ of the true value.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    let bounded = x.clamp(-20.0, 20.0);
    1.0 - 2.0 / (exp(2.0 * bounded) + 1.0)
}

/// The logistic function `1/(1 + e^{−x})`, within 2·10⁻⁷ of the true value.
#[inline(always)]
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x.clamp(-80.0, 80.0)))
}

/// The error function, within 5·10⁻⁷ of the true value (Abramowitz & Stegun 1964, formula 7.1.26).
///
/// ```
/// assert!((headlight_vector::erf(1.0) - 0.842_700_8).abs() < 5e-7);
/// ```
#[inline(always)]
#[must_use]
pub fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut p = 1.061_405_4;
    for c in [-1.453_152_1, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
        p = p * t + c;
    }
    let positive = 1.0 - p * t * exp(-size * size);
    positive.copysign(x)
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
        assert_eq!(
            [exp(f32::NEG_INFINITY), exp(-1e30), exp(-88.0), exp(0.0)],
            [0.0, 0.0, 0.0, 1.0]
        );
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_close_from_the_smallest_normal_number_on() {
        let mut x = f32::MIN_POSITIVE;
        while x < f32::MAX / 2.0 {
            let exact = f64::from(x).ln();
            let error = (f64::from(ln(x)) - exact).abs();
            assert!(error < 2e-7 * exact.abs().max(1.0), "{x:e}: {error:e}");
            x *= 1.0001;
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn tanh_and_sigmoid_are_close_everywhere() {
        for i in -40_000..=40_000 {
            let x = i as f32 / 1000.0;
            assert!(
                (f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 2e-7,
                "{x}"
            );
            assert!(
                (f64::from(sigmoid(x)) - 1.0 / (1.0 + (-f64::from(x)).exp())).abs() < 2e-7,
                "{x}"
            );
        }
    }

    #[test]
    fn erf_is_close_everywhere() {
        // ∫ of the density by the midpoint rule, fine enough to be exact to 1e-10.
        let (mut exact, step) = (0.0_f64, 1e-5);
        for i in 0..500_000 {
            let middle = (f64::from(i) + 0.5) * step;
            exact += step * std::f64::consts::FRAC_2_SQRT_PI * (-middle * middle).exp();
            if i % 100 == 99 {
                let x = (f64::from(i) + 1.0) * step;
                assert!((f64::from(erf(x as f32)) - exact).abs() < 5e-7, "{x}");
                assert!((f64::from(erf(-x as f32)) + exact).abs() < 5e-7, "{x}");
            }
        }
        assert!(erf(0.0).abs() < 1e-7);
    }
}
