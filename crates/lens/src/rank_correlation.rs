//! Do two lists rank the same things alike?

/// Spearman's rank correlation (1904): the correlation of the ranks, equal values sharing the mean of
/// their ranks. 1 where both lists have the same order, −1 where it is reversed, 0 on average by
/// chance. `None` where a list has fewer than two different values.
///
/// ```
/// use headlight_lens::rank_correlation;
///
/// assert_eq!(rank_correlation(&[1.0, 20.0, 3.0], &[0.1, 0.3, 0.2]), Some(1.0));
/// assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
/// // Ranks 1, 2, 3, 4 and 1.5, 1.5, 3, 4: deviations multiply to 4.5, of √5·√4.5.
/// let ties = rank_correlation(&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, 5.0, 6.0]).unwrap();
/// assert!((ties - 4.5 / (5.0_f64 * 4.5).sqrt()).abs() < 1e-12);
/// assert_eq!(rank_correlation(&[1.0, 2.0], &[3.0, 3.0]), None);
/// ```
///
/// # Panics
/// If the lists are not equally long.
#[must_use]
pub fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "things in two lists");
    let (a, b) = (deviations(a), deviations(b));
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = (sum(&a, &a) * sum(&b, &b)).sqrt();
    (size > 0.0).then(|| sum(&a, &b) / size)
}

/// Each value's rank less the mean rank.
fn deviations(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() + 1) as f64 / 2.0;
    let deviation = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal + 1) as f64 / 2.0 - middle
    };
    values.iter().map(deviation).collect()
}
