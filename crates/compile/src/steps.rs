//! Classes of a number, as sums of `ReLU` units.

use crate::Error;

/// The smallest distance between numbers of different classes. A ramp between closer ones is so
/// steep that rounding in f32 shows.
const SMALLEST_GAP: f64 = 1e-3;

/// `outputs · max(0, slope·u + offset)`, where u is the number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ramp {
    pub slope: f64,
    pub offset: f64,
    /// The class that it counts for, and how much.
    pub class: usize,
    pub weight: f64,
}

/// A run of neighbouring numbers of one class: the class is `1 − below − above`, where *below* is
/// 1 for numbers below the run and *above* is 1 for those above it. Inside the run both are exactly
/// 0, so that the class is exactly 1 in any arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub class: usize,
    pub ramps: Vec<Ramp>,
}

/// The runs of `numbers`, which are in order and have these classes.
pub(crate) fn runs(variable: &str, numbers: &[f64], classes: &[usize]) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    let mut first = 0;
    for last in 0..numbers.len() {
        let is_end = classes.get(last + 1) != Some(&classes[last]);
        if !is_end {
            continue;
        }
        let class = classes[last];
        let mut ramps = Vec::new();
        if first > 0 {
            let (from, to) = middle(variable, numbers[first - 1], numbers[first])?;
            ramps.extend(falling(class, from, to));
        }
        if last + 1 < numbers.len() {
            let (from, to) = middle(variable, numbers[last], numbers[last + 1])?;
            ramps.extend(rising(class, from, to));
        }
        runs.push(Run { class, ramps });
        first = last + 1;
    }
    Ok(runs)
}

/// The middle half of the gap between two numbers.
fn middle(variable: &str, low: f64, high: f64) -> Result<(f64, f64), Error> {
    let gap = high - low;
    if gap < SMALLEST_GAP {
        return Err(Error::CloseNumbers {
            variable: variable.to_owned(),
            low,
            high,
            gap: SMALLEST_GAP,
        });
    }
    Ok((low + gap / 4.0, high - gap / 4.0))
}

/// −1 below `from`, 0 above `to`.
fn falling(class: usize, from: f64, to: f64) -> [Ramp; 2] {
    let slope = 1.0 / (to - from);
    let ramp = |end: f64, weight| Ramp {
        slope: -slope,
        offset: slope * end,
        class,
        weight,
    };
    [ramp(to, -1.0), ramp(from, 1.0)]
}

/// 0 below `from`, −1 above `to`.
fn rising(class: usize, from: f64, to: f64) -> [Ramp; 2] {
    let slope = 1.0 / (to - from);
    let ramp = |begin: f64, weight| Ramp {
        slope,
        offset: -slope * begin,
        class,
        weight,
    };
    [ramp(from, -1.0), ramp(to, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(run: &Run, u: f64) -> f64 {
        let ramps = run.ramps.iter();
        1.0 + ramps
            .map(|ramp| ramp.weight * (ramp.slope * u + ramp.offset).max(0.0))
            .sum::<f64>()
    }

    #[test]
    fn a_run_is_one_on_its_numbers_and_zero_on_the_others() {
        let (numbers, classes) = ([-1.0, 0.0, 0.25, 0.5, 1.0], [0, 1, 1, 0, 2]);
        let runs = runs("test", &numbers, &classes).unwrap();
        assert_eq!(runs.len(), 4);
        for (number, class) in numbers.into_iter().zip(classes) {
            for other in 0..3 {
                let of_class = runs.iter().filter(|run| run.class == other);
                let sum: f64 = of_class.map(|run| value(run, number)).sum();
                let expected = f64::from(u8::from(class == other));
                assert!((sum - expected).abs() < 1e-12, "{number} {other}: {sum}");
            }
        }
    }

    #[test]
    fn numbers_of_one_class_may_be_close_and_those_of_two_may_not() {
        assert!(runs("test", &[0.5, 0.5001, 1.0], &[0, 0, 1]).is_ok());
        let error = runs("test", &[0.5, 0.5001], &[0, 1]).unwrap_err();
        assert!(error.to_string().contains("0.5 and 0.5001"), "{error}");
    }
}
