//! How sure is a mean over a few seeds?

use headlight_heads::Spread;

/// The .975 quantile of Student's t by degrees of freedom, from 1 (Student 1908; any table of it).
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The mean `m` of the values that are there, and its 95 % interval `m ± t·s/√n`, s² with n − 1 in
/// the denominator. It takes the seeds' values to be normally distributed; of few seeds it says
/// honestly that they are few. `None` where no seed has a value.
///
/// ```
/// use headlight_lens::spread;
///
/// let three = spread(vec![Some(1.0), None, Some(2.0), Some(3.0)]).unwrap();
/// assert_eq!(three.mean, 2.0);
/// // s = 1, n = 3, t(2) = 4.303
/// assert!((three.high.unwrap() - (2.0 + 4.303 / 3f64.sqrt())).abs() < 1e-12);
/// assert_eq!(spread(vec![Some(1.0)]).unwrap().low, None);
/// assert!(spread(vec![None]).is_none());
/// ```
#[must_use]
pub fn spread(values: Vec<Option<f64>>) -> Option<Spread> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let count = known.len() as f64;
    let mean = (!known.is_empty()).then(|| known.iter().sum::<f64>() / count)?;
    let half = (known.len() > 1).then(|| {
        let variance = known
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / (count - 1.0);
        // Beyond the table the quantile falls slowly towards 1.96; its last entry is on the safe
        // side.
        T[(known.len() - 2).min(T.len() - 1)] * (variance / count).sqrt()
    });
    Some(Spread {
        mean,
        low: half.map(|half| mean - half),
        high: half.map(|half| mean + half),
        values,
    })
}
