//! How sure is a mean over a few seeds?

use headlight_heads::{Interval, Spread};

use crate::Estimate;

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
        let variance = variance(&known, mean);
        t(count - 1.0) * (variance / count).sqrt()
    });
    Some(Spread {
        mean,
        low: half.map(|half| mean - half),
        high: half.map(|half| mean + half),
        values,
    })
}

/// The mean of `b` less that of `a`, and its 95 % interval by Welch's t, which takes no variance to
/// be that of the other (Welch 1947). Runs with the same seed share no more than a number, so that
/// they make no pairs. `None` where one of them has fewer than two values.
///
/// ```
/// use headlight_lens::difference_of_means;
///
/// let difference = difference_of_means(&[1.0, 2.0, 3.0], &[5.0, 7.0]).unwrap();
/// assert_eq!(difference.mean, 4.0);
/// // s²/n is 1/3 and 1, so the standard error is √(4/3); (4/3)²/((1/3)²/2 + 1²/1) = 1.68 degrees of
/// // freedom, of which 1 has t = 12.706.
/// assert!((difference.interval.half() - 12.706 * (4f64 / 3.0).sqrt()).abs() < 1e-9);
/// assert!(difference_of_means(&[1.0], &[5.0, 7.0]).is_none());
/// ```
#[must_use]
pub fn difference_of_means(a: &[f64], b: &[f64]) -> Option<Estimate> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let [(mean_a, error_a, freedom_a), (mean_b, error_b, freedom_b)] = [a, b].map(|values| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        (mean, variance(values, mean) / count, count - 1.0)
    });
    let both = error_a + error_b;
    let mut half = 0.0;
    if both > 0.0 {
        let freedom = both.powi(2) / (error_a.powi(2) / freedom_a + error_b.powi(2) / freedom_b);
        half = t(freedom) * both.sqrt();
    }
    let mean = mean_b - mean_a;
    Some(Estimate {
        mean,
        interval: Interval {
            low: mean - half,
            high: mean + half,
        },
    })
}

/// With n − 1 in the denominator.
fn variance(values: &[f64], mean: f64) -> f64 {
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (values.len() as f64 - 1.0)
}

/// The quantile at so many degrees of freedom, or at the next fewer that the table has: on the safe
/// side. Beyond the table it falls slowly towards 1.96.
fn t(freedom: f64) -> f64 {
    T[(freedom as usize).clamp(1, T.len()) - 1]
}
