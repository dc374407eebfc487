//! `exp`, `ln`, `tanh` and `erf` as polynomials.

use pulp::Simd;

/// `a·b + c`, rounded once on a processor that has an instruction for it.
///
/// Without the instruction, `f32::mul_add` is a slow call of a function, so the sum is rounded
/// twice.
#[inline(always)]
#[must_use]
pub fn mul_add<S: Simd>(_: S, a: f32, b: f32, c: f32) -> f32 {
    if S::IS_SCALAR {
        a * b + c
    } else {
        a.mul_add(b, c)
    }
}

/// Below this, `exp` in f32 is no longer a normal number. Here it is 0.
const SMALLEST: f32 = -87.3;

/// `e^x` for `x ≤ 88`: at most 2 units in the last place from the true value, and 0 below −87.3, −∞
/// included.
///
/// `e^x = 2^n · e^r` with `n = round(x/ln 2)` and `|r| ≤ ln 2/2`; `e^r` by its Taylor polynomial of
/// degree 7, whose remainder is below 6·10⁻⁹; `2^n` from its exponent bits.
#[inline(always)]
#[must_use]
pub fn exp<S: Simd>(simd: S, x: f32) -> f32 {
    // Adding 1.5·2²³ leaves the rounded integer in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x < SMALLEST { SMALLEST } else { x };
    let shifted = mul_add(simd, clamped, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first exact in few bits: r loses nothing to cancellation.
    let r = mul_add(simd, -n, LN_2_LOW, mul_add(simd, -n, LN_2_HIGH, clamped));
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
        p = mul_add(simd, p, r, c);
    }
    let power_of_2 = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < SMALLEST { 0.0 } else { p * power_of_2 }
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
pub fn tanh<S: Simd>(simd: S, x: f32) -> f32 {
    let bounded = x.clamp(-20.0, 20.0);
    1.0 - 2.0 / (exp(simd, 2.0 * bounded) + 1.0)
}

/// The logistic function `1/(1 + e^{−x})`, within 2·10⁻⁷ of the true value.
#[inline(always)]
#[must_use]
pub fn sigmoid<S: Simd>(simd: S, x: f32) -> f32 {
    1.0 / (1.0 + exp(simd, -x.clamp(-80.0, 80.0)))
}

/// The error function, within 5·10⁻⁷ of the true value (Abramowitz & Stegun 1964, formula 7.1.26).
#[inline(always)]
#[must_use]
pub fn erf<S: Simd>(simd: S, x: f32) -> f32 {
    erf_beside(simd, x, exp(simd, -x * x))
}

/// `erf x`, where `power = e^{−x²}` is known already.
#[inline(always)]
fn erf_beside<S: Simd>(simd: S, x: f32, power: f32) -> f32 {
    let t = 1.0 / mul_add(simd, 0.327_591_1, x.abs(), 1.0);
    let mut p = 1.061_405_4;
    for c in [-1.453_152_1, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
        p = mul_add(simd, p, t, c);
    }
    let positive = 1.0 - p * t * power;
    positive.copysign(x)
}

/// The standard normal distribution: `Φ(x) = (1 + erf(x/√2))/2`, and its density `φ(x) =
/// e^{−x²/2}/√(2π)`. They share one exponential.
#[inline(always)]
#[must_use]
pub fn gauss<S: Simd>(simd: S, x: f32) -> (f32, f32) {
    const SCALE: f32 = 0.398_942_3;
    let power = exp(simd, -0.5 * x * x);
    let erf = erf_beside(simd, x * std::f32::consts::FRAC_1_SQRT_2, power);
    (0.5 + 0.5 * erf, SCALE * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, for_tests::on_every_processor};

    #[derive(Clone, Copy)]
    struct ExpIsClose;

    impl Kernel for ExpIsClose {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let mut worst: f64 = 0.0;
            for i in 0..2_000_000 {
                let x = -87.2 + i as f32 * (175.0 / 2_000_000.0);
                let exact = f64::from(x).exp();
                let unit = f64::from(exact as f32) * f64::from(f32::EPSILON);
                worst = worst.max((f64::from(exp(simd, x)) - exact).abs() / unit);
            }
            assert!(worst < 2.0, "{worst}");
            assert_eq!(
                [f32::NEG_INFINITY, -1e30, -88.0, 0.0].map(|x| exp(simd, x)),
                [0.0, 0.0, 0.0, 1.0]
            );
            // With any number in its low bits.
            for bits in [0, 1, 0x1ff, 0x3f_ffff] {
                assert!(exp(simd, f32::from_bits(f32::NAN.to_bits() | bits)).is_nan());
            }
        }
    }

    #[test]
    fn exp_is_within_two_units_in_the_last_place_and_0_for_masked_scores() {
        on_every_processor(ExpIsClose);
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

    #[derive(Clone, Copy)]
    struct TanhAndSigmoidAreClose;

    impl Kernel for TanhAndSigmoidAreClose {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            for i in -40_000..=40_000 {
                let x = i as f32 / 1000.0;
                let (exact, exact_sigmoid) =
                    (f64::from(x).tanh(), 1.0 / (1.0 + (-f64::from(x)).exp()));
                assert!((f64::from(tanh(simd, x)) - exact).abs() < 2e-7, "{x}");
                let error = f64::from(sigmoid(simd, x)) - exact_sigmoid;
                assert!(error.abs() < 2e-7, "{x}");
            }
        }
    }

    #[test]
    fn tanh_and_sigmoid_are_close_everywhere() {
        on_every_processor(TanhAndSigmoidAreClose);
    }

    #[derive(Clone, Copy)]
    struct ErfAndGaussAreClose;

    impl Kernel for ErfAndGaussAreClose {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            // ∫ of the density by the midpoint rule, fine enough to be exact to 1e-10.
            let (mut exact, step) = (0.0_f64, 1e-5);
            for i in 0..500_000 {
                let middle = (f64::from(i) + 0.5) * step;
                exact += step * std::f64::consts::FRAC_2_SQRT_PI * (-middle * middle).exp();
                if i % 100 == 99 {
                    let x = (f64::from(i) + 1.0) * step;
                    for sign in [1.0, -1.0] {
                        let error = f64::from(erf(simd, (sign * x) as f32)) - sign * exact;
                        assert!(error.abs() < 5e-7, "{x}");
                        let x = sign * x * std::f64::consts::SQRT_2;
                        let (below, density) = gauss(simd, x as f32);
                        let exact_below = 0.5 + 0.5 * sign * exact;
                        assert!((f64::from(below) - exact_below).abs() < 3e-7, "{x}");
                        let exact_density =
                            (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
                        assert!((f64::from(density) - exact_density).abs() < 1e-7, "{x}");
                    }
                }
            }
            assert!(erf(simd, 0.0).abs() < 1e-7);
        }
    }

    #[test]
    fn erf_and_the_normal_distribution_are_close_everywhere() {
        on_every_processor(ErfAndGaussAreClose);
    }
}
