//! How numbers stand in tables.

use headlight_heads::Interval;

/// What stands in the place of a number that is not there.
const ABSENT: &str = "–";

/// A value with half the width of its 95 % interval.
///
/// ```
/// use headlight_heads::Interval;
/// use headlight_report::with_interval;
///
/// let interval = Interval { low: 0.94, high: 0.96 };
/// assert_eq!(with_interval(0.951, interval, 3), "0.951±0.010");
/// assert_eq!(with_interval(-0.0001, interval, 2), "0.00±0.01"); // never −0
/// ```
#[must_use]
pub fn with_interval(value: f64, interval: Interval, decimals: usize) -> String {
    plus_minus(value, interval.half(), decimals)
}

/// A value and how far others are from it, for example a mean and a standard deviation.
///
/// ```
/// assert_eq!(headlight_report::plus_minus(0.125, 0.0375, 2), "0.12±0.04");
/// ```
#[must_use]
pub fn plus_minus(value: f64, half: f64, decimals: usize) -> String {
    format!("{}±{half:.decimals$}", number(value, decimals))
}

/// A number with so many decimals, or a dash where there is none.
///
/// ```
/// use headlight_report::number_or_dash;
///
/// assert_eq!(number_or_dash(Some(0.25), 3), "0.250");
/// assert_eq!(number_or_dash(None, 3), "–");
/// ```
#[must_use]
pub fn number_or_dash(value: Option<f64>, decimals: usize) -> String {
    or_dash(value.map(|value| number(value, decimals)))
}

/// A text, or a dash where there is none.
#[must_use]
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| ABSENT.to_owned())
}

/// A value with some decimals. What rounds to zero has no sign.
///
/// ```
/// assert_eq!(headlight_report::number(-0.004, 2), "0.00");
/// assert_eq!(headlight_report::number(-0.006, 2), "-0.01");
/// ```
#[must_use]
pub fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rounds_to_zero_loses_its_sign() {
        assert_eq!(number(-0.004, 2), "0.00");
        assert_eq!(number(-0.006, 2), "-0.01");
        assert_eq!(number(-0.4, 0), "0");
        assert_eq!(number(f64::NAN, 2), "NaN");
        assert_eq!(number(f64::NEG_INFINITY, 2), "-inf");
    }
}
