//! How sure are many means at once? The largest deviation of all of them, over draws of the
//! sequences (max-t bootstrap; Romano & Wolf 2005).

use headlight_vector::{Matrix, Onto, product};

use crate::bootstrap::{RESAMPLES, resamples_of};

/// Cells whose draws are computed at once: bounds memory.
const CELLS_AT_ONCE: usize = 256;
/// The share of draws in which all means deviate less than the band is wide.
const COVERAGE: f64 = 0.95;

/// A mean over sequences.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub mean: f64,
    /// The standard error of the mean.
    pub error: f64,
    /// `[sequence]`: its part of the mean's deviation, in standard errors. 0 without a value.
    deviations: Vec<f32>,
}

impl Cell {
    /// The mean of the values that are there; `None` for fewer than `least` (at least 2).
    pub fn of(values: &[Option<f64>], least: usize) -> Option<Self> {
        let known = || values.iter().copied().flatten();
        let count = known().count();
        if count < least.max(2) {
            return None;
        }
        let n = count as f64;
        let mean = known().sum::<f64>() / n;
        let squares: f64 = known().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n * (n - 1.0))).sqrt();
        let deviation = |value: &Option<f64>| match value {
            Some(value) if error > 0.0 => ((value - mean) / (n * error)) as f32,
            _ => 0.0,
        };
        Some(Self {
            mean,
            error,
            deviations: values.iter().map(deviation).collect(),
        })
    }
}

/// Which deviations of a mean count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Means that are too high: for a band whose lower edge holds.
    High,
    /// Both: for a band of two edges.
    Both,
}

/// The number of standard errors `c` such that all means of `cells` hold at once with probability
/// 0.95: no mean is more than `c` standard errors too high (or off, for both sides).
///
/// # Panics
/// If the cells are not over the same number of sequences.
pub(crate) fn simultaneous(cells: &[&Cell], side: Side) -> f64 {
    let sequences = cells.first().map_or(0, |cell| cell.deviations.len());
    let counts: Vec<f32> = resamples_of(sequences)
        .iter()
        .flatten()
        .map(|&count| count as f32)
        .collect();
    let mut largest = vec![0.0_f32; RESAMPLES];
    let mut drawn = vec![0.0_f32; CELLS_AT_ONCE * RESAMPLES];
    for cells in cells.chunks(CELLS_AT_ONCE) {
        let deviations: Vec<f32> = cells
            .iter()
            .flat_map(|cell| cell.deviations.iter().copied())
            .collect();
        product(
            &mut drawn,
            RESAMPLES,
            Onto::Zeros,
            1.0,
            Matrix::dense(&deviations, cells.len(), sequences),
            Matrix::dense(&counts, sequences, RESAMPLES),
        );
        for drawn in drawn.chunks(RESAMPLES).take(cells.len()) {
            for (largest, &deviation) in largest.iter_mut().zip(drawn) {
                let size = match side {
                    Side::High => deviation,
                    Side::Both => deviation.abs(),
                };
                *largest = largest.max(size);
            }
        }
    }
    largest.sort_by(f32::total_cmp);
    let index = (COVERAGE * (RESAMPLES - 1) as f64).ceil() as usize;
    f64::from(largest[index])
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn normal_cells(count: usize, sequences: usize, seed: u64) -> Vec<Cell> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // The sum of twelve uniform numbers is close to normal.
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let cell = |_| {
            Cell::of(
                &vec![(); sequences]
                    .iter()
                    .map(|()| Some(normal()))
                    .collect::<Vec<_>>(),
                2,
            )
        };
        (0..count).filter_map(cell).collect()
    }

    #[test]
    fn a_mean_and_its_error_are_those_of_the_known_values() {
        let cell = Cell::of(&[Some(1.0), None, Some(3.0)], 2).unwrap();
        // s² = 2, n = 2: the error is √(2/2) = 1.
        assert_eq!((cell.mean, cell.error), (2.0, 1.0));
        assert_eq!(cell.deviations, [-0.5, 0.0, 0.5]);
        assert!(Cell::of(&[Some(1.0), None, Some(3.0)], 3).is_none());
    }

    #[test]
    fn one_mean_has_the_band_of_the_normal_distribution_and_many_a_wider_one() {
        let band = |cells: &[Cell], side| simultaneous(&cells.iter().collect::<Vec<_>>(), side);
        let one = normal_cells(1, 200, 1);
        assert!(
            (band(&one, Side::High) - 1.645).abs() < 0.25,
            "{}",
            band(&one, Side::High)
        );
        assert!(
            (band(&one, Side::Both) - 1.960).abs() < 0.25,
            "{}",
            band(&one, Side::Both)
        );
        // 100 independent ones: Φ⁻¹(0.95^(1/100)) = 3.28.
        let many = band(&normal_cells(100, 200, 1), Side::High);
        assert!((many - 3.28).abs() < 0.35, "{many}");
    }

    #[test]
    fn what_is_certain_has_no_band() {
        let cell = Cell::of(&[Some(0.5); 30], 2).unwrap();
        assert_eq!(simultaneous(&[&cell], Side::Both), 0.0);
    }
}
